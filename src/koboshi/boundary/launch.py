"""Starts an MCP server or a parser and stays its parent, so that it dies with the gateway.

Run as a program of its own, by its path and with the interpreter's `-I -S`: nothing of Python may
run between fork and exec in a process with threads, and nothing of koboshi is needed here.

The kernel can tell a process that its parent has died, but only that one: a server that is started
through `npx` or a shell is a grandchild, and would live on. So this process is told, and ends the
rest. It is the reaper of all that descends from it: what loses its parent becomes its child, in
whatever session or group it is, and stays within reach.

The gateway sends SIGTERM to ask the server to end, which is passed on, and END to end all of it by
force; END is also what the kernel sends when the gateway dies. Where the kernel knows none of this
(macOS), the server simply takes the place of this process.

This process stays outside of the server's boundary. Under bubblewrap two processes stand between it
and the server; they are not asked to end, because the server would be killed with them.
"""

import json
import os
import resource
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from koboshi.boundary.launch_settings import LaunchSettings

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# Places in /proc/<pid>/stat, counted after the name.
STATE, PARENT, START = 0, 1, 19
END = signal.SIGUSR1
END_SECONDS_MAX = 5.0
LOOK_EVERY_SECONDS = 0.02


def launch(parent: int, settings: "LaunchSettings", command: list[str]) -> None:
    """Run `command` until it or the gateway ends. Returns only by ending the process."""
    if sys.platform != "linux":
        become(command)
    heard = {END, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    prctl(PR_SET_PDEATHSIG, END)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    keeper = os.getpid()
    # The signal is only for a death that is yet to come.
    if os.getppid() != parent:
        sys.exit("the gateway is gone")
    server = os.fork()
    if server == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            sys.exit("the gateway is gone")
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
        confine(settings)
        become([*opened(settings), *command])
    leave_pipes()
    oversee(server, heard, settings)


def confine(settings: "LaunchSettings") -> None:
    """Give up what the server may not do. Bubblewrap, as a part of the command, does the rest."""
    sys.path.insert(0, settings["modules"])
    cgroup, landlock = __import__("cgroup"), __import__("landlock")
    memory, processes = settings["memory_max"], settings["processes_max"]
    groups = [os.fsencode(each) for each in settings["groups"]]
    try:
        cgroup.join(groups, memory, processes)
        limit(resource.RLIMIT_DATA, memory)
        # A group counts the processes of the server, and this limit all of the user.
        limit(resource.RLIMIT_NPROC, 0 if groups else processes)
        if settings["ports"]:
            landlock.deny_ports(frozenset(settings["ports"]))
        if settings["grants"]:
            grants = [(os.fsencode(path), rights) for path, rights in settings["grants"]]
            landlock.restrict(grants, has_network=settings["has_network"])
        if settings["launcher"]:
            landlock.leave_host()
    except OSError as error:
        sys.exit(f"its sandbox did not start: {error.strerror}")


def opened(settings: "LaunchSettings") -> "list[str]":
    """What stands before the server, with its open files."""
    if not settings["launcher"]:
        return []
    launcher = [os.fsencode(each) for each in settings["launcher"]]
    return [os.fsdecode(each) for each in __import__("sandbox").opened(launcher)]


def leave(groups: "list[str]") -> None:
    """Remove the groups of the server, which have no members now."""
    for folder in groups:
        try:
            os.rmdir(folder)
        except OSError:
            continue  # another server of this name has begun


def limit(kind: int, most: int) -> None:
    """Bound what the server and all that it starts may take; 0 is no bound. A limit that is lower
    already stays."""
    hard = resource.getrlimit(kind)[1]
    if most and (hard == resource.RLIM_INFINITY or most < hard):
        resource.setrlimit(kind, (most, most))


def oversee(server: int, heard: "set[signal.Signals]", settings: "LaunchSettings") -> None:
    """Wait for the end of the server, or for the wish that it ends. Returns only by ending."""
    is_wrapped = bool(settings["launcher"])
    while True:
        number = signal.sigwait(heard)
        if number == END:
            end_all()
            leave(settings["groups"])
            os._exit(1)
        if number == signal.SIGTERM and is_wrapped:
            ask_inside(server)
        elif number == signal.SIGTERM:
            os.killpg(0, signal.SIGTERM)
            # It came to us as well.
            signal.sigtimedwait({signal.SIGTERM}, 0)
        if number == signal.SIGCHLD:
            ended = reap()
            if server in ended:
                end_all()
                leave(settings["groups"])
                leave_like(ended[server])


def ask_inside(outer: int) -> None:
    """SIGTERM to all that runs inside, and not to bubblewrap's own two processes."""
    found = descendants()
    own = {outer, *(pid for pid in found if (stat := stat_of(pid)) and int(stat[PARENT]) == outer)}
    inside = {pid: start for pid, start in found.items() if pid not in own}
    for pid, start in inside.items() or found.items():
        send(pid, start, signal.SIGTERM)


def end_all() -> None:
    """Kill all that descends from us, whatever it forks meanwhile."""
    for _ in range(round(END_SECONDS_MAX / LOOK_EVERY_SECONDS)):
        if not (found := descendants()):
            break
        # Stopped first, all of them: what has lost its child goes on to its next step.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid, start in found.items():
                send(pid, start, number)
        reap()
        signal.sigtimedwait({signal.SIGCHLD}, LOOK_EVERY_SECONDS)
    reap()


def descendants() -> "dict[int, bytes]":
    """Those of our descendants that live, and when each began."""
    living = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := stat_of(int(name))):
            living[int(name)] = stat
    found: dict[int, bytes] = {}
    grown = {os.getpid()}
    while grown:
        grown = {pid for pid, stat in living.items() if int(stat[PARENT]) in grown}
        found.update({pid: living[pid][START] for pid in grown})
    return found


def stat_of(pid: int) -> "list[bytes]":
    """What the system tells about a living process; empty if there is none. A zombie is dead."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in front may hold anything.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return []
    return fields if len(fields) > START and fields[STATE] not in (b"Z", b"X") else []


def send(pid: int, start: bytes, number: int) -> None:
    """Signal the process that has this pid since `start`, and no other. The open descriptor belongs
    to one process for ever, so what is checked is what is signalled."""
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return  # gone
    try:
        stat = stat_of(pid)
        if stat and stat[START] == start:
            signal.pidfd_send_signal(process, number)
    except OSError:
        return  # gone meanwhile, or another user's
    finally:
        os.close(process)


def reap() -> "dict[int, int]":
    """The children that have ended, and how."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def leave_like(status: int) -> None:
    """End as the server did, so that the gateway can tell how that was."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def leave_pipes() -> None:
    """They are the server's alone: who waits for their end must not wait for us."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1, 2):
        os.dup2(nothing, file)


def become(command: "list[str]") -> None:
    # Python ignores it, and what is ignored stays so in the next program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


def prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(option, int(value))


if __name__ == "__main__":
    launch(int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:])
