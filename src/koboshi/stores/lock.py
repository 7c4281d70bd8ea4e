"""One process owns the home: a kernel lock on a file of its own, held for life.

The kernel gives it back when the holder dies, however it dies, so it cannot be stale. What is
written in the file only says who holds it; nothing rests on that.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from koboshi.domain.errors import HomeHeld
from koboshi.ports.clock import Clock

LOCK_NAME = "koboshi.lock"
_TRY_EVERY_SECONDS = 0.1
_FILES_MAX = 100
"""How often the file may be removed while we ask for it."""


@dataclass(frozen=True, slots=True)
class HomeLock:
    """The ownership of a home. Giving it up is closing the file."""

    descriptor: int

    def release(self) -> None:
        os.close(self.descriptor)


def lock_now(home: Path, *, clock: Clock, who: str) -> HomeLock:
    """Own the home. Raises HomeHeld that says who has it."""
    for _ in range(_FILES_MAX):
        with _opened(home) as (descriptor, undo):
            if not _is_locked(descriptor):
                break
            if _is_named(descriptor, home):
                undo.pop_all()
                return _owned(descriptor, who, clock)
    raise _held(home)


async def take_lock(home: Path, *, wait_seconds: float, clock: Clock, who: str) -> HomeLock:
    """Own the home, waiting for it at most so long. Raises HomeHeld that says who has it."""
    # Who does not wait has no use for an event loop.
    from anyio import sleep

    deadline = clock.monotonic() + wait_seconds
    for _ in range(_FILES_MAX):
        with _opened(home) as (descriptor, undo):
            while not _is_locked(descriptor):
                if clock.monotonic() >= deadline:
                    raise _held(home)
                await sleep(_TRY_EVERY_SECONDS)
            if _is_named(descriptor, home):
                undo.pop_all()
                return _owned(descriptor, who, clock)
    raise _held(home)


@contextlib.contextmanager
def _opened(home: Path) -> Iterator[tuple[int, contextlib.ExitStack]]:
    """The file, and what closes it again unless that is called off."""
    descriptor = os.open(home / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.ExitStack() as undo:
        undo.callback(os.close, descriptor)
        yield descriptor, undo


def _held(home: Path) -> HomeHeld:
    words = f"{home} is held by {holder_of(home)}; stop it first, or use another --home"
    return HomeHeld(words)


def _is_locked(descriptor: int) -> bool:
    """Whether the lock is ours now."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_named(descriptor: int, home: Path) -> bool:
    """Whether the file is the one that others would lock. It may have been removed while we waited
    for it; then there is another one to be asked for."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(home / LOCK_NAME))
    except FileNotFoundError:
        return False


def holder_of(home: Path) -> str:
    """Who holds the home, as far as the file tells."""
    try:
        said = json.loads((home / LOCK_NAME).read_bytes())
        return f"{said['who']} (pid {said['pid']} on {said['host']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _owned(descriptor: int, who: str, clock: Clock) -> HomeLock:
    _say_who(descriptor, who, clock)
    return HomeLock(descriptor)


def _say_who(descriptor: int, who: str, clock: Clock) -> None:
    words = json.dumps(
        {"who": who, "pid": os.getpid(), "host": os.uname().nodename, "since_ms": clock.now_ms()}
    )
    # A full disk must not keep us from serving: the lock is held, only its label is missing.
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, words.encode(), 0)
