"""The files of one process: what its runner wrote, and what it is told. See `koboshi.runner`."""

import contextlib
import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from koboshi.domain.process import Birth
from koboshi.ports.runners import EndedBy, Ending, EndReason, LogSlice
from koboshi.runner.log import start_of
from koboshi.runner.tree import entries


class _Born(msgspec.Struct, frozen=True):
    boot_id: str
    pid: int
    start_ticks: int
    keeper_pid: int = 0  # runners that were started by an earlier version have no keeper
    keeper_start_ticks: int = 0


class _Exit(msgspec.Struct, frozen=True):
    by: EndedBy
    exit_code: int | None
    signal: int | None
    ended_ms: int
    error: str
    output_bytes: int
    reason: EndReason | None = None  # runners that were started by an earlier version say none


@dataclass(frozen=True, slots=True)
class ProcessFiles:
    """The folder of one process. What is missing or makes no sense is None or empty. What is there
    and cannot be read now raises OSError: a missing descriptor must not
    lead to the conclusion that a command has not begun, or has no end."""

    folder: Path

    def make(self) -> None:
        """Raises FileExistsError if there is such a process already."""
        parent = self.folder.parent
        if not parent.exists():
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _sync(parent.parent)
        self.folder.mkdir(mode=0o700)

    def open_lock(self) -> int:
        return os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)

    @property
    def complaints(self) -> Path:
        return self.folder / "runner.err"

    def write_spec(self, settings: Mapping[str, str], environment: Mapping[str, str]) -> None:
        """Raises OSError for what no system could start."""
        _write(self.folder / "spec", _entries(settings) + b"\0" + _entries(environment))

    def read_marker(self) -> bytes:
        with contextlib.suppress(FileNotFoundError):
            settings, _, _ = (self.folder / "spec").read_bytes().partition(b"\0\0")
            for entry in settings.split(b"\0"):
                if entry.startswith(b"marker="):
                    return entry.removeprefix(b"marker=")
        return b""

    def has_begun(self) -> bool:
        return (self.folder / "born.json").exists()

    def read_birth(self) -> Birth | None:
        """Who the runner is."""
        if (born := self._read_born()) is None:
            return None
        return Birth(boot_id=born.boot_id, pid=born.pid, start_ticks=born.start_ticks)

    def read_keeper(self) -> Birth | None:
        """Who the keeper of the runner is; None if it has none."""
        if (born := self._read_born()) is None or not born.keeper_pid:
            return None
        start_ticks = born.keeper_start_ticks
        return Birth(boot_id=born.boot_id, pid=born.keeper_pid, start_ticks=start_ticks)

    def read_child(self) -> tuple[int, bytes] | None:
        """Pid and start ticks of what the runner has started."""
        with contextlib.suppress(FileNotFoundError, KeyError, ValueError):
            said = entries((self.folder / "child").read_bytes())
            return int(said[b"pid"]), said[b"start_ticks"]
        return None

    def _read_born(self) -> _Born | None:
        try:
            return msgspec.json.decode((self.folder / "born.json").read_bytes(), type=_Born)
        except (FileNotFoundError, ValueError, msgspec.DecodeError):
            return None

    def read_ending(self) -> Ending | None:
        found = self._read_exit()
        if found is None:
            return None
        return Ending(
            by=found.by,
            reason=found.reason,
            exit_code=found.exit_code,
            signal=found.signal,
            ended_ms=found.ended_ms,
            error=found.error,
        )

    def is_void(self) -> bool:
        return (self.folder / "void").exists()

    def make_void(self) -> None:
        _write(self.folder / "void", b"")

    def ask_to_end(self, grace_s: float) -> None:
        _write(self.folder / "end", str(grace_s).encode())

    def last_complaint(self) -> str:
        with contextlib.suppress(OSError):
            lines = self.complaints.read_text(encoding="utf-8", errors="replace").splitlines()
            return lines[-1] if lines else ""
        return ""

    def open_input(self) -> int | None:
        """The input of the command; None if it takes none, or has no reader any more."""
        try:
            return os.open(self.folder / "stdin", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return None

    def read_log(self, offset: int, limit: int) -> LogSlice:
        """Raises FileNotFoundError if the runner forgot a segment in the meantime: ask again."""
        spans = self._spans()
        found = self._read_exit()
        total = max([end for _, end, _ in spans] + [found.output_bytes if found else 0])
        asked = min(max(offset + total if offset < 0 else offset, 0), total)
        begin = next((max(start, asked) for start, end, _ in spans if end > asked), total)
        content = bytearray()
        for start, end, name in spans:
            at = begin + len(content)
            if start <= at < end and len(content) < limit:
                content += _read_at(self.folder / name, at - start, limit - len(content))
        return LogSlice(offset=begin, content=bytes(content), total=total, dropped=begin - asked)

    def _spans(self) -> list[tuple[int, int, str]]:
        """The files of the output as (start, end, name), in order.

        A file is complete when the next one has a name. So the names come first and the sizes
        then, or a gap would be seen that is none.
        """
        names = os.listdir(self.folder) if self.folder.exists() else []
        starts = sorted((start, name) for name in names if (start := start_of(name)) is not None)
        return [
            (start, start + (self.folder / name).stat().st_size, name) for start, name in starts
        ]

    def _read_exit(self) -> _Exit | None:
        try:
            return msgspec.json.decode((self.folder / "exit.json").read_bytes(), type=_Exit)
        except (FileNotFoundError, ValueError, msgspec.DecodeError):
            return None


def _entries(named: Mapping[str, str]) -> bytes:
    entries = b""
    for name, text in named.items():
        if not name or "=" in name or "\0" in name + text:
            raise OSError(errno.EINVAL, f"no command can be started with such a {name!r}")
        try:
            entries += f"{name}={text}\0".encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise OSError(errno.EILSEQ, f"{name!r} holds what is no character") from None
    return entries


def _write(path: Path, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(file, "wb") as opened:
        opened.write(content)


def _read_at(path: Path, position: int, limit: int) -> bytes:
    with path.open("rb") as opened:
        opened.seek(position)
        return opened.read(limit)


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
