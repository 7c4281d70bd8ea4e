"""The child that becomes the command. Imports nearly nothing: it is part of the runner."""

import errno
import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    from koboshi.runner import cgroup, landlock, sandbox, spec, tree
else:
    import _signal as signal

    cgroup = __import__("cgroup")
    landlock = __import__("landlock")
    tree = __import__("tree")

DATA_LIMIT, PROCESSES_LIMIT = 2, 6


def open_input(takes_input: bool) -> int:
    """What the command reads from."""
    if not takes_input:
        return posix.open("/dev/null", posix.O_RDONLY)
    posix.mkfifo("stdin", 0o600)
    # While we hold it for writing, a writer that closes it does not end the command's input.
    posix.open("stdin", posix.O_RDWR)
    return posix.open("stdin", posix.O_RDONLY)


def become(
    said: "spec.Spec",
    files: "tuple[int, int, int]",
    troubles: int,
    around: "sandbox.CommandSandbox | None",
) -> "NoReturn":
    """Become the command, with these files as 0, 1 and 2. An obstacle goes to `troubles`, which
    closes empty if there is none."""
    task = b"cannot be made ready"
    try:
        signal.set_wakeup_fd(-1)
        write_child()
        # The first of these gives up our copy of the lock: no command ever holds it. So once the
        # lock is free, the birth record says what was started.
        for place, file in enumerate(files):
            posix.dup2(file, place)
        posix.setpgid(0, 0)
        # Caught signals revert to the default by themselves; ignored ones would stay ignored.
        for number in signal.valid_signals():
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        task = b"cannot be limited"
        cgroup.join(said.groups, said.memory_max, said.processes_max)
        # A group counts the processes of its session, and this limit all of the user.
        limit(said.memory_max, 0 if said.groups else said.processes_max)
        task = b"cannot enter " + said.workdir
        # A sandbox enters it by itself: it may have another name outside.
        posix.chdir(said.workdir if around is None else "/")
        # Without the dashes a command that begins with one would be read as an option.
        program = [said.shell, b"-c", b"--", said.command]
        if around is not None:
            task = b"cannot be confined"
            landlock.leave_host()
            program = around.wrapped(said.launcher, said.shell, said.command)
        elif said.is_confined:
            task = b"cannot be confined"
            landlock.restrict(said.grants, has_network=said.has_network)
        task = b"cannot run " + program[0]
        posix.execve(program[0], program, said.environment)
    except OSError as error:
        posix.write(troubles, task[:200] + b": " + (error.strerror or "").encode())
    finally:
        posix._exit(127)


def limit(memory_max: int, processes_max: int) -> None:
    """Bound what the command and all that it starts may take; 0 is no bound. A limit that is lower
    already stays. Raises OSError."""
    for name, kind, most in (
        (b"Max data size", DATA_LIMIT, memory_max),
        (b"Max processes", PROCESSES_LIMIT, processes_max),
    ):
        if most and not is_lower(name, most):
            landlock.Calls().limit(kind, most)


def is_lower(name: bytes, most: int) -> bool:
    """Whether our own limit of that name is lower. It stands before the unit."""
    for line in tree.read("/proc/self/limits").split(b"\n"):
        if line.startswith(name):
            hard = line.split()[-2]
            return hard.isdigit() and int(hard) <= most
    return False


def write_child() -> None:
    """Record who is about to become the command. Lost with the machine, and so is the command."""
    pid, start = posix.getpid(), start_ticks(posix.getpid())
    file = posix.open("child", posix.O_WRONLY | posix.O_CREAT, 0o600)
    if posix.write(file, record := b"pid=%d\0start_ticks=%d\0" % (pid, start)) < len(record):
        raise OSError(errno.ENOSPC, "no room for its birth")
    posix.close(file)


def start_ticks(pid: int) -> int:
    stat = tree.stat_of(pid)
    return int(stat[tree.START]) if stat else 0
