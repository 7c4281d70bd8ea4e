"""The input and the output of an agent that outlives the gateway. Imports nearly nothing: it is
part of the runner.

In: the gateway leaves messages as files `in/1`, `in/2` and so on, each there whole or not at all.
They are fed in this order. `in/N.begun` is durable before the first byte of a message reaches the
agent, and says how much the agent had written by then; `in/N.fed` follows the last byte. A FIFO is
the bell: it carries nothing, and a lost ring costs time only.

Out: all that the agent writes goes to segments `out/START`, and nothing is lost. The gateway
deletes segments that it has stored. When too much is unread, or the disk is full, the agent's
output is not read any more, so that the agent waits.
"""

import posix
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES = 65_536
SEGMENTS = 16
SEGMENT_BYTES_MIN = 4_096
LOOK_AGAIN_SECONDS = 0.25
"""How often a spool that is full, or a mark without room, is tried again."""


class Spool:
    """What the agent wrote, in files named by the offset of their first byte."""

    def __init__(self, unread_max: int) -> None:
        self.unread_max = unread_max
        self.segment_max = max(unread_max // SEGMENTS, SEGMENT_BYTES_MIN)
        self.total = 0
        self.first = 0
        self.file = -1
        self.room = 0
        self.rest = b""

    def is_full(self) -> bool:
        """Whether as much as is allowed waits to be read."""
        if self.total - self.first >= self.unread_max:
            self.first = min((int(name) for name in posix.listdir("out")), default=self.total)
        return self.total - self.first >= self.unread_max

    def append(self, content: bytes) -> None:
        """What the disk does not take now is kept, and written by `flush`."""
        self.rest += content
        self.flush()

    def flush(self) -> bool:
        """Write what is kept. False if the disk has no room."""
        while self.rest:
            try:
                if self.room <= 0:
                    self.roll()
                written = posix.write(self.file, self.rest[: self.room])
            except OSError:
                return False
            self.room -= written
            self.total += written
            self.rest = self.rest[written:]
        return True

    def roll(self) -> None:
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC
        file = posix.open(f"out/{self.total:015}", flags, 0o600)
        if self.file >= 0:
            posix.close(self.file)
        self.file = file
        self.room = self.segment_max


class AgentPipes:
    """The ends of the agent's pipes that its runner holds."""

    def __init__(self, unread_max: int, poll: "select.poll") -> None:
        self.poll = poll
        self.spool = Spool(unread_max)
        self.command_input, self.input = posix.pipe()
        self.output, self.command_output = posix.pipe()
        self.number = 1
        self.source = -1
        self.rest = b""
        self.is_reading = False
        self.is_marked = True
        posix.mkfifo("bell", 0o600)
        self.bell = posix.open("bell", posix.O_RDWR | posix.O_NONBLOCK)

    def started(self) -> None:
        """In the runner: the child has its ends."""
        for file in (self.command_input, self.command_output):
            posix.close(file)
        posix.set_blocking(self.input, False)
        posix.set_blocking(self.output, False)
        self.poll.register(self.bell, select.POLLIN)

    def files(self) -> "Iterator[int]":
        yield from (self.bell, self.input, self.output)

    def attend(self, file: int) -> None:
        """One of our files is ready."""
        if file == self.bell:
            posix.read(self.bell, CHUNK_BYTES)
        elif file == self.output:
            self.copy()

    def look(self) -> float:
        """Go on with what can go on: feed the agent, and read from it if there is room. Returns
        after how long at most it has to be looked at again."""
        self.feed()
        wants = self.output >= 0 and self.spool.flush() and not self.spool.is_full()
        if wants and not self.is_reading:
            self.poll.register(self.output, select.POLLIN)
        elif not wants and self.is_reading and self.output >= 0:
            self.poll.unregister(self.output)
        self.is_reading = wants
        is_held_up = self.output >= 0 and not wants
        return LOOK_AGAIN_SECONDS if is_held_up or not self.is_marked else 3_600.0

    def copy(self) -> int:
        """Move what the agent wrote to the spool, once. Returns how much it was."""
        try:
            content = posix.read(self.output, CHUNK_BYTES)
        except BlockingIOError:
            return 0
        if not content:
            if self.is_reading:
                self.poll.unregister(self.output)
            posix.close(self.output)
            self.output, self.is_reading = -1, False
        self.spool.append(content)
        return len(content)

    def drain(self, most: int) -> bool:
        """The agent has ended: keep all that it wrote before. False if the disk has no room for it
        yet."""
        while self.output >= 0 and most > 0 and self.spool.flush() and (copied := self.copy()):
            most -= copied
        return self.spool.flush()

    def feed(self) -> None:
        """Give the agent as much as it takes now."""
        while self.input >= 0:
            if not self.rest and not self.fetch():
                self.want_input(is_wanted=False)
                return
            try:
                written = posix.write(self.input, self.rest)
            except BlockingIOError:
                self.want_input(is_wanted=True)
                return
            except OSError:
                # It reads no more. What was not fed whole stays without its second mark.
                self.want_input(is_wanted=False)
                posix.close(self.input)
                self.input = -1
                return
            self.rest = self.rest[written:]

    def fetch(self) -> bool:
        """Take the next bytes for the agent. False if there are none now."""
        while True:
            if self.source < 0 and not self.begin():
                return False
            self.rest = posix.read(self.source, CHUNK_BYTES)
            if self.rest:
                return True
            self.end()

    def begin(self) -> bool:
        """Mark the next message as begun and open it. False if there is none, or no room for the
        mark: then it has not begun."""
        name = f"in/{self.number}"
        self.is_marked = True
        try:
            source = posix.open(name, posix.O_RDONLY | posix.O_CLOEXEC)
        except OSError:
            return False
        try:
            mark(f"{name}.begun", b"%d" % self.spool.total)
        except OSError:
            posix.close(source)
            self.is_marked = False
            return False
        self.source = source
        return True

    def end(self) -> None:
        """The message was fed whole."""
        posix.close(self.source)
        self.source = -1
        name = f"in/{self.number}"
        self.number += 1
        try:
            mark(f"{name}.fed", b"")
            posix.unlink(name)
        except OSError:
            return  # the first mark says enough

    def want_input(self, *, is_wanted: bool) -> None:
        try:
            if is_wanted:
                self.poll.register(self.input, select.POLLOUT)
            else:
                self.poll.unregister(self.input)
        except KeyError:
            return  # it was not waited for


def mark(name: str, content: bytes) -> None:
    """Make a small file that is there after a power cut. Raises OSError."""
    new = name + ".new"
    file = posix.open(new, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600)
    try:
        if posix.write(file, content) < len(content):
            raise OSError("no room for a mark")
        posix.fsync(file)
    finally:
        posix.close(file)
    posix.replace(new, name)
