"""The files of memories: written when a memory changes, and read before a turn.

A file is put in place in three steps, and a kill between any two loses no hand edit: the old one is
moved aside, the new one is linked to its name if that is free, and what was moved aside is judged
before it goes. So whatever stood at the name is either there or aside, and both are looked at
first. A file that is gone is written again; one that is empty is no edit, and is written again
when its editor had the time to fill it.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from anyio import Lock, to_thread

from koboshi.domain.memory import NOT_TAKEN, EditedFile, MemoryView, Shelf, picture
from koboshi.ports.clock import Clock
from koboshi.ports.memory import FileFate, Memories
from koboshi.ports.wakeups import MEMORY, Wakeups

log = structlog.get_logger()

POLL_SECONDS = 60.0
AT_ONCE = 50
BYTES_MAX = 200_000
"""More is no file of ours, and is not read."""
TRIES = 3
SAVING_SECONDS = 2.0
"""A file that was emptied is left alone for so long."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFiles:
    memories: Memories
    folder: Path
    clock: Clock
    on_read: Callable[[FileFate], None] = lambda _fate: None
    """Told what became of a file that was not the newest."""
    lock: Lock = field(default_factory=Lock)
    """One look at a time: what was read is judged before anything else is written."""

    async def keep_writing(self, wakeups: Wakeups) -> None:
        """Write the files of memories that changed, until cancelled."""
        after: int | None = 0
        while True:
            seen = wakeups.count(MEMORY)
            behind = await self.memories.behind(AT_ONCE, after)
            for view in behind:
                await self.settle(view)
            if after is not None:
                after = behind[-1].scope_id if behind else None
                if behind:
                    continue  # the first time, all are looked at
            await wakeups.wait(MEMORY, POLL_SECONDS, since=seen)

    async def settle(self, view: MemoryView) -> MemoryView:
        """Take over what was edited by hand, and bring the files to the newest form. Returns the
        memory as it is then. Trouble with the disk changes nothing in the memory."""
        try:
            async with self.lock:
                return await self._settle(view)
        except OSError as error:
            log.warning("memory_files_unusable", scope=view.scope_id, error=str(error))
            return view

    async def _settle(self, view: MemoryView) -> MemoryView:
        folder = self.folder / view.folder
        if folder.is_symlink():
            raise NotADirectoryError(f"{folder} is a link to another place")
        for _ in range(TRIES):
            judged, kept, is_behind = await self._judge(view, folder)
            view = await self.memories.view(view.scope_id) or view
            if not is_behind:
                return view
            shelves = tuple(shelf for shelf in Shelf if shelf not in kept)
            painting = await self.memories.paint(view.scope_id, shelves)
            for shelf, content in painting.files:
                await to_thread.run_sync(_put, folder, shelf.file, content, judged.get(shelf))
            await self.memories.painted(painting)
        return view

    async def _judge(
        self, view: MemoryView, folder: Path
    ) -> tuple[dict[Shelf, str], set[Shelf], bool]:
        """What was found, which files stay as they are, and whether others have to be written."""
        judged: dict[Shelf, str] = {}
        kept: set[Shelf] = set()
        is_behind = False
        for shelf in Shelf:
            for name in (_aside(shelf.file), shelf.file):
                is_file = name == shelf.file
                content = await to_thread.run_sync(_content, folder / name)
                if content is None:
                    is_behind |= is_file
                    continue
                if is_file and not content.strip() and self._is_new(folder / name):
                    kept.add(shelf)  # an editor is about to write it, in this very place
                    continue
                fate = await self._fate(view, shelf, content)
                if is_file:
                    judged[shelf] = content
                    is_behind |= fate is FileFate.REWRITE
                    kept |= {shelf} if fate is FileFate.KEEP else set()
                else:
                    is_behind |= fate is not FileFate.CURRENT
                    await to_thread.run_sync(_let_go, folder / name, fate)
        return judged, kept, is_behind

    def _is_new(self, path: Path) -> bool:
        """Whether the file was changed in the last moments."""
        try:
            changed_s = path.stat().st_mtime
        except OSError:
            return False
        return abs(self.clock.now_ms() / 1000 - changed_s) < SAVING_SECONDS

    async def _fate(self, view: MemoryView, shelf: Shelf, content: str) -> FileFate:
        if content == picture(view.texts(shelf), view.revision):
            return FileFate.CURRENT
        file = EditedFile(shelf=shelf, content=content)
        fate = await self.memories.read_back(view.scope_id, file)
        self.on_read(fate)
        log.info("memory_file_read", scope=view.scope_id, shelf=shelf, fate=fate)
        return fate


def _aside(name: str) -> str:
    return f".{name}.old"


def _let_go(aside: Path, fate: FileFate) -> None:
    """What lay aside was judged. An edit that cannot be taken over is left where people see it."""
    if fate is FileFate.KEEP:
        os.replace(aside, aside.parent / f"{aside.name[1:-4]}{NOT_TAKEN}")
    else:
        aside.unlink()


def _content(path: Path) -> str | None:
    """What the file holds; None if there is no plain one, or one that is too long to be ours."""
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        raw = file.read(BYTES_MAX)
    return raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\0", "")


def _put(folder: Path, name: str, content: str, judged: str | None) -> None:
    """Put a file in place of one that was judged. If a person saved theirs in the meantime, theirs
    stays, at its name or aside."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    new, path = folder / f".{name}.new", folder / name
    descriptor = os.open(new, _NEW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content.encode())
        file.flush()
        os.fsync(descriptor)
    if _content(path) != content:
        aside = folder / _aside(name)
        if os.path.lexists(path):
            os.rename(path, aside)
        try:
            os.link(new, path)
        except FileExistsError:
            log.info("memory_file_saved_meanwhile", name=name)
        if aside.is_dir() and not aside.is_symlink():
            os.rename(aside, folder / f"{name}{NOT_TAKEN}")
        elif _content(aside) in (judged, None):
            aside.unlink(missing_ok=True)
    new.unlink()
    _sync(folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
