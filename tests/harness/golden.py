"""Databases that earlier versions wrote, laid out as homes."""

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "golden"


def lay_out_every_state(home: Path) -> None:
    """A closed database of version 1 with rows in every state."""
    home.mkdir(parents=True, exist_ok=True)
    packed = FOLDER / "version-1.db.gz"
    (home / "koboshi.db").write_bytes(gzip.decompress(packed.read_bytes()))


def lay_out_killed(home: Path) -> None:
    """The home of a killed gateway of version 1: most of it is in the log."""
    home.mkdir(parents=True, exist_ok=True)
    with tarfile.open(FOLDER / "version-1-killed.tar.gz") as packed:
        packed.extractall(home, filter="data")


GOLDEN: dict[str, Callable[[Path], None]] = {
    "every-state": lay_out_every_state,
    "killed": lay_out_killed,
}
