"""Points at which a test holds a watched gateway, and lets it go on.

A point is a fifo in the folder of the watched gateway (tests/harness/watched.py). Where there is
none, nothing is held. Each byte in it lets one task through, in any life. The task alone is
held: the rest of the gateway goes on, and a kill or a cancellation ends the wait.

The points are `model`, before the model replies; `tool.<name>`, when a call was stored as started
and does not run yet, or the same with its arguments behind it; `<verb>:before` and `<verb>:after`,
at the store, like the crash points.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from anyio import sleep

MODEL = "model"
LOOK_EVERY_S = 0.005


def tool(name: str, **arguments: object) -> str:
    """The point where a tool begins, with these arguments if any are given."""
    given = json.dumps(arguments, separators=(",", ":")) if arguments else ""
    return f"tool.{name}{given}"


class Hold:
    """A point that is held from now on, until it is lifted."""

    def __init__(self, folder: Path, point: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.point = point
        self._path = _fifo(folder, point)
        os.mkfifo(self._path)
        # For reading as well: so written bytes stay in it while no gateway has it open.
        self._file = os.open(self._path, os.O_RDWR)

    def let(self, count: int = 1) -> None:
        """Let so many through, now or when they come."""
        os.write(self._file, b"." * count)

    def lift(self) -> None:
        """Let every task through from now on."""
        with suppress(FileNotFoundError):  # it was lifted before
            self._path.unlink()
            os.close(self._file)

    def __enter__(self) -> "Hold":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.lift()


async def pass_by(folder: Path, point: str, on_held: Callable[[str], None]) -> None:
    """In the gateway: go on at once where nothing is held, else when the test says so. `on_held`
    is called first where it is held."""
    path = _fifo(folder, point)
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    try:
        on_held(point)
        while path.exists():
            with suppress(BlockingIOError):
                if os.read(file, 1):
                    return
            await sleep(LOOK_EVERY_S)
    finally:
        os.close(file)


def _fifo(folder: Path, point: str) -> Path:
    return folder / f"hold.{point}"
