"""The runner of one command: starts it, keeps its output, ends its tree, records how it ended.

The gateway starts it with three open files: 0 is the lock of the process, 1 is a pipe that closes
at its birth, 2 takes its errors. The docstring of the package has the theory of operation, and
says what the files in the folder mean.
"""

import errno
import posix
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    from koboshi.runner import (
        cgroup,
        command,
        keeper,
        log,
        memory,
        reaper,
        sandbox,
        spec,
        tree,
        wires,
    )
else:
    import _signal as signal

    # Loaded by plain names: the isolated interpreter knows no packages.
    cgroup = __import__("cgroup")
    command = __import__("command")
    keeper = __import__("keeper")
    log = __import__("log")
    memory = __import__("memory")
    reaper = __import__("reaper")
    sandbox = __import__("sandbox")
    spec = __import__("spec")
    tree = __import__("tree")
    wires = __import__("wires")

CHUNK_BYTES = 65_536
DRAIN_BYTES_MAX = 1 << 20  # the most that a pipe holds: all that was written before the end
RECORD_BYTES = 4_096
ERROR_CHARS_MAX = 500
STRAY_FILES_MAX = 256

POLL_SECONDS_MAX = 3_600
LOOK_EVERY_SECONDS = 0.02
KILLED_CODES = (-9, 137)  # by SIGKILL; and as shells tell it of what they ran
KILL_WITHIN_SECONDS = 2.0


def main(folder: str) -> "NoReturn":
    posix.chdir(folder)
    lead_session()
    posix.closerange(3, STRAY_FILES_MAX)
    sandbox.reserve()
    output = posix.pipe()
    parent = keeper.part(output[1])
    lead_session()
    # Orphans outside the command's session fall to us, and to our keeper when we are gone.
    reaper.become_reaper()
    signals = listen()
    if tree.exists("void"):
        posix._exit(0)
    runner = Runner(spec.Spec(tree.read("spec")), signals, output)
    reserve("exit.json")
    publish("born.json", birth(parent))
    sync("..")
    # Our starter waits for the end of this pipe.
    posix.dup2(posix.open("/dev/null", posix.O_RDWR), 1)
    if tree.exists("end"):
        runner.by = "request"
    elif runner.start():
        runner.oversee()
        runner.drain()
    runner.record()
    cgroup.leave(runner.spec.groups)
    posix._exit(0)


def lead_session() -> None:
    if posix.getsid(0) != posix.getpid():
        posix.setsid()


def listen() -> int:
    """A file that reports the signals received. From here on none of them ends us."""
    reading, writing = posix.pipe()
    posix.set_blocking(reading, False)
    posix.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    return reading


class Runner:
    """One command, from its start to its record."""

    def __init__(self, said: "spec.Spec", signals: int, output: tuple[int, int]) -> None:
        self.spec = said
        self.signals = signals
        self.log = log.Log(said.head_max, said.tail_max)
        self.poll = select.poll()
        self.poll.register(signals, select.POLLIN)
        self.wires = wires.AgentPipes(said.unread_max, self.poll) if said.unread_max else None
        self.input = command.open_input(said.takes_input) if self.wires is None else -1
        self.sandbox = sandbox.CommandSandbox() if said.launcher else None
        self.output, self.command_output = output
        self.troubles = -1
        self.child = 0
        self.status: int | None = None
        self.is_asked = False
        self.by = "itself"
        self.error = ""
        self.ended_ms = 0
        self.memory_kills = memory.count_file()
        self.memory_kills_before = memory.kills_seen(self.memory_kills, said.groups)

    def start(self) -> bool:
        """Start the command. False if not even a process could be made for it."""
        try:
            self.troubles, troubles = posix.pipe()
            self.child = posix.fork()
        except OSError as error:
            self.by, self.error = "start", str(error)
            return False
        if self.child == 0:
            around = self.wires
            ends = (around.command_input, around.command_output) if around else None
            files = (*(ends or (self.input, self.command_output)), self.command_output)
            command.become(self.spec, files, troubles, self.sandbox)
        for file in (self.input, self.command_output, troubles):
            if file >= 0:
                posix.close(file)
        if self.wires:
            self.wires.started()
        if self.sandbox is not None:
            self.sandbox.started(self.child)
            self.poll.register(self.sandbox.ready, select.POLLIN)
        posix.set_blocking(self.output, False)
        posix.set_blocking(self.troubles, False)
        self.poll.register(self.output, select.POLLIN)
        return True

    def oversee(self) -> None:
        """Keep the output until the command has ended: by itself, on request, or by its time.

        A process of it that lives on after the command's end is left alone: it may be meant to. In
        a boundary it is ended: nothing would look after it there.
        """
        limit = time.monotonic() + self.spec.timeout
        while self.status is None and not self.is_asked and time.monotonic() < limit:
            self.attend(limit)
        if self.status is None and self.is_asked:
            self.obey()
        elif self.status is None:
            self.by = "timeout"
            self.end_tree(self.spec.grace)
        if self.spec.is_confined:
            self.end_rest()

    def obey(self) -> None:
        """End the tree. The gateway says with which grace; any other sender has only the signal."""
        grace = self.spec.grace
        if tree.exists("end"):
            self.by = "request"
            grace = float(tree.read("end") or grace)
        self.end_tree(grace)

    def end_tree(self, grace: float) -> None:
        """TERM to every process of the command; KILL to those that live after the grace.

        They are stopped first: a process whose awaited child has ended, and which is not signalled
        yet, would go on to its next step.
        """
        if self.sandbox is not None:
            self.sandbox.refuse()
        self.signal_tree(signal.SIGSTOP)
        self.signal_tree(signal.SIGTERM)
        self.signal_tree(signal.SIGCONT)
        limit = time.monotonic() + grace
        while time.monotonic() < limit and self.is_tree_alive():
            # While the command itself lives there is a signal to wait for.
            soon = time.monotonic() + LOOK_EVERY_SECONDS
            self.attend(limit if self.status is None else min(limit, soon))
        limit = time.monotonic() + KILL_WITHIN_SECONDS
        while self.is_tree_alive():
            if time.monotonic() > limit:
                self.error = "some of its processes could not be ended"
                return
            self.signal_tree(signal.SIGSTOP)
            self.signal_tree(signal.SIGKILL)
            self.attend(time.monotonic() + LOOK_EVERY_SECONDS)

    def end_rest(self) -> None:
        """End what the command has left in its boundary. All of it is below us by now."""
        if self.sandbox is not None:
            self.sandbox.end_namespace()
        limit = time.monotonic() + KILL_WITHIN_SECONDS
        while reaper.has_children() and time.monotonic() < limit:
            self.attend(time.monotonic() + LOOK_EVERY_SECONDS)
            tree.send_all(self.find_tree() if reaper.has_children() else {}, signal.SIGKILL)

    def is_tree_alive(self) -> bool:
        return self.status is None or bool(self.find_tree())

    def find_tree(self) -> dict[int, bytes]:
        found: dict[int, bytes] = tree.find_tree(self.spec.marker, (posix.getpid(),))
        return found

    def signal_tree(self, number: int) -> None:
        """Signal each process of the command once."""
        found = self.find_tree()
        if self.sandbox is not None:
            tree.send_all(self.sandbox.targets(found, number), number)
            return
        tree.send_all(found, number)
        if not found and self.status is None:
            send_group(self.child, number)

    def attend(self, until: float) -> None:
        """Keep the output until a signal comes or the time has come."""
        while (rest := until - time.monotonic()) > 0:
            most = POLL_SECONDS_MAX if self.wires is None else self.wires.look()
            for file, _ in self.poll.poll(min(rest, most) * 1000):
                if file == self.signals:
                    self.take_signals()
                    return
                if self.sandbox is not None and file == self.sandbox.ready:
                    self.poll.unregister(file)
                    self.sandbox.answer()
                elif self.wires is not None and file in self.wires.files():
                    self.wires.attend(file)
                else:
                    self.copy()

    def take_signals(self) -> None:
        if signal.SIGTERM in posix.read(self.signals, 512):
            self.is_asked = True
        # Adopted orphans must be reaped, too, or they would stay as zombies.
        status = reaper.reap().get(self.child)
        if self.status is None and status is not None:
            self.status, self.ended_ms = status, now_ms()

    def copy(self) -> int:
        """Move the pipe's content to the log, once. Returns how much it was."""
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
        """Keep the output from before the end, and no more: other processes may go on writing."""
        while self.wires is not None and not self.wires.drain(DRAIN_BYTES_MAX):
            if self.is_asked:
                break  # else a full disk is waited for: nothing of an agent is lost
            self.attend(time.monotonic() + LOOK_EVERY_SECONDS)
        left = DRAIN_BYTES_MAX
        while self.output >= 0 and left > 0 and (copied := self.copy()):
            left -= copied
        if self.status is not None and (said := posix.read(self.troubles, ERROR_CHARS_MAX)):
            self.by, self.error, self.status = "start", said.decode("utf-8", "replace"), None
        elif self.sandbox is not None and self.status is not None:
            self.judge_sandbox(self.sandbox, self.status)

    def judge_sandbox(self, around: "sandbox.CommandSandbox", told: int) -> None:
        """A sandbox that did not stand ran nothing; all output is its own."""
        if around.has_begun:
            self.status = around.true_status(told)
            return
        self.status = None
        if self.by == "itself" and self.was_told_to_stop():
            self.by, self.error = "start", "it was told to stop before its sandbox stood"
        elif self.by == "itself":
            said = tree.read("log")[:ERROR_CHARS_MAX].decode("utf-8", "replace").strip()
            self.by, self.error = "start", "its sandbox did not start: " + said

    def reason(self, code: int | None) -> str | None:
        """Why it ended, if by itself and yet not by its own will."""
        if self.by != "itself":
            return None
        if self.was_told_to_stop():
            return "told-to-stop"
        before = self.memory_kills_before
        now = memory.kills_seen(self.memory_kills, self.spec.groups)
        is_counted = before is not None and now is not None and now > before
        return "out-of-memory" if is_counted and code in KILLED_CODES else None

    def was_told_to_stop(self) -> bool:
        """Whether a sender other than the gateway told us to stop, up to this moment: a signal to a
        whole group may have reached the command first."""
        for file, _ in self.poll.poll(0):
            if file == self.signals:
                self.take_signals()
        return self.is_asked and not tree.exists("end")

    def record(self) -> None:
        code = None if self.status is None else posix.waitstatus_to_exitcode(self.status)
        record = encode(
            {
                "by": self.by,
                "reason": self.reason(code),
                "exit_code": None if code is None or code < 0 else code,
                "signal": None if code is None or code >= 0 else -code,
                "ended_ms": self.ended_ms or now_ms(),
                "error": self.error[:ERROR_CHARS_MAX],
                "output_bytes": self.log.total,
            }
        )
        try:
            publish("exit.json", record)
        except OSError:
            # On a full disk the record of the end is worth more than the middle of the log.
            self.log.give_up_tail()
            publish("exit.json", record)


def send_group(leader: int, number: int) -> None:
    """Signal the group of our own child, where the system does not list other processes."""
    try:
        posix.killpg(leader, number)
    except OSError:
        return  # it has ended, and waits to be reaped


def birth(parent: int) -> bytes:
    """Who we are, and who our keeper is: 0 if there is none."""
    boot_id = "/proc/sys/kernel/random/boot_id"
    return encode(
        {
            "pid": posix.getpid(),
            "start_ticks": command.start_ticks(posix.getpid()),
            "boot_id": tree.read(boot_id).decode().strip() if tree.exists(boot_id) else "",
            "keeper_pid": parent,
            "keeper_start_ticks": command.start_ticks(parent) if parent else 0,
        }
    )


def reserve(name: str) -> None:
    """Take the space that `publish` will need, while there is some."""
    file = posix.open(name + ".new", posix.O_WRONLY | posix.O_CREAT, 0o600)
    posix.write(file, b" " * RECORD_BYTES)
    posix.close(file)


def publish(name: str, record: bytes) -> None:
    """Make the record readable under its name: all of it or nothing, and still there after a
    power cut once this returns."""
    file = posix.open(name + ".new", posix.O_WRONLY | posix.O_CREAT, 0o600)
    try:
        if posix.pwrite(file, record, 0) < len(record):
            raise OSError(errno.ENOSPC, "no room for " + name)
        posix.ftruncate(file, len(record))
        posix.fsync(file)
    finally:
        posix.close(file)
    posix.replace(name + ".new", name)
    sync(".")


def sync(folder: str) -> None:
    file = posix.open(folder, posix.O_RDONLY)
    posix.fsync(file)
    posix.close(file)


def encode(record: "dict[str, str | int | None]") -> bytes:
    """JSON, as far as needed here."""
    members = [f'"{name}": {encoded(value)}' for name, value in record.items()]
    return ("{" + ", ".join(members) + "}").encode()


def encoded(value: str | int | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    safe = (each if each >= " " and each not in '"\\' else f"\\u{ord(each):04x}" for each in value)
    return '"' + "".join(safe) + '"'


def now_ms() -> int:
    return time.time_ns() // 1_000_000
