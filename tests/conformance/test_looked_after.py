"""Processes on a real store, with runners that run nothing: adopted, watched, ended, forgotten."""

import errno
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from anyio import create_task_group

from koboshi.domain import notes
from koboshi.domain.ids import ProcessId
from koboshi.domain.process import Process, ProcessState
from koboshi.domain.watch import ReportLimits, WatcherSpec
from koboshi.ports.runners import EndedBy, Life, LogSlice, Seen
from koboshi.processes.ends import ProcessEnds
from koboshi.processes.supervise import ProcessRetention, Supervise
from koboshi.processes.watch import WatchLogs
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.tools.patterns import matcher
from tests.fakes.commands import FakeRunners, ended_by, exited
from tests.harness.fake_time import HOUR_MS, SECOND_MS
from tests.harness.homes import Home, OpenHome
from tests.harness.polling import until, until_asked
from tests.harness.watched_processes import (
    EVERY,
    EXIT,
    MATCH,
    heard_in,
    left_running,
    reports,
    told,
)

SECRET = "sesame-open-sesame"


@dataclass(slots=True)
class TroubledRunners(FakeRunners):
    """Runners whose files cannot be opened now and then, and that count the reads."""

    failures: int = 0
    reads: Counter[ProcessId] = field(default_factory=Counter)
    removed: list[ProcessId] = field(default_factory=list)

    def look(self, process_id: ProcessId) -> Seen:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "too many open files")
        return FakeRunners.look(self, process_id)

    async def end(self, process_id: ProcessId, *, grace_s: float) -> Seen:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "too many open files")
        return await FakeRunners.end(self, process_id, grace_s=grace_s)

    def read_log(self, process_id: ProcessId, offset: int, limit: int) -> LogSlice:
        self.reads[process_id] += 1
        return FakeRunners.read_log(self, process_id, offset, limit)

    def remove(self, process_id: ProcessId) -> None:
        FakeRunners.remove(self, process_id)
        self.removed.append(process_id)


@dataclass(slots=True)
class Care:
    """What looks after the processes of a home."""

    home: Home
    runners: TroubledRunners = field(default_factory=TroubledRunners)
    limits: ReportLimits = field(default_factory=ReportLimits)
    wakeups: LocalWakeups = field(default_factory=LocalWakeups)
    keep_ms: int = 100 * 365 * 24 * HOUR_MS

    def redact(self, text: str) -> str:
        return text.replace(SECRET, "***")

    @asynccontextmanager
    async def going_on(self, *, watches: bool = True) -> AsyncIterator[None]:
        async with create_task_group() as tasks:
            supervise = self._supervise()
            tasks.start_soon(supervise.keep_supervising)
            tasks.start_soon(supervise.keep_forgetting)
            if watches:
                tasks.start_soon(self._watch().keep_watching)
            yield
            tasks.cancel_scope.cancel()

    def _supervise(self) -> Supervise:
        processes = self.home.store.processes
        ends = ProcessEnds(
            processes=processes,
            runners=self.runners,
            clock=self.home.clock,
            matcher=matcher,
            redact=self.redact,
        )
        return Supervise(
            store=self.home.store,
            wakeups=self.wakeups,
            clock=self.home.clock,
            runners=self.runners,
            store_end=ends.store,
            poll_seconds=0.02,
            retention=ProcessRetention(keep_ms=self.keep_ms, kept_max=100, sweep_seconds=0.02),
        )

    def _watch(self) -> WatchLogs:
        return WatchLogs(
            store=self.home.store,
            wakeups=self.wakeups,
            clock=self.home.clock,
            runners=self.runners,
            limits=self.limits,
            matcher=matcher,
            redact=self.redact,
            every_seconds=0.01,
            poll_seconds=0.02,
        )

    def ends(self, process: Process, code: int, log: bytes = b"") -> None:
        ending = replace(exited(code), ended_ms=self.home.clock.now_ms())
        self.runners.finish(process.process_id, ending, log)

    async def has(self, process: Process, state: ProcessState) -> Process:
        async def look() -> Process | None:
            stored = await self.home.store.processes.get(process.process_id)
            return stored if stored is not None and stored.state is state else None

        return await until_asked(look, f"it is {state}")

    async def said(self, process: Process, count: int) -> None:
        async def look() -> bool:
            return len(await reports(self.home, process)) >= count

        await until_asked(look, f"{count} reports")


async def running(home: Home, *watchers: WatcherSpec, log: bytes = b"") -> tuple[Care, Process]:
    """A process that outlived the gateway that started it."""
    process = await left_running(home, *watchers)
    await home.reopen(crash=True)
    care = Care(home)
    care.runners.place(process.process_id, Life.ALIVE, log=log)
    return care, process


async def words_of_newest_turn(home: Home) -> str:
    newest = (await home.turns())[-1]
    (words,) = await heard_in(home, newest.turn_id)
    return words


async def test_one_that_ended_while_we_were_down_is_told_once(home: Home) -> None:
    """S134, S132: no channel is needed for that; what is to be said waits in inbox and outbox."""
    care, process = await running(home)
    care.ends(process, 3, b"worked\n")
    async with care.going_on():
        stored = await care.has(process, ProcessState.EXITED)
        await care.said(process, 1)

    assert stored.exit_code == 3
    (words,) = await told(home)
    assert words.endswith("worked")


async def test_one_that_runs_is_watched_on_and_its_end_is_noticed_at_once(home: Home) -> None:
    """S129, S130, S133."""
    care, process = await running(home, EXIT)
    async with care.going_on():
        await until(lambda: care.runners.waits, "it is followed")
        assert await reports(home, process) == []
        care.ends(process, 0, b"done\n")
        await care.said(process, 1)

    assert notes.reported_in(await words_of_newest_turn(home)).endswith("done")


async def test_one_of_an_earlier_boot_of_the_machine_is_lost_and_said_once(home: Home) -> None:
    """S134, S137: honestly, with the reason."""
    care, process = await running(home)
    care.runners.lose(process.process_id, is_other_boot=True)
    for _ in range(2):
        async with care.going_on():
            stored = await care.has(process, ProcessState.LOST)
            assert stored.exit_code is None
        await home.reopen(crash=True)

    (words,) = await told(home)
    assert "the machine was restarted while it ran" in words


async def test_no_file_left_to_open_ends_nothing(home: Home) -> None:
    """What cannot be looked at now is looked at again, and nothing is said of it meanwhile."""
    care, process = await running(home)
    care.ends(process, 3)
    care.runners.failures = 5
    async with care.going_on():
        stored = await care.has(process, ProcessState.EXITED)

    assert stored.exit_code == 3
    assert len(await told(home)) == 1


async def test_one_that_is_to_end_is_ended_also_when_that_fails_at_first(home: Home) -> None:
    """S108, S136: a wish to end it survives, and an error on the way does not end the gateway."""
    care, process = await running(home, EXIT)
    await home.store.processes.ask_end(process.process_id)
    care.runners.failures = 2
    async with care.going_on():
        await care.has(process, ProcessState.KILLED)

    assert await reports(home, process) == []


async def test_timeout_is_reported_as_timeout_not_as_kill(home: Home) -> None:
    """S116."""
    care, process = await running(home)
    ending = replace(ended_by(EndedBy.TIMEOUT, signal=15), ended_ms=home.clock.now_ms())
    care.runners.finish(process.process_id, ending)
    async with care.going_on():
        await care.has(process, ProcessState.KILLED)

    (words,) = await told(home)
    assert "it ran longer than its time limit" in words


async def test_matches_are_found_behind_what_was_said_before_and_summed_up(home: Home) -> None:
    """S117, S139: one report at once; what follows within the interval is one more, later."""
    care, process = await running(home, MATCH, log=b"starting\nready 1\nrea")
    runner = care.runners.commands[process.process_id]
    async with care.going_on():
        await care.said(process, 1)
        assert (await words_of_newest_turn(home)).endswith("ready 1")
        await home.answer(await home.claim())
        runner.log += b"dy 2\nbusy\nready 3\n"
        home.clock.move(care.limits.every_ms)
        await care.said(process, 2)

    assert (await words_of_newest_turn(home)).endswith(":\nready 2\nready 3")


async def test_what_there_is_no_room_to_say_is_not_read_over_and_over(
    open_home: OpenHome,
) -> None:
    """S117, S170: fifty of them would keep the gateway busy with nothing."""
    home = await open_home(reports=ReportLimits(session_max=0))
    quiet = await left_running(home, MATCH)
    care, noisy = await running(home, MATCH, log=b"ready\n")
    care.runners.place(quiet.process_id, Life.ALIVE, log=b"busy\n")
    async with care.going_on():
        await until(lambda: care.runners.reads[quiet.process_id] > 50, "many looks")

    assert care.runners.reads[noisy.process_id] == 1
    assert await reports(home, noisy) == []


async def test_output_that_went_by_too_fast_to_be_looked_at_is_mentioned(home: Home) -> None:
    """S117: the log has forgotten its middle; it is not said that nothing was there."""
    care, process = await running(home, MATCH, log=b"busy\n" * 4 + b"ready 1\n" * 50)
    care.runners.head_max, care.runners.tail_max = 20, 16
    async with care.going_on():
        await care.said(process, 1)

    words = await words_of_newest_turn(home)
    assert words.endswith(f"… {50 * 8 - 16} bytes went by unseen …\nready 1\nready 1")


async def test_progress_is_what_was_printed_since(home: Home) -> None:
    care, process = await running(home, EVERY, log=f"one\n{SECRET}\n".encode())
    runner = care.runners.commands[process.process_id]
    home.clock.move(60 * SECOND_MS)
    async with care.going_on():
        await care.said(process, 1)
        assert (await words_of_newest_turn(home)).endswith(":\none\n***")
        await home.answer(await home.claim())
        runner.log += b"two\n"
        home.clock.move(60 * SECOND_MS)
        await care.said(process, 2)
        assert (await words_of_newest_turn(home)).endswith(":\ntwo")
        await home.answer(await home.claim())
        home.clock.move(60 * SECOND_MS)
        await care.said(process, 3)

    assert (await words_of_newest_turn(home)).endswith("(no new output)")


async def test_the_end_says_what_matched_and_was_not_said(home: Home) -> None:
    """S117, S118, S120: in one report, with the last of the output, without secrets."""
    care, process = await running(home, EXIT, MATCH)
    log = f"ready {SECRET}\n".encode() + b"filler\n" * 2_000 + b"the end\n"
    care.ends(process, 0, log)
    async with care.going_on(watches=False):
        await care.said(process, 1)

    words = await words_of_newest_turn(home)
    assert "ready ***\n…\n" in words
    assert notes.reported_in(words).endswith("filler\nthe end")
    assert SECRET not in words
    assert len(words) < 6_000


async def test_a_log_that_cannot_be_read_does_not_hide_the_end(home: Home) -> None:
    care, process = await running(home, EXIT)
    care.ends(process, 0)
    care.runners.error_at_log = OSError(errno.EIO, "the disk is broken")
    async with care.going_on():
        await care.said(process, 1)

    assert "the disk is broken" in await words_of_newest_turn(home)


async def test_rows_and_files_go_together_a_while_after_the_end(home: Home) -> None:
    """S109: measured from the end; what still runs stays."""
    care, process = await running(home)
    care.keep_ms = HOUR_MS
    other = await left_running(home)
    care.runners.place(other.process_id, Life.ALIVE)
    care.ends(process, 0)
    async with care.going_on():
        await care.has(process, ProcessState.EXITED)
        assert care.runners.removed == []
        home.clock.move(HOUR_MS + 1)
        await until(lambda: care.runners.removed, "it is removed")

        async def is_gone() -> bool:
            return await home.store.processes.get(process.process_id) is None

        await until_asked(is_gone, "the row is gone")

    assert care.runners.removed == [process.process_id]
    assert await home.store.processes.get(other.process_id) is not None
