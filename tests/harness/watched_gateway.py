"""A watched gateway of the tests without an event loop: its model and its tools wait where a test
holds them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.process import Gateway, starting, until
from tests.harness.holds import Hold
from tests.harness.seen import Seen, read_seen
from tests.harness.watched import ROOT, SEEN, watched_command


def folder_of(home: Path) -> Path:
    """What the gateways of a home say of themselves, beside it."""
    folder = home.with_name(f"{home.name}.seen")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def seen_in(home: Path) -> Seen:
    return read_seen(folder_of(home) / SEEN)


def hold(home: Path, point: str) -> Hold:
    """Hold the gateways of a home at a point, until that is lifted."""
    return Hold(folder_of(home), point)


def wait_held(home: Path, held: Hold, times: int = 1) -> None:
    """Wait until the point was reached so often, over all lives."""
    until(lambda: seen_in(home).held[held.point] >= times, f"{times} times at {held.point}")


@contextmanager
def watched(home: Path, **more: str) -> Iterator[Gateway]:
    """A watched gateway that serves."""
    more |= {"PYTHONPATH": str(ROOT)}
    with starting(home, command=watched_command(folder_of(home)), **more) as one:
        one.wait_serving()
        yield one
