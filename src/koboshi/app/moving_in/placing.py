"""Files that moved in are renamed to their places, by the command or by the next start."""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from anyio import to_thread

from koboshi.domain.incoming import Incoming
from koboshi.ports.store import Store

STAGED = "incoming"
CONFIG = "koboshi.toml"

Reach = Callable[[str, str], None]


async def finish_moves(
    home: Path, store: Store, reach: Reach = lambda _what, _when: None
) -> tuple[str, ...]:
    """Put every file in place that a committed move has left behind, and remove what no move
    names. Returns what was placed."""
    unfinished = await store.imports.unfinished()
    placed: tuple[str, ...] = ()
    for each in unfinished:
        placed += await to_thread.run_sync(place, home, each, reach)
        await store.imports.finish(each.digest)
    if unfinished or (home / STAGED).exists():
        await to_thread.run_sync(forget, home, ())
    return placed


def place(home: Path, incoming: Incoming, reach: Reach) -> tuple[str, ...]:
    """Rename what is staged to where it belongs; what is there already stays. Returns what was
    placed. It can be repeated at any step."""
    folder, placed = home / STAGED / incoming.digest, list[str]()
    for each in incoming.files:
        staged, target = folder / each.staged, home / each.target
        if not staged.exists() or os.path.lexists(target):
            continue
        made(target)
        os.rename(staged, target)
        flush(target.parent)
        placed.append(each.target)
        reach("migrate.placed", "after")
    return tuple(placed)


def forget(home: Path, kept: Iterable[str]) -> None:
    """Remove staged folders, but for those that are named: they hold copies of secrets."""
    names = set(kept)
    folder = home / STAGED
    for each in folder.iterdir() if folder.is_dir() else ():
        if each.name not in names:
            shutil.rmtree(each, ignore_errors=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)


def made(place: Path) -> Path:
    """The place, in a folder that is there."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place
