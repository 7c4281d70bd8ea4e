"""A command under bubblewrap, as its runner sees it. Imports nearly nothing: it is part of the
runner.

Between the runner and the command stand two processes of bubblewrap: the *outer*, our child, and
the *init* of the namespace, its child. They are never told to end while the command lives: they
would take the command's exit code with them. The command begins when the runner lets it: by then
the sandbox stands, and the runner knows which process the command is. A sandbox that does not come
so far has failed, and nothing ran.
"""

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from koboshi.runner import landlock, tree
else:
    import _signal as signal

    landlock = __import__("landlock")
    tree = __import__("tree")

READY, GO = 8, 9
"""Where the command finds its ends of the two pipes. Some shells know no number above 9."""
PRELUDE = b'echo >&%d; read -r go <&%d || exit 1; exec %d>&- %d<&-; exec "$0" -c -- "$1"' % (
    READY, GO, READY, GO,
)  # fmt: skip
COPY, OPENED = b"--file", b"open:"
GET_INFO = 0xC040FF0B
INFO_BYTES = 64
INFO_EXIT = 1 << 3


def reserve() -> None:
    """Keep the numbers free that the command will need."""
    nowhere = posix.open("/dev/null", posix.O_RDWR)
    for number in (READY, GO):
        if nowhere != number:
            posix.dup2(nowhere, number, False)


class CommandSandbox:
    def __init__(self) -> None:
        self.ready, self.command_ready = posix.pipe()
        self.command_go, self.go = posix.pipe()
        self.outer = 0
        self.init = 0
        self.init_file = -1
        self.command_file = -1
        self.has_begun = False
        self.sent: set[int] = set()

    def wrapped(self, launcher: list[bytes], shell: bytes, command: bytes) -> list[bytes]:
        """What the child of the runner becomes, with its ends of the pipes in place."""
        posix.dup2(self.command_ready, READY)
        posix.dup2(self.command_go, GO)
        return [*opened(launcher), b"/bin/sh", b"-c", PRELUDE, shell, command]

    def started(self, outer: int) -> None:
        """In the runner: the child is on its way."""
        self.outer = outer
        posix.close(self.command_ready)
        posix.close(self.command_go)

    def answer(self) -> None:
        """The sandbox stands, or has failed. Let the command begin, unless it was refused."""
        is_up = posix.read(self.ready, 16) != b""
        posix.close(self.ready)
        self.ready = -1
        if not is_up or self.go < 0:
            return
        self.init = only_child(self.outer)
        command = only_child(self.init)
        if not command:
            self.refuse()
            return
        self.init_file = posix.pidfd_open(self.init)
        self.command_file = posix.pidfd_open(command)
        self.has_begun = True
        posix.write(self.go, b"go\n")
        self.refuse()

    def refuse(self) -> None:
        """A command that has not begun will not."""
        if self.go >= 0:
            posix.close(self.go)
            self.go = -1

    def targets(self, found: dict[int, bytes], number: int) -> dict[int, bytes]:
        """Who of the tree is signalled: not the processes of bubblewrap, as long as there is
        another."""
        self.sent.add(number)
        init = self.init or only_child(self.outer)
        inside = {pid: start for pid, start in found.items() if pid not in (self.outer, init)}
        return found if number == signal.SIGKILL and not inside else inside

    def end_namespace(self) -> None:
        """With its first process, the kernel ends all others of a namespace."""
        if self.init_file >= 0:
            try:
                signal.pidfd_send_signal(self.init_file, signal.SIGKILL)
            except OSError:
                return  # it has ended

    def true_status(self, told: int) -> int:
        """How the command ended. Bubblewrap tells a death by signal as an exit code, as shells do.
        A new kernel knows better (Linux 6.15); else one of our own signals is recognised."""
        status = exit_status(self.command_file)
        if status is not None:
            return status
        code = posix.waitstatus_to_exitcode(told)
        return code - 128 if code - 128 in self.sent else told


def opened(launcher: list[bytes]) -> list[bytes]:
    """The arguments of bubblewrap, with open files in place of the names that it copies from. It
    closes them. A file that is gone meanwhile is left out."""
    said: list[bytes] = []
    rest = list(launcher)
    while rest:
        word = rest.pop(0)
        if word != COPY or not rest[0].startswith(OPENED):
            said.append(word)
            continue
        name, inside = rest.pop(0)[len(OPENED) :], rest.pop(0)
        try:
            file = posix.open(name, posix.O_RDONLY)
        except OSError:
            continue
        posix.set_inheritable(file, True)
        said += [COPY, b"%d" % file, inside]
    return said


def only_child(pid: int) -> int:
    """The child of one of bubblewrap's processes; 0 if there is none."""
    try:
        found = tree.read(f"/proc/{pid}/task/{pid}/children").split()
    except OSError:
        parent = b"%d" % pid
        stats = tree.processes()
        found = [b"%d" % each for each, stat in stats.items() if stat[tree.PARENT] == parent]
    return int(found[0]) if found else 0


def exit_status(file: int) -> "int | None":
    """The wait status of a process that was not our child; None where the kernel does not tell."""
    if file < 0:
        return None
    wanted = INFO_EXIT.to_bytes(8, sys.byteorder) + bytes(INFO_BYTES - 8)
    try:
        record = landlock.Calls().filled(file, GET_INFO, wanted)
    except OSError:
        return None
    if not int.from_bytes(record[:8], sys.byteorder) & INFO_EXIT:
        return None
    return int.from_bytes(record[-4:], sys.byteorder)
