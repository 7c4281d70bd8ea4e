"""An update while the disk is full: it says so, leaves no half of a version, and one serves."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from koboshi.cli.update.installation import Installation
from tests.cli.update.made_versions import add_fake, begin, installation, served, start
from tests.harness.disk import small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", megabytes=2) as folder:
        yield folder


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """No byte more fits on it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65_536, 4_096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    try:
        yield
    finally:
        ballast.unlink()


@pytest.fixture
def ours(disk: Path) -> Installation:
    found = installation(disk / "root")
    add_fake(found, "1", "serves")
    found.switch("1")
    return found


def test_a_trial_that_cannot_be_counted_waits_and_the_version_before_serves(
    ours: Installation, disk: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    add_fake(ours, "2", "confirms")
    begin(ours, "2", home)
    (ours.root / "served").write_text("")

    with filled(disk):
        code = start(ours, home)

    assert code == 0
    assert ours.current == "1"
    trial = ours.trial()
    assert trial is not None
    assert trial.starts == 0
    assert not list(ours.root.glob(".trial*")), "nothing is left lying"
    assert start(ours, home) == 0
    assert served(ours)[-1] == "2 serves"
    assert ours.current == "2"


def test_one_that_was_started_and_cannot_be_undone_yet_asks_for_another_start(
    ours: Installation, disk: Path, tmp_path: Path
) -> None:
    """Its database may be of the new version: only what goes back by the book may serve."""
    home = tmp_path / "home"
    add_fake(ours, "2", "dies")
    begin(ours, "2", home, starts=2, starts_max=2)

    with filled(disk):
        code = start(ours, home)

    assert code == 75
    assert start(ours, home) == 0
    assert served(ours)[-1] == "1 serves"
