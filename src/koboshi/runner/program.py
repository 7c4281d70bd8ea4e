"""The runner of one command: starts it, keeps its output, ends its tree, writes down how it ended.

The gateway starts it in a session of its own with three open files: 0 is the `lock` of the process,
already taken, held exactly as long as the runner lives; 1 is a pipe that closes at its birth;
2 takes its complaints. Everything it knows goes to files in the folder of the process:

    spec        what to run (written by the gateway): `name=value` ended by NUL, an empty entry,
                and then the environment in the same form
    void        it must not begin (written by whoever found it unborn)
    born.json   who the runner is, durable before the command starts
    stdin       a FIFO, if the command takes input
    log, log.N  the output: its head, and segments of its tail named by the offset of their begin
    end         the gateway wants it to end, with this grace in seconds
    exit.json   how it ended, durable before the lock is free

A hundred of these may wait at a time, and each command pays for one. So nothing is imported that is
not built into the interpreter, except `select`: `os`, `signal` and `json` cost more than all the
work here. They are fronts of `posix` and `_signal`, which are used directly.
"""

import errno
import posix
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal

MARKER = b"KOBOSHI_PROCESS"
"""The variable by which the processes of a command are known, wherever they went."""

CHUNK_BYTES = 65_536
DRAIN_BYTES_MAX = 1 << 20  # what a pipe can hold at most: all of it was written before the end
SEGMENTS = 4
SEGMENT_BYTES_MIN = 4_096
RECORD_BYTES_MAX = 4_096
ERROR_CHARS_MAX = 500
STRAY_FILES_MAX = 256

POLL_SECONDS_MAX = 3_600
LOOK_EVERY_SECONDS = 0.02
KILL_WITHIN_SECONDS = 2.0

# Places in /proc/<pid>/stat, counted after the name, which may hold anything.
STATE, PARENT, SESSION, START = 0, 1, 3, 19


def main(folder: str) -> "NoReturn":
    posix.chdir(folder)
    if posix.getsid(0) != posix.getpid():
        posix.setsid()
    posix.closerange(3, STRAY_FILES_MAX)
    signals = listen()
    if exists("void"):
        posix._exit(0)
    spec = Spec(read("spec"))
    reserve("exit.json")
    publish("born.json", birth())
    sync("..")
    # Whoever started us waits for the end of this pipe.
    posix.dup2(posix.open("/dev/null", posix.O_RDWR), 1)
    runner = Runner(spec, signals)
    if exists("end"):
        runner.by = "request"
    elif runner.start():
        runner.oversee()
        runner.drain()
    runner.record()
    posix._exit(0)


def listen() -> int:
    """A file that tells the signals that have come. From here on none of them ends us."""
    reading, writing = posix.pipe()
    posix.set_blocking(reading, False)
    posix.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    return reading


class Spec:
    """What to run, as the gateway wrote it."""

    def __init__(self, content: bytes) -> None:
        settings, _, environment = content.partition(b"\0\0")
        said = entries(settings)
        self.shell = said[b"shell"]
        self.command = said[b"command"]
        self.workdir = said[b"workdir"]
        self.timeout = float(said[b"timeout"])
        self.grace = float(said[b"grace"])
        self.takes_input = said[b"takes_input"] == b"1"
        self.head_max = int(said[b"head_max"])
        self.tail_max = int(said[b"tail_max"])
        self.marker = said[b"marker"]
        self.environment = {MARKER: self.marker} | entries(environment) | {MARKER: self.marker}


def entries(content: bytes) -> dict[bytes, bytes]:
    found = {}
    for entry in content.split(b"\0"):
        name, _, text = entry.partition(b"=")
        if name:
            found[name] = text
    return found


class Runner:
    """One command, from its start to its record."""

    def __init__(self, spec: Spec, signals: int) -> None:
        self.spec = spec
        self.signals = signals
        self.log = Log(spec.head_max, spec.tail_max)
        self.poll = select.poll()
        self.poll.register(signals, select.POLLIN)
        self.output = -1
        self.troubles = -1
        self.child = 0
        self.status: int | None = None
        self.is_asked = False
        self.by = "itself"
        self.error = ""
        self.ended_ms = 0

    def start(self) -> bool:
        """Start the command. False if not even a process could be made for it."""
        try:
            source = self.open_input()
            self.output, output = posix.pipe()
            self.troubles, troubles = posix.pipe()
            self.child = posix.fork()
        except OSError as error:
            self.by, self.error = "start", str(error)
            return False
        if self.child == 0:
            become(self.spec, source, output, troubles)
        for file in (source, output, troubles):
            posix.close(file)
        posix.set_blocking(self.output, False)
        posix.set_blocking(self.troubles, False)
        self.poll.register(self.output, select.POLLIN)
        return True

    def open_input(self) -> int:
        if not self.spec.takes_input:
            return posix.open("/dev/null", posix.O_RDONLY)
        posix.mkfifo("stdin", 0o600)
        # While we hold it for writing, nobody who closes it makes the command see an end.
        posix.open("stdin", posix.O_RDWR)
        return posix.open("stdin", posix.O_RDONLY)

    def oversee(self) -> None:
        """Keep the output until the command has ended: by itself, on request, or by its time.

        A process of it that lives on after its own end is left alone: it may be meant to."""
        limit = time.monotonic() + self.spec.timeout
        while self.status is None:
            self.attend(limit)
            if self.status is not None:
                return
            if self.is_asked:
                return self.obey()
            if time.monotonic() >= limit:
                self.by = "timeout"
                return self.end_tree(self.spec.grace)

    def obey(self) -> None:
        """End the tree. The gateway says with which grace; somebody else has only the signal."""
        grace = self.spec.grace
        if exists("end"):
            self.by = "request"
            grace = float(read("end") or grace)
        else:
            self.error = "its runner was told to stop, and not by the gateway"
        self.end_tree(grace)

    def end_tree(self, grace: float) -> None:
        """TERM to every process of the command; KILL to those that live after the grace."""
        self.signal_tree(signal.SIGTERM)
        self.signal_tree(signal.SIGCONT)
        limit = time.monotonic() + grace
        while time.monotonic() < limit and self.is_tree_alive():
            # While the command itself lives there is a signal to wait for.
            next_look = time.monotonic() + LOOK_EVERY_SECONDS
            self.attend(limit if self.status is None else min(limit, next_look))
        limit = time.monotonic() + KILL_WITHIN_SECONDS
        while self.is_tree_alive():
            if time.monotonic() > limit:
                self.error = "some of its processes could not be ended"
                return
            self.signal_tree(signal.SIGKILL)
            self.attend(time.monotonic() + LOOK_EVERY_SECONDS)

    def is_tree_alive(self) -> bool:
        return self.status is None or bool(find_tree(self.spec.marker, posix.getpid()))

    def signal_tree(self, number: int) -> None:
        if self.status is None:
            send_group(self.child, number)
        for pid, start in find_tree(self.spec.marker, posix.getpid()).items():
            send(pid, start, number)

    def attend(self, until: float) -> None:
        """Keep the output until a signal comes or the time is there."""
        while (rest := until - time.monotonic()) > 0:
            for file, _ in self.poll.poll(min(rest, POLL_SECONDS_MAX) * 1000):
                if file == self.signals:
                    return self.take_signals()
                self.copy()

    def take_signals(self) -> None:
        self.is_asked = self.is_asked or signal.SIGTERM in posix.read(self.signals, 512)
        if self.status is None:
            pid, status = posix.waitpid(self.child, posix.WNOHANG)
            if pid:
                self.status = status
                self.ended_ms = now_ms()

    def copy(self) -> int:
        """Move what there is from the pipe to the log, once. Returns how much it was."""
        try:
            content = posix.read(self.output, CHUNK_BYTES)
        except BlockingIOError:
            return 0
        if not content:
            self.poll.unregister(self.output)
            posix.close(self.output)
            self.output = -1
        self.log.append(content)
        return len(content)

    def drain(self) -> None:
        """Keep what was written before the end, and no more: somebody may go on writing."""
        left = DRAIN_BYTES_MAX
        while self.output >= 0 and left > 0 and (copied := self.copy()):
            left -= copied
        if said := posix.read(self.troubles, ERROR_CHARS_MAX) if self.status is not None else b"":
            self.by, self.error, self.status = "start", said.decode("utf-8", "replace"), None

    def record(self) -> None:
        exit_code = None if self.status is None else posix.waitstatus_to_exitcode(self.status)
        is_signal = exit_code is not None and exit_code < 0
        record = encode(
            {
                "by": self.by,
                "exit_code": None if is_signal else exit_code,
                "signal": -exit_code if exit_code is not None and is_signal else None,
                "ended_ms": self.ended_ms or now_ms(),
                "error": self.error[:ERROR_CHARS_MAX],
                "output_bytes": self.log.total,
            }
        )
        try:
            publish("exit.json", record)
        except OSError:
            # A full disk: the end of the story is worth more than its middle.
            self.log.give_up_tail()
            publish("exit.json", record)


def become(spec: Spec, source: int, output: int, troubles: int) -> "NoReturn":
    """Be the command. What keeps us from it goes to `troubles`, which closes if nothing does."""
    task = b"can not be made ready"
    try:
        # The first of these gives up our copy of the lock: no command ever holds it.
        posix.dup2(source, 0)
        posix.dup2(output, 1)
        posix.dup2(output, 2)
        posix.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        task = b"can not enter " + spec.workdir
        posix.chdir(spec.workdir)
        task = b"can not run " + spec.shell
        # Without the dashes a command that begins with one would be taken for an option.
        posix.execve(spec.shell, [spec.shell, b"-c", b"--", spec.command], spec.environment)
    except OSError as error:
        posix.write(troubles, task[:200] + b": " + (error.strerror or "").encode())
    finally:
        posix._exit(127)


class Log:
    """The output, in bounded room: the head stays, of the rest at least the last `tail_max` bytes.

    A file holds bytes without a gap from the offset in its name on (`log` from 0); what no file
    holds is lost. Readers need no more than names and sizes, whoever died in between.
    """

    def __init__(self, head_max: int, tail_max: int) -> None:
        self.total = 0
        self.tail_max = tail_max
        self.segment_max = max(tail_max // SEGMENTS, SEGMENT_BYTES_MIN)
        self.segments: list[int] = []
        self.file = posix.open("log", posix.O_WRONLY | posix.O_CREAT, 0o600)
        self.room = head_max

    def append(self, content: bytes) -> None:
        """Never raises: what a full disk does not take is counted and lost."""
        rest = memoryview(content)
        while rest:
            try:
                if not self.room:
                    self.roll()
                written = posix.write(self.file, rest[: self.room])
            except OSError:
                # What follows needs a file of its own, because there is a gap before it.
                self.room = 0
                self.total += len(rest)
                return
            self.room -= written
            self.total += written
            rest = rest[written:]

    def roll(self) -> None:
        """Begin a new segment; forget the oldest if the others hold enough."""
        posix.close(self.file)
        self.file = -1
        if len(self.segments) > 1 and self.total - self.segments[1] >= self.tail_max:
            posix.unlink(segment_name(self.segments.pop(0)))
        self.file = posix.open(segment_name(self.total), posix.O_WRONLY | posix.O_CREAT, 0o600)
        self.segments.append(self.total)
        self.room = self.segment_max

    def give_up_tail(self) -> None:
        for start in self.segments:
            posix.unlink(segment_name(start))


def segment_name(start: int) -> str:
    return f"log.{start:015}"


def find_tree(marker: bytes, runner: int) -> dict[int, bytes]:
    """The living processes of a command, as pid → start ticks.

    They are in the session of its runner, or began with the marker in their environment, or descend
    from such a process or the runner. `runner` is -1 once that is gone: then its session is nobody's.
    """
    living = {}
    for name in posix.listdir("/proc") if exists("/proc") else ():
        if name.isdigit() and (stat := stat_of(int(name))):
            living[int(name)] = stat
    living.pop(runner, None)
    session = b"%d" % runner
    line = MARKER + b"=" + marker
    found = {
        pid for pid, stat in living.items() if stat[SESSION] == session or line in environment(pid)
    }
    grown = True
    while grown:
        parents = {b"%d" % pid for pid in found} | {session}
        grown = {pid for pid, stat in living.items() if stat[PARENT] in parents} - found
        found |= grown
    return {pid: living[pid][START] for pid in found}


def stat_of(pid: int) -> list[bytes]:
    """What the system tells about a living process; empty if there is none. A zombie is dead."""
    try:
        fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []
    return fields if len(fields) > START and fields[STATE] not in (b"Z", b"X") else []


def environment(pid: int) -> bytes:
    try:
        return read(f"/proc/{pid}/environ")
    except OSError:
        return b""  # gone, or somebody else's


def send(pid: int, start: bytes, number: int) -> bool:
    """Signal the process that has this pid since `start`, and no other; False if it is gone.

    The open descriptor belongs to one process for ever, so what is checked is what is signalled.
    """
    try:
        process = posix.pidfd_open(pid)
    except OSError:
        return False
    try:
        stat = stat_of(pid)
        if not stat or stat[START] != start:
            return False
        signal.pidfd_send_signal(process, number)
    except OSError:
        return False
    finally:
        posix.close(process)
    return True


def send_group(leader: int, number: int) -> None:
    """Signal the group of our own child, which is not reaped and so has no successor."""
    try:
        posix.killpg(leader, number)
    except OSError:
        return  # it has not made its group yet, or is a zombie; the search finds the rest


def birth() -> bytes:
    stat = stat_of(posix.getpid())
    boot_id = "/proc/sys/kernel/random/boot_id"
    return encode(
        {
            "pid": posix.getpid(),
            "start_ticks": int(stat[START]) if stat else 0,
            "boot_id": read(boot_id).decode().strip() if exists(boot_id) else "",
        }
    )


def reserve(name: str) -> None:
    """Take the room that `publish` will need, while there is some."""
    file = posix.open(name + ".new", posix.O_WRONLY | posix.O_CREAT, 0o600)
    posix.write(file, b" " * RECORD_BYTES_MAX)
    posix.close(file)


def publish(name: str, record: bytes) -> None:
    """Make the record readable under its name: all of it or nothing, and still there after a
    power cut once this returns."""
    file = posix.open(name + ".new", posix.O_WRONLY | posix.O_CREAT, 0o600)
    try:
        if posix.pwrite(file, record, 0) < len(record):
            raise OSError(errno.ENOSPC, "no room for " + name)
        posix.fsync(file)
    finally:
        posix.close(file)
    posix.replace(name + ".new", name)
    sync(".")


def sync(folder: str) -> None:
    file = posix.open(folder, posix.O_RDONLY)
    try:
        posix.fsync(file)
    finally:
        posix.close(file)


def encode(record: dict[str, "str | int | None"]) -> bytes:
    """JSON, as far as it is needed here."""
    return ("{" + ", ".join(f'"{name}": {encoded(it)}' for name, it in record.items()) + "}").encode()


def encoded(value: "str | int | None") -> str:
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    safe = (each if each >= " " and each not in '"\\' else f"\\u{ord(each):04x}" for each in value)
    return '"' + "".join(safe) + '"'


def read(name: str) -> bytes:
    file = posix.open(name, posix.O_RDONLY)
    try:
        content = b""
        while chunk := posix.read(file, CHUNK_BYTES):
            content += chunk
        return content
    finally:
        posix.close(file)


def exists(name: str) -> bool:
    try:
        posix.stat(name)
    except OSError:
        return False
    return True


def now_ms() -> int:
    return time.time_ns() // 1_000_000
