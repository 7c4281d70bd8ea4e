"""The parent of a runner: it ends what a killed runner has left. Imports nearly nothing: it is part
of the runner.

A killed runner can end nothing. All that it started then falls to its keeper, which ends it at
once, whether a gateway runs or not. The keeper holds the lock as well: the process counts as alive
until all of it has ended, and then as lost. The keeper writes no record, since it is unknown how
far the command came.
"""

import posix
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import NoReturn

    from koboshi.runner import cgroup, reaper, spec, tree
else:
    import _signal as signal

    cgroup = __import__("cgroup")
    reaper = __import__("reaper")
    spec = __import__("spec")
    tree = __import__("tree")

LOOK_EVERY_SECONDS = 0.02
KILL_WITHIN_SECONDS = 2.0


def part(writing: int) -> int:
    """Split into two processes. Returns only in the one that becomes the runner, with the pid of
    its keeper; 0 if there is none, for lack of processes: a runner can do without.

    `writing` is the end of the output that the command gets. The keeper keeps the other one open: a
    command that is asked to end must not die of its last output.
    """
    reaper.become_reaper()
    keeper = posix.getpid()
    try:
        runner = posix.fork()
    except OSError:
        return 0
    if runner:
        posix.close(writing)
        keep(runner)
    return keeper


def keep(runner: int) -> "NoReturn":
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        # A stop of everything reaches the runner as well; we end when it has.
        signal.signal(number, signal.SIG_IGN)
    # The starter waits until this pipe has no holder.
    posix.dup2(posix.open("/dev/null", posix.O_RDWR), 1)
    while posix.waitpid(-1, 0)[0] != runner:
        pass
    if tree.exists("born.json") and not tree.exists("exit.json"):
        end_remains(runner)
    posix._exit(0)


def end_remains(runner: int) -> None:
    said = tree.entries(tree.read("spec").partition(b"\0\0")[0])
    child = tree.read_child()

    def find() -> dict[int, bytes]:
        reaper.reap()
        roots = (posix.getpid(),)
        found: dict[int, bytes] = tree.find_tree(
            said[b"marker"], roots, session=runner, child=child
        )
        return found

    end_all(find, float(said[b"grace"]))
    cgroup.leave(spec.numbered(said, b"group"))


def end_all(find: "Callable[[], dict[int, bytes]]", grace: float) -> None:
    """TERM to all that are found; KILL to those that live after the grace.

    They are stopped first: a process whose awaited child has ended, and which is not signalled yet,
    would go on to its next step.
    """
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT):
        tree.send_all(find(), number)
    limit = time.monotonic() + grace
    while time.monotonic() < limit and find():
        pause()
    limit = time.monotonic() + KILL_WITHIN_SECONDS
    while time.monotonic() < limit and (found := find()):
        tree.send_all(found, signal.SIGSTOP)
        tree.send_all(find(), signal.SIGKILL)
        pause()


def pause() -> None:
    select.select((), (), (), LOOK_EVERY_SECONDS)
