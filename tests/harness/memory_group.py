"""A group of processes with a limit of memory, where this machine lets us make one."""

import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.process import until

GROUPS = Path("/sys/fs/cgroup")


class MemoryGroup:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def within(self, *command: str) -> tuple[str, ...]:
        """The command that starts another one in this group."""
        enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        return ("/bin/sh", "-c", enter, str(self.folder), *command)

    def empty(self) -> None:
        """End everything in it, and remove it."""

        def is_removed() -> bool:
            for pid in (self.folder / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            try:
                self.folder.rmdir()
            except OSError:
                return False
            return True

        until(is_removed, f"{self.folder} is empty")


@contextmanager
def memory_group(bytes_max: int) -> Iterator[MemoryGroup]:
    """A new group. Skips the test where none can be made."""
    group = _made(bytes_max)
    if isinstance(group, str):
        pytest.skip(f"no memory group can be made here: {group}")
    try:
        yield group
    finally:
        group.empty()


def _made(bytes_max: int) -> MemoryGroup | str:
    """The group, or why there is none."""
    why = "no memory controller is mounted"
    for parent, limit in _places():
        folder = parent / f"koboshi-test-{uuid.uuid4().hex[:8]}"
        try:
            folder.mkdir()
        except OSError as error:
            why = f"{parent} cannot be written: {error.strerror}"
            continue
        if (folder / limit).exists():
            (folder / limit).write_text(str(bytes_max))
            return MemoryGroup(folder)
        folder.rmdir()
        why = f"the memory controller is not handed down in {parent}"
    return why


def _places() -> Iterator[tuple[Path, str]]:
    """Where a group may be made, and the name of its limit: beside us first, then at the top."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            yield GROUPS / "memory" / path.lstrip("/"), "memory.limit_in_bytes"
        elif not controllers and (GROUPS / "cgroup.controllers").exists():
            yield (GROUPS / path.lstrip("/")).parent, "memory.max"
            yield GROUPS, "memory.max"
