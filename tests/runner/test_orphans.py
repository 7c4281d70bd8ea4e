"""A runner is killed with SIGKILL, and its command must not live on where nothing can end it.

Each command has a *token*: an argument that no other process has. So what lives of it is seen here
by its command line, and not by the means that the runner itself uses.
"""

import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import create_task_group

from koboshi.domain.ids import ProcessId
from koboshi.ports.runners import Life, Seen
from koboshi.processes.runners import LocalRunners
from koboshi.runner.tree import PARENT, SESSION, START, family, stat_of
from tests.harness.polling import until
from tests.runner.insides import everywhere
from tests.runner.yard import Yard, command_line

# Ways to leave the session, the group, the environment and the parents behind; `it` is the command.
ESCAPES = {
    "in-its-group": "it",
    "group": "set -m; it &",
    "session": "setsid it &",
    "session-and-environment": "(setsid env -i PATH=$PATH it &)",
    "twice-forked": "(env -i PATH=$PATH setsid sh -c 'it & exit 0' &)",
    "thrice-forked": "(setsid env -i PATH=$PATH setsid sh -c 'setsid sh -c \"it & \" &' &)",
}

TOKENS: list[str] = []


class Orphan:
    """A command whose process carries a token."""

    def __init__(self, yard: Yard, escape: str) -> None:
        self.yard = yard
        self.escape = escape
        self.token = str(1_000_000 + secrets.randbelow(1_000_000_000))
        self.process_id = ProcessId(0)
        TOKENS.append(self.token)

    async def start(self) -> None:
        script = ESCAPES[self.escape].replace("it", f"sleep {self.token}")
        wait = "" if self.escape == "in-its-group" else "; sleep 1000"
        self.process_id = await self.yard.start(f"echo up; {script}{wait}".replace("&;", "&"))
        await until(self.living, "the command is there")

    def living(self) -> list[int]:
        return pids_with(self.token)

    async def until_gone(self) -> None:
        await until(lambda: not self.living(), "nothing of the command lives")


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """What a failing test did not end would live for years."""
    yield
    for token in TOKENS:
        for pid in pids_with(token):
            os.kill(pid, signal.SIGKILL)
    TOKENS.clear()


def pids_with(token: str) -> list[int]:
    return [pid for pid in all_pids() if token.encode() in command_line(pid).split(b"\0")]


def all_pids() -> list[int]:
    return [int(each.name) for each in Path("/proc").glob("[0-9]*")]


@everywhere
@pytest.mark.parametrize("escape", ESCAPES)
async def test_a_command_does_not_outlive_its_killed_runner(yard: Yard, escape: str) -> None:
    """Issue 13, A1: `kill -9` of a runner; the command lived on, and nothing could end it. No
    gateway is needed, and no escape helps."""
    orphan = Orphan(yard, escape)
    await orphan.start()

    yard.kill_runner(orphan.process_id)

    await orphan.until_gone()
    seen = await yard.until_free(orphan.process_id)
    assert (seen.life, seen.ending) == (Life.LOST, None)


@everywhere
@pytest.mark.parametrize("escape", ESCAPES)
async def test_an_escaped_process_is_ended_with_its_command(yard: Yard, escape: str) -> None:
    """Issue 13, A1: the runner lives, and what left session and environment behind is still its
    own."""
    orphan = Orphan(yard, escape)
    await orphan.start()

    seen = await yard.runners.end(orphan.process_id, grace_s=5)

    assert seen.life is Life.ENDED
    assert orphan.living() == []


@pytest.mark.parametrize(
    "trap, grace_s, heard", [("echo heard >> heard; exit", 60, 1), ("", 0.1, 0)]
)
async def test_a_process_is_alive_until_nothing_of_it_lives(
    yard: Yard, trap: str, grace_s: float, heard: int
) -> None:
    """Issue 13, A1: the lock is free, and the process lost, only when its keeper has ended
    everything: politely if that helps, and by force after the grace."""
    yard.runners.timeout_grace_s = grace_s
    process_id = await yard.start(f"trap '{trap}' TERM; echo up; while :; do sleep 0.05; done")
    await yard.until_said(process_id, b"up")

    yard.kill_runner(process_id)
    seen = await yard.until_free(process_id)

    assert seen.life is Life.LOST
    assert not yard.tree(process_id)
    assert (yard.workdir / "heard").exists() == bool(heard)


@everywhere
async def test_a_runner_does_without_its_killed_keeper(yard: Yard) -> None:
    """Issue 13, A1: the keeper alone is killed. Nothing happens to the command."""
    process_id = await yard.start("echo up; read -r word; echo $word; exit 3", takes_input=True)
    await yard.until_said(process_id, b"up")

    os.kill(yard.keeper_pid(process_id), signal.SIGKILL)
    await yard.runners.write(process_id, b"on\n")
    seen = await yard.until_free(process_id)

    assert seen.ending is not None
    assert (seen.ending.exit_code, yard.output(process_id)) == (3, b"up\non\n")


@pytest.mark.parametrize("escape", ["in-its-group", "group", "session"])
async def test_what_outlives_runner_and_keeper_is_ended_by_the_gateway(
    yard: Yard, escape: str
) -> None:
    """Issue 13, A1: both are killed. The command is known by its birth and by its marker."""
    orphan = Orphan(yard, escape)
    await orphan.start()
    yard.kill_runner_and_keeper(orphan.process_id)
    assert (await yard.until_free(orphan.process_id)).life is Life.LOST
    assert orphan.living()

    seen = await LocalRunners(yard.folder).end(orphan.process_id, grace_s=5)

    assert seen.life is Life.LOST
    assert orphan.living() == []


async def test_what_lost_its_marker_is_known_by_birth_and_session(yard: Yard) -> None:
    """Issue 13, A1: the first process of the command has another environment, and so have its
    children, in groups of their own. Runner and keeper are killed."""
    orphan = Orphan(yard, "in-its-group")
    command = f"exec env -i PATH=$PATH sh -c 'set -m; sleep {orphan.token} & echo up; sleep 1000'"
    orphan.process_id = await yard.start(command)
    await yard.until_said(orphan.process_id, b"up")
    yard.kill_runner_and_keeper(orphan.process_id)
    await yard.until_free(orphan.process_id)

    await yard.runners.end(orphan.process_id, grace_s=5)

    assert orphan.living() == []


@everywhere
async def test_a_keeper_that_was_put_to_sleep_holds_nothing_up(yard: Yard) -> None:
    """Issue 13, A1: the keeper is stopped and the runner is killed: the lock is held, and no one
    acts. Asking for the end ends all of it."""
    yard.runners.reacts_within_s = 0.2
    orphan = Orphan(yard, "session-and-environment")
    await orphan.start()
    os.kill(yard.keeper_pid(orphan.process_id), signal.SIGSTOP)
    yard.kill_runner(orphan.process_id)
    assert yard.runners.look(orphan.process_id).life is Life.ALIVE

    seen = await yard.runners.end(orphan.process_id, grace_s=0)

    assert seen.life is Life.LOST
    assert orphan.living() == []


async def test_a_daemon_left_on_purpose_survives_runner_and_keeper(yard: Yard) -> None:
    """Issue 13, A1: a keeper whose runner has written its record ends nothing."""
    orphan = Orphan(yard, "session-and-environment")
    orphan.process_id = await yard.start(f"(setsid env -i sleep {orphan.token} &); exit 0")
    seen = await yard.until_free(orphan.process_id)
    keeper = yard.keeper_pid(orphan.process_id)
    await until(lambda: not stat_of(keeper), "the keeper has ended")

    assert seen.life is Life.ENDED
    # The shell may have ended before its child became the daemon; one that was ended never comes.
    await until(lambda: len(orphan.living()) == 1, "the daemon lives on")


async def test_orphans_that_end_leave_no_zombies_with_the_runner(yard: Yard) -> None:
    """Issue 13, A1: what falls to the runner is buried by it."""
    forks = "for i in 1 2 3 4 5; do (setsid env -i true &); done"
    process_id = await yard.start(f"{forks}; echo up; sleep 1000")
    await yard.until_said(process_id, b"up")
    runner = yard.runner_pid(process_id)

    def zombies() -> list[int]:
        stats = [(pid, raw_stat(pid)) for pid in all_pids()]
        return [
            pid for pid, stat in stats if stat and stat[0] == b"Z" and int(stat[PARENT]) == runner
        ]

    await until(lambda: not zombies(), "they are buried")


def raw_stat(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


@everywhere
async def test_killing_and_ending_at_once_ends_it_once(yard: Yard) -> None:
    """Issue 13, A1: the runner is killed while the gateway asks for the end, at any moment."""
    for _ in range(3):
        orphan = Orphan(yard, "session")
        await orphan.start()
        seen: list[Seen] = []

        async def end(which: ProcessId = orphan.process_id, into: list[Seen] = seen) -> None:
            into.append(await yard.runners.end(which, grace_s=5))

        async with create_task_group() as tasks:
            tasks.start_soon(end)
            await until((yard.files(orphan.process_id).folder / "end").exists, "it is asked to end")
            if stat_of(yard.runner_pid(orphan.process_id)):
                yard.kill_runner(orphan.process_id)

        assert seen[0].life in {Life.ENDED, Life.LOST}
        assert orphan.living() == []
        assert yard.runners.look(orphan.process_id) == seen[0]


def stat(*, parent: int, session: int, start: int = 5) -> list[bytes]:
    """What the system tells of a process, as far as it matters."""
    fields = [b"0"] * (START + 1)
    fields[PARENT], fields[SESSION], fields[START] = b"%d" % parent, b"%d" % session, b"%d" % start
    return fields


def test_the_session_of_a_dead_runner_counts_if_one_of_its_own_is_in_it() -> None:
    """Issue 13, A1: then its number cannot have been given away."""
    living = {
        11: stat(parent=1, session=10),
        12: stat(parent=1, session=10),
        13: stat(parent=12, session=99),
        20: stat(parent=1, session=20),
    }

    assert family(living, set(), (), session=10, child=(11, b"5")) == {11, 12, 13}
    assert family(living, {12}, (), session=10) == {11, 12, 13}


def test_the_session_of_a_dead_runner_alone_is_no_proof() -> None:
    """Issue 13, A1: another process may have the pid, and lead a session, by now."""
    living = {10: stat(parent=1, session=10), 11: stat(parent=10, session=10, start=6)}

    assert family(living, set(), (), session=10, child=(11, b"5")) == set()
