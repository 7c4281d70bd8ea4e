"""The output of a command, in bounded space: its head, and the last part of the rest. Imports
nearly nothing: it is part of the runner.

A file holds bytes without a gap from the offset in its name on (`log` from 0), and the next one is
made after the last byte of the one before. Bytes in no file are lost. So readers need only names
and sizes, after any death.
"""

import posix

HEAD = "log"
SEGMENTS = 4
SEGMENT_BYTES_MIN = 4_096


def name_of(start: int) -> str:
    return f"{HEAD}.{start:015}"


def start_of(name: str) -> int | None:
    """The offset at which a file of the output begins; None for any other file."""
    if name == HEAD:
        return 0
    stem, _, digits = name.partition(".")
    return int(digits) if stem == HEAD and digits.isdecimal() else None


class Log:
    """Writer: keeps the first `head_max` bytes, and of the rest at least the last `tail_max`."""

    def __init__(self, head_max: int, tail_max: int) -> None:
        self.total = 0
        self.tail_max = tail_max
        self.segment_max = max(tail_max // SEGMENTS, SEGMENT_BYTES_MIN)
        self.segments: list[int] = []
        self.file = posix.open(HEAD, posix.O_WRONLY | posix.O_CREAT, 0o600)
        self.room = head_max

    def append(self, content: bytes) -> None:
        """Never raises: bytes that a full disk does not take are counted and lost."""
        rest = memoryview(content)
        while rest:
            try:
                if self.room <= 0:
                    self._roll()
                written = posix.write(self.file, rest[: self.room])
            except OSError:
                self._lose(len(rest))
                return
            self.room -= written
            self.total += written
            rest = rest[written:]

    def give_up_tail(self) -> None:
        while self.segments:
            remove(name_of(self.segments.pop()))

    def _roll(self) -> None:
        """Begin a new segment; delete the oldest if the others hold enough."""
        if len(self.segments) > 1 and self.total - self.segments[1] >= self.tail_max:
            remove(name_of(self.segments.pop(0)))
        file = posix.open(name_of(self.total), posix.O_WRONLY | posix.O_CREAT, 0o600)
        posix.close(self.file)
        self.file = file
        self.segments.append(self.total)
        self.room = self.segment_max

    def _lose(self, size: int) -> None:
        """Go on in a new segment: there is a gap before it."""
        if self.segments and self.segments[-1] == self.total:
            remove(name_of(self.segments.pop()))
        self.room = 0
        self.total += size


def remove(name: str) -> None:
    try:
        posix.unlink(name)
    except OSError:
        return  # a file too many is no reason to lose the command
