"""Disks that misbehave: a small one that is full, and one that fails to flush."""

import fcntl
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness import ptrace
from tests.harness.polling import until

MEGABYTE = 1_000_000


@contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Iterator[Path]:
    """A file system of its own for the length of the block. Skips where none can be mounted."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a small file system cannot be mounted: that needs root and `mount`")
    folder.mkdir(parents=True)
    size = f"size={megabytes}m"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


class RealDisk:
    """An ext4 file system in a file, which can be cut off from its disk at any moment."""

    def __init__(self, image: Path, folder: Path) -> None:
        self._image = image
        self.folder = folder

    def mount(self) -> None:
        mounted = subprocess.run(
            ["mount", "-o", "loop", str(self._image), str(self.folder)],
            capture_output=True,
            text=True,
        )
        if mounted.returncode:
            pytest.skip(f"a file system in a file cannot be mounted: {mounted.stderr.strip()}")

    def cut(self) -> None:
        """From now on nothing reaches the disk, not even the file system's buffers: every call
        fails with EIO."""
        flush_nothing = struct.pack("I", 2)
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(descriptor, _EXT4_SHUTDOWN, flush_nothing)
        finally:
            os.close(descriptor)

    def plug_in_again(self) -> None:
        """Mount what has reached the disk; the kernel replays the journal first. It is a copy: a
        namespace made meanwhile may still hold the one that was cut off."""
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
        copy = self._image.with_suffix(f"{self._image.suffix}.again")
        shutil.copyfile(self._image, copy)
        self._image = copy
        self.mount()


_EXT4_SHUTDOWN = 0x8004587D


@contextmanager
def real_disk(folder: Path, megabytes: int = 24) -> Iterator[RealDisk]:
    """Such a file system, mounted, for the length of the block. Skips where that is impossible."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("a file system in a file cannot be made: that needs root and `mkfs.ext4`")
    image = folder.with_suffix(".img")
    folder.mkdir(parents=True)
    with image.open("wb") as file:
        file.truncate(megabytes * MEGABYTE)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    disk = RealDisk(image, folder)
    disk.mount()
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """No space at all on the file system for the length of the block."""
    filler = folder / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            for chunk in (65_536, 4_096, 512, 1):
                _write_until_full(file.fileno(), b"x" * chunk)
        yield
    finally:
        filler.unlink(missing_ok=True)


def _write_until_full(descriptor: int, chunk: bytes) -> None:
    try:
        while True:
            os.write(descriptor, chunk)
    except OSError:
        return


@contextmanager
def failing_flush(pid: int, log: Path) -> Iterator["Strace"]:
    """From now on every flush of the process fails with EIO. Skips where strace cannot do that."""
    with failing_calls(pid, log, calls="fdatasync,fsync", error="EIO") as strace:
        yield strace


@contextmanager
def failing_calls(
    pid: int, log: Path, *, calls: str, error: str, files: Sequence[Path] = (), when: str = "1+"
) -> Iterator["Strace"]:
    """For the length of the block the calls of the process fail: those that concern the files, if
    some are named, and of each thread's those that `when` tells. Skips where strace cannot do
    that."""
    if shutil.which("strace") is None:
        pytest.skip("system calls cannot be made to fail: strace is not installed")
    command = ["strace", "-f", "-o", str(log), *failing(calls, error, files, when)]
    with (log.parent / f"{log.name}.said").open("wb") as said:
        process = subprocess.Popen([*command, "-p", str(pid)], stdout=said, stderr=said)
    try:
        yield Strace(process, Path(said.name), log)
    finally:
        # On request it detaches from the process and leaves it alive.
        process.terminate()
        process.wait(100)


def failing(calls: str, error: str, files: Sequence[Path] = (), when: str = "1+") -> list[str]:
    """The arguments of strace for it."""
    named = [argument for file in files for argument in ("-P", str(file))]
    return [*named, "-e", f"trace={calls}", "-e", f"inject={calls}:error={error}:when={when}"]


def killed_at_flush(number: int) -> list[str]:
    """The program under which a gateway is killed when one of its threads is about to flush for the
    n-th time: up to 7 while the file is made, beyond that in the n-th commit. Skips where strace
    cannot do that."""
    if shutil.which("strace") is None:
        pytest.skip("it cannot be killed within a commit: strace is not installed")
    flush = "trace=fdatasync"
    fault = f"inject=fdatasync:signal=SIGKILL:when={number}"
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", flush, "-e", fault]


def killed_at_change(home: Path, how: str, number: int) -> list[str]:
    """The program under which a gateway is killed at the n-th call that changes its home. Skips
    where nothing can be traced."""
    reason = ptrace.why_not()
    if reason:
        pytest.skip(reason)
    return [sys.executable, "-m", "tests.harness.tracer", str(home), how, str(number)]


class Strace:
    def __init__(self, process: "subprocess.Popen[bytes]", said: Path, log: Path) -> None:
        self._process = process
        self._said = said
        self._log = log

    async def attached(self) -> None:
        """Wait until it holds every thread. Skips where it may not."""
        await until(lambda: "attached" in self.said or self._is_over, "strace attaches")
        if "attached" not in self.said:
            pytest.skip(f"system calls cannot be made to fail: {self.said.strip()}")

    @property
    def said(self) -> str:
        return self._said.read_text(errors="replace")

    @property
    def faults(self) -> int:
        """How many calls were made to fail."""
        return self._log.read_text(errors="replace").count("INJECTED")

    @property
    def _is_over(self) -> bool:
        return self._process.poll() is not None
