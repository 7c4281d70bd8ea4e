"""What to do where another installer made the installation."""

import json
import os
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

IMAGES = (Path("/.dockerenv"), Path("/run/.containerenv"))


def what_to_do() -> str:
    """The words for a person."""
    own = _words(Path(sys.prefix), _source())
    return (
        f"this koboshi does not update itself: {own}, then `koboshi restart`.\n"
        "An installation that does, and that goes back by itself, is made by "
        "`koboshi update --into DIR`"
    )


def _words(prefix: Path, source: str) -> str:
    if source:
        return f"it runs from {source}; run `git pull` and `make` there"
    if any(each.exists() for each in IMAGES):
        return "it is part of an image; pull the new one and start the container again"
    if (prefix / "uv-receipt.toml").exists():
        return "run `uv tool upgrade koboshi`"
    if "pipx" in prefix.parts:
        return "run `pipx upgrade koboshi`"
    if _made_by_uv(prefix):
        return f"run `uv pip install --python {sys.executable} --upgrade koboshi`"
    return f"run `{sys.executable} -m pip install --upgrade koboshi`"


def _source() -> str:
    """The folder of a clone that is installed in place; empty if it is none."""
    try:
        said = distribution("koboshi").read_text("direct_url.json")
        found = json.loads(said or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return ""
    is_editable = found.get("dir_info", {}).get("editable") is True
    return os.fsdecode(str(found.get("url", "")).removeprefix("file://")) if is_editable else ""


def _made_by_uv(prefix: Path) -> bool:
    try:
        lines = (prefix / "pyvenv.cfg").read_text(errors="replace").splitlines()
    except OSError:
        return False
    return any(line.partition("=")[0].strip() == "uv" for line in lines)
