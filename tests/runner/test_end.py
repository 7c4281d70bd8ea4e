"""Ending a command: its whole tree, and no other."""

import os
import signal
from pathlib import Path

import pytest
from anyio import create_task_group, current_time

from koboshi.domain.ids import ProcessId
from koboshi.ports.runners import EndedBy, EndReason, Life, Seen
from koboshi.processes import nursery
from koboshi.processes.ends import status_of, why_ended
from koboshi.runner.tree import PARENT, stat_of
from tests.harness.polling import until
from tests.runner.insides import everywhere
from tests.runner.yard import Yard, command_line

GRACE_S = 2.0
"""Time enough for a shell to begin, or to hear a signal, beside many others."""


@everywhere
async def test_term_ends_a_polite_command_at_once(yard: Yard) -> None:
    process_id = await yard.start(
        "trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.01; done"
    )
    await yard.until_said(process_id, b"up")

    seen = await yard.runners.end(process_id, grace_s=60)

    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.exit_code) == (EndedBy.REQUEST, 9)
    assert yard.output(process_id).endswith(b"bye\n")


@everywhere
async def test_kill_ends_a_stubborn_one_after_the_grace(yard: Yard) -> None:
    process_id = await yard.start("trap 'echo no' TERM; echo up; while :; do sleep 0.01; done")
    await yard.until_said(process_id, b"up")
    asked_at = current_time()

    seen = await yard.runners.end(process_id, grace_s=GRACE_S)

    assert current_time() - asked_at >= GRACE_S
    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.signal) == (EndedBy.REQUEST, signal.SIGKILL)
    assert yard.output(process_id).count(b"no\n") == 1, "TERM is sent once"


@everywhere
async def test_a_stopped_command_is_ended_too(yard: Yard) -> None:
    process_id = await yard.start("echo up; kill -STOP $$")
    await yard.until_said(process_id, b"up")

    seen = await yard.runners.end(process_id, grace_s=60)

    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.signal) == (EndedBy.REQUEST, signal.SIGTERM)


@everywhere
async def test_ending_one_that_has_ended_tells_its_real_end(yard: Yard) -> None:
    """S108."""
    process_id = await yard.start("exit 3")
    before = await yard.until_free(process_id)

    assert await yard.runners.end(process_id, grace_s=0) == before
    assert before.ending is not None
    assert (before.ending.by, before.ending.exit_code) == (EndedBy.ITSELF, 3)


@everywhere
async def test_a_time_limit_ends_the_whole_tree(yard: Yard) -> None:
    yard.runners.timeout_grace_s = 0.1
    seen, output = await yard.run(
        "trap '' TERM; (setsid sleep 1000 &); echo up; sleep 1000; echo never",
        timeout_seconds=GRACE_S,
    )

    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.signal) == (EndedBy.TIMEOUT, signal.SIGKILL)
    assert output == b"up\n"
    assert not yard.tree(ProcessId(1))


@everywhere
@pytest.mark.parametrize("trap", ["trap '' TERM", "true"])
async def test_nothing_of_an_ended_tree_goes_on_because_another_has_ended(
    yard: Yard, trap: str
) -> None:
    """They are signalled one by one, and the last waits for the first."""
    crowd = "for i in $(seq 200); do sleep 1000 & done"
    process_id = await yard.start(
        f"{trap}; mkfifo end; sleep 1000 >end & {crowd}; (read x; echo never) <end & echo up; wait"
    )
    await yard.until_said(process_id, b"up")

    await yard.runners.end(process_id, grace_s=0.1)

    assert yard.output(process_id) == b"up\n"


async def test_no_time_limit_is_no_trouble(yard: Yard) -> None:
    seen, output = await yard.run("echo fine", timeout_seconds=float("inf"))

    assert seen.ending is not None
    assert seen.ending.exit_code == 0
    assert output == b"fine\n"


@everywhere
@pytest.mark.parametrize(
    "daemon",
    [
        "setsid sleep 1000 &",  # a session of its own, adopted by init when its parent ends
        "(setsid sh -c 'setsid sleep 1000 & sleep 1000' &)",
        "set -m; sleep 1000 &",  # a group of its own
        "env -i sleep 1000 &",  # without the marker, in our session
        "nohup sleep 1000 >/dev/null 2>&1 &",
    ],
)
async def test_a_daemon_does_not_escape(yard: Yard, daemon: str) -> None:
    process_id = await yard.start(f"{daemon}\necho up; sleep 1000")
    await yard.until_said(process_id, b"up")
    await until(lambda: len(yard.tree(process_id)) >= 2, "the daemon is there")

    seen = await yard.runners.end(process_id, grace_s=5)

    assert seen.ending is not None
    assert seen.ending.by is EndedBy.REQUEST
    assert not yard.tree(process_id)


@everywhere
async def test_a_tree_of_fifty_that_ignores_term_is_ended(yard: Yard) -> None:
    branch = "trap '' TERM; for i in 1 2 3 4 5 6 7 8 9; do (setsid sleep 1000 &) ; done; sleep 1000"
    process_id = await yard.start(
        f"trap '' TERM; for n in 1 2 3 4 5; do (setsid sh -c '{branch}' &); done; sleep 1000"
    )
    await until(lambda: len(yard.tree(process_id)) >= 50, "all of them are there")

    seen = await yard.runners.end(process_id, grace_s=0.2)

    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.error) == (EndedBy.REQUEST, "")
    assert not yard.tree(process_id)


@everywhere
async def test_one_that_keeps_forking_is_ended(yard: Yard) -> None:
    process_id = await yard.start("echo up; while :; do (setsid sleep 3 &); sleep 0.005; done")
    await yard.until_said(process_id, b"up")

    seen = await yard.runners.end(process_id, grace_s=0)

    assert seen.ending is not None
    assert not yard.tree(process_id)


async def test_a_daemon_left_on_purpose_lives_on_after_the_end(yard: Yard) -> None:
    """S111: it keeps the output open, and does not keep the command running."""
    process_id = await yard.start("echo first; sleep 1000 & exit 0")

    seen = await yard.runners.wait(process_id, 30)

    assert seen.life is Life.ENDED
    assert yard.output(process_id) == b"first\n"
    # A process has no environment to be known by while it becomes another program.
    await until(lambda: _is_daemon_there(yard, process_id), "the daemon sleeps")
    assert (await yard.runners.end(process_id, grace_s=0)) == seen
    assert len(yard.tree(process_id)) == 1, "harmless when it has ended"


def _is_daemon_there(yard: Yard, process_id: ProcessId) -> bool:
    return any(command_line(pid).startswith(b"sleep") for pid in yard.tree(process_id))


@everywhere
async def test_a_daemon_that_never_stops_writing_does_not_keep_it_running(yard: Yard) -> None:
    process_id = await yard.start("echo first; yes & exit 6")

    seen = await yard.runners.wait(process_id, 30)

    assert seen.ending is not None
    assert seen.ending.exit_code == 6
    assert yard.output(process_id).startswith(b"first\n")


async def test_a_runner_that_does_not_react_is_killed_with_its_tree(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nursery, "IS_POSSIBLE", False)
    yard.runners.python = str(deaf_runner(yard.workdir))
    yard.runners.reacts_within_s = 0.3
    process_id = await yard.start("its spec is not even read")
    await until(lambda: len(yard.tree(process_id)) == 2, "its processes are there")
    runner = yard.runner_pid(process_id)

    seen = await yard.runners.end(process_id, grace_s=0)

    assert seen.life is Life.LOST
    assert not yard.tree(process_id)
    assert not stat_of(runner)


def deaf_runner(folder: Path) -> Path:
    """A program that is born as a runner is, and then listens to no one."""
    path = folder / "deaf"
    path.write_text(
        """#!/bin/sh
trap '' TERM
cd "$5"
start=$(cut -d ' ' -f 22 /proc/$$/stat)
boot=$(cat /proc/sys/kernel/random/boot_id)
echo '{"pid": '$$', "start_ticks": '$start', "boot_id": "'$boot'"}' > born.json
exec > /dev/null
export KOBOSHI_PROCESS=$(tr '\\0' '\\n' < spec | sed -n 's/^marker=//p')
setsid sleep 1000 < /dev/null &
sleep 1000
"""
    )
    path.chmod(0o700)
    return path


@everywhere
async def test_a_runner_put_to_sleep_wakes_up_and_obeys(yard: Yard) -> None:
    process_id = await yard.start("echo up; sleep 1000")
    await yard.until_said(process_id, b"up")
    os.kill(yard.runner_pid(process_id), signal.SIGSTOP)

    seen = await yard.runners.end(process_id, grace_s=5)

    assert seen.ending is not None
    assert seen.ending.by is EndedBy.REQUEST


async def test_a_stop_that_reaches_command_and_runner_at_once_is_no_normal_end(yard: Yard) -> None:
    """S171: as a service manager does that stops a whole group."""
    process_id = await yard.start("trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done")
    await yard.until_said(process_id, b"up")
    runner = yard.runner_pid(process_id)
    stats = {pid: stat_of(pid) for pid in yard.tree(process_id)}  # a `sleep` may be gone by now
    (command,) = [pid for pid, stat in stats.items() if stat and int(stat[PARENT]) == runner]

    os.kill(runner, signal.SIGSTOP)
    os.kill(command, signal.SIGTERM)
    await until(lambda: not stat_of(command), "the command has ended")
    os.kill(runner, signal.SIGTERM)
    os.kill(runner, signal.SIGCONT)
    seen = await yard.until_free(process_id)

    assert seen.ending is not None
    assert (seen.ending.reason, seen.ending.exit_code) == (EndReason.TOLD_TO_STOP, 0)


@everywhere
@pytest.mark.parametrize("code, trap", [(0, "exit 0"), (None, "-")])
async def test_a_stop_by_another_program_is_no_normal_end(
    yard: Yard, code: int | None, trap: str
) -> None:
    """S171: a service manager that ends everything tells the runner, too. A command that then says
    goodbye with 0 has not done what it was to do."""
    process_id = await yard.start(f"trap '{trap}' TERM; echo up; while :; do sleep 0.01; done")
    await yard.until_said(process_id, b"up")

    os.kill(yard.runner_pid(process_id), signal.SIGTERM)
    seen = await yard.until_free(process_id)

    assert seen.ending is not None
    assert (seen.ending.reason, seen.ending.exit_code) == (EndReason.TOLD_TO_STOP, code)
    assert status_of(seen) == "killed"
    assert why_ended(seen).startswith("it was told to stop, and not by the gateway: it ")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE])
async def test_a_runner_is_not_ended_by_a_terminal(yard: Yard, number: int) -> None:
    process_id = await yard.start("read -r word; echo $word", takes_input=True)

    os.kill(yard.runner_pid(process_id), number)
    await yard.runners.write(process_id, b"alive\n")
    await yard.until_free(process_id)

    assert yard.output(process_id) == b"alive\n"


@everywhere
@pytest.mark.parametrize("_", range(5))
async def test_one_asked_to_end_while_it_is_being_born_ends(yard: Yard, _: int) -> None:
    process_id = yard.next_id()
    seen: list[Seen] = []

    async def end() -> None:
        await until((yard.files(process_id).folder / "spec").exists, "it begins")
        seen.append(await yard.runners.end(process_id, grace_s=5))

    async with create_task_group() as tasks:
        tasks.start_soon(end)
        await yard.runners.start(process_id, yard.spec("sleep 1000"))

    assert seen[0].life in {Life.ENDED, Life.UNBORN}
    assert yard.runners.look(process_id) == seen[0]
    assert not yard.tree(process_id)


@everywhere
async def test_ending_one_twice_at_a_time_is_ending_it_once(yard: Yard) -> None:
    process_id = await yard.start("echo up; sleep 1000")
    await yard.until_said(process_id, b"up")
    seen: list[Seen] = []

    async def end() -> None:
        seen.append(await yard.runners.end(process_id, grace_s=5))

    async with create_task_group() as tasks:
        tasks.start_soon(end)
        tasks.start_soon(end)

    assert seen[0] == seen[1]
    assert seen[0].life is Life.ENDED
