"""One throw-away home: a gateway that is killed as planned while people do their errands."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import assert_never

from anyio import (
    CancelScope,
    Condition,
    Event,
    create_task_group,
    current_time,
    move_on_after,
    sleep,
    to_thread,
)

from koboshi.torture.check import answers_heard, check
from koboshi.torture.errands import Errand, ErrandKind, recovery_of
from koboshi.torture.faults import Fault, Violation
from koboshi.torture.lives import ForkServerFailed, Lives
from koboshi.torture.person import TorturePerson
from koboshi.torture.plan import AT_STOP, COLD_EVERY, Kill, RandomKill, StepKill
from koboshi.torture.platform import Platform
from koboshi.torture.remains import (
    has_runners,
    kill_a_runner,
    read_ledger,
    read_remains,
    runners_in,
)
from koboshi.torture.rest import StillOpen
from koboshi.torture.results import TrialTally
from koboshi.torture.seen import SeenEvent, TrialSeen
from koboshi.torture.strain import NONE, Strain
from koboshi.torture.visitors import Visitor, is_end
from koboshi.torture.web_client import LOST, Connection, NotNow, TalkRefused, Unknown, connection_to

START_S_MAX = 30.0
WORK_S_MAX = 1.5
STEP_S_MAX = 2.0
"""How long a life may take to come by a step; who is asked to stop may take longer."""
STOP_S_MAX = 6.0
ERRANDS_S_MAX = 90.0
"""What people still wait for must end, once the gateway is not killed any more."""
REST_S_MAX = 60.0
PAUSES_S_MAX = 300.0
"""How much longer both may take where the gateway itself shows that it waits for a time, or that
things come to an end: what has failed often is tried again after minutes, and a group with many
answers hears one in three seconds."""
LOOK_AT_PAUSES_S = 1.0
LOOK_EVERY_S = 0.05
KILLED = -9
STORAGE_FAILED, WRONG_SETUP = 74, 78
"""How a gateway may end that has too few files: it cannot go on, or does not even begin."""
SQUEEZED_S_MAX = 5.0
"""How long a life with too few files may take to start, or to say that it cannot."""
RAN_SHORT = b"Too many open files"
RUNNER_SHARE = 0.4
"""How often a runner is killed in a life, if there is one."""


@dataclass(slots=True, kw_only=True)
class Trial:
    """What is done to one home, and what came of it. `people` do not know about the kills."""

    lives: Lives
    workdir: Path
    kills: Iterator[Kill]
    platform: Platform
    now_ms: Callable[[], int]
    """The clock on the wall, which is that of the last life, too."""
    strains: Iterator[Strain] = field(default_factory=lambda: repeat(NONE))
    people: Sequence[TorturePerson] = ()
    visitors: Sequence[Visitor] = ()
    tally: TrialTally = field(default_factory=TrialTally)
    connection: Connection | None = None
    is_closing: bool = False
    is_cold: bool = False
    """Whether the present life loads the program by itself."""
    runners_killed: set[int] = field(default_factory=set)
    """Processes whose runner was killed."""
    came_up: Condition = field(default_factory=Condition)
    heard: int = 0
    """Events, by all people together."""
    news: Event = field(default_factory=Event)

    def hear(self) -> None:
        """A person or visitor was told something."""
        self.heard += 1
        self.news.set()
        self.news = Event()

    def recover(self, errand: Errand) -> None:
        """The model answers this errand from now on."""
        if errand.recovers_after_s is not None:
            (self.workdir / recovery_of(errand.mark)).touch()

    async def comes_up(self) -> Connection:
        """Wait until the gateway serves."""
        async with self.came_up:
            while self.connection is None:
                await self.came_up.wait()
            return self.connection

    async def round(self, lives_max: int, until: float) -> None:
        """So many lives, or fewer if the time is up; then let it come to rest, and check."""
        self.is_closing = self.platform.is_calm = False
        try:
            seen = await self._round(lives_max, until)
        except* (ForkServerFailed, TalkRefused, Unknown) as broken:
            for each in _leaves_of(broken):
                self._complain(Fault.BROKEN, str(each))
        else:
            self.tally.boundaries = Counter(row.boundary for row in seen.remains.processes)
            found = await to_thread.run_sync(check, seen)
            self.tally.violations += found
            self.tally.rests += 1
        finally:
            self.connection = None
            self.count()

    def count(self) -> None:
        """Bring what people have done and seen so far into the tally."""
        sent = [each for person in self.people for each in person.sent if each.message]
        told = [person.told for person in self.people]
        self.tally.messages = len(sent)
        self.tally.repeats = sum(person.repeats for person in self.people)
        self.tally.answers = sum(answers_heard(each) for each in told)
        states = [state for person in self.people for state in person.states.values()]
        self.tally.ends_told = sum(state in ("failed", "stopped") for state in states)
        self.tally.commands = sum(read_ledger(self.workdir).values())
        jobs = [each for each in sent if each.errand.kind is ErrandKind.JOB]
        heard = {mark for person in self.people for mark in person.jobs_heard}
        self.tally.jobs = sum(each.errand.mark in heard for each in jobs)
        posted = self.platform.posted
        visits = [each for visitor in self.visitors for each in visitor.visits]
        self.tally.visits = len(visits)
        self.tally.runners_killed = len(self.runners_killed)
        self.tally.visits_answered = sum(
            any(is_end(visit, each) for each in self.platform.seen_in(visit.spot)[visit.since :])
            for visit in visits
        )
        errands = [*(each.errand for each in sent), *(each.errand for each in visits)]
        self.tally.outages = sum(each.kind is ErrandKind.OUTAGE for each in errands)
        self.tally.copies = sum(each.is_labelled for each in posted)
        self.tally.mishaps = self.platform.mishaps.copy()

    async def _round(self, lives_max: int, until: float) -> TrialSeen:
        async with create_task_group() as followers:
            for person in self.people:
                followers.start_soon(person.keep_following)
            for visitor in self.visitors:
                followers.start_soon(visitor.keep_answering)
            async with create_task_group() as errands:
                for each in self._all_people():
                    errands.start_soon(each.do_errands)
                for _ in range(lives_max):
                    if current_time() >= until:
                        break
                    await self._live(next(self.kills))
                self.is_closing = self.platform.is_calm = True
                # The last one is started as an operator would start it.
                await self.lives.start(allowed=self._all_visitors(), is_cold=True)
                await self._serve()
                followers.start_soon(self._give_time, errands.cancel_scope, ERRANDS_S_MAX)
            if errands.cancel_scope.cancelled_caught:
                open_words = await self._what_is_open()
                for each in self._all_people():
                    why = f"no end, and nothing ended for {ERRANDS_S_MAX:g} s, after the last kill"
                    each.give_up(f"{why}; open: {open_words}")
            await self._come_to_rest()
            last = [await self._told_from_start(person) for person in self.people]
            await self._come_to_rest()
            followers.cancel_scope.cancel()
        await self._end()
        return await to_thread.run_sync(self._seen, last)

    async def _live(self, kill: Kill) -> None:
        """One life, from its start to its violent end."""
        strain, logged = next(self.strains), self._logged()
        self.is_cold = self.tally.lives % COLD_EVERY == COLD_EVERY - 1
        if self.is_cold:
            self.tally.cold_starts += 1
            strain = NONE
        match kill:
            case RandomKill():
                await self._live_until_chance(kill, strain)
            case StepKill():
                await self._live_until_step(kill, strain)
            case _:
                assert_never(kill)
        code, is_stop = self.lives.code, isinstance(kill, StepKill) and kill.verb in AT_STOP
        gave_out = strain.has_few_files and code in (STORAGE_FAILED, WRONG_SETUP)
        self._count_strain(strain, logged, gave_out=gave_out)
        if code not in (None, KILLED) and not (is_stop and code == 0) and not gave_out:
            self._complain(Fault.ENDED, f"a gateway ended by itself with {code}")
        is_met = isinstance(kill, RandomKill) or code == KILLED
        self.tally.lives += 1
        self.tally.missed += not is_met
        if code in (None, KILLED):
            self.tally.kills[str(kill) if is_met else "random"] += 1
        await self._end()

    async def _live_until_chance(self, kill: RandomKill, strain: Strain) -> None:
        await self.lives.start(allowed=self._allowed(), is_cold=self.is_cold, strain=strain)
        if kill.after_events is not None:
            if not await self._serve(strain):
                return
            await self._work_is_done(kill.after_events // 2)
            await self._set_clock(strain)
            await self._work_is_done(kill.after_events - kill.after_events // 2)
        self._kill_a_runner()
        await self.lives.ends(kill.after_ms / 1_000)

    async def _live_until_step(self, kill: StepKill, strain: Strain) -> None:
        allowed = self._allowed()
        await self.lives.start(kill.point, allowed=allowed, is_cold=self.is_cold, strain=strain)
        if not await self._serve(strain):
            return
        await self._set_clock(strain)
        if kill.stop_after_ms is None:
            await self.lives.ends(STEP_S_MAX)
        elif not await self.lives.ends(kill.stop_after_ms / 1_000):
            await self.lives.stop()
            await self.lives.ends(STOP_S_MAX)

    async def _set_clock(self, strain: Strain) -> None:
        """The clock jumps, if it is to."""
        if strain.jump_ms:
            self.tally.clock_jumps += 1
            await self.lives.set_clock(strain.ahead_ms + strain.jump_ms)

    def _logged(self) -> int:
        """How much the lives have written so far."""
        return self.lives.log.stat().st_size

    def _count_strain(self, strain: Strain, logged: int, *, gave_out: bool) -> None:
        self.tally.wrong_clocks += strain.ahead_ms != 0
        if strain.has_few_files:
            self.tally.few_files += 1
            self.tally.gave_out += gave_out
            with self.lives.log.open("rb") as log:
                log.seek(logged)
                self.tally.ran_short += RAN_SHORT in log.read()

    def _kill_a_runner(self) -> None:
        """Now and then a command dies with its runner, and nothing tells how it ended."""
        dice = self.platform.dice
        if dice.random() < RUNNER_SHARE:
            killed = kill_a_runner(self.lives.home, dice)
            if killed is not None:
                self.runners_killed.add(killed)

    def _all_people(self) -> "list[TorturePerson | Visitor]":
        return [*self.people, *self.visitors]

    def _all_visitors(self) -> list[int]:
        return [visitor.user for visitor in self.visitors]

    def _allowed(self) -> list[int]:
        """Whom the bot of the next life heeds: those who come always, and the others by chance."""
        by_chance = self.platform.dice.random() < 0.5
        self.tally.rights_taken += not by_chance
        return [visitor.user for visitor in self.visitors if visitor.is_regular or by_chance]

    async def _serve(self, strain: Strain = NONE) -> bool:
        """Wait until it serves, and let people in. False if it ends before."""
        is_squeezed = strain.files_max is not None
        address = await self.lives.serves(SQUEEZED_S_MAX if is_squeezed else START_S_MAX)
        if address is None:
            return False
        if strain.files_left is not None:
            await self.lives.leave_files(strain.files_left)
        async with self.came_up:
            self.connection = connection_to(address, self.lives.token)
            self.came_up.notify_all()
        return True

    async def _work_is_done(self, events: int) -> None:
        """Wait until people have heard so much of it, but not for long."""
        enough = self.heard + events
        with move_on_after(WORK_S_MAX):
            while self.heard < enough:
                await self.news.wait()

    async def _end(self) -> None:
        """Kill it, if it lives."""
        if self.lives.code is None:
            await self.lives.kill()
        self.connection = None

    async def _come_to_rest(self) -> None:
        async with create_task_group() as tasks:
            tasks.start_soon(self._give_time, tasks.cancel_scope, REST_S_MAX)
            quiet_looks = 0
            while quiet_looks < 3:
                await sleep(LOOK_EVERY_S)
                quiet_looks = quiet_looks + 1 if await self._is_quiet() else 0
            tasks.cancel_scope.cancel()
            return
        words = f"it did not come to rest, and nothing ended for {REST_S_MAX:g} s"
        self._complain(Fault.LOST, f"{words}; open: {await self._what_is_open()}")

    async def _give_time(self, scope: CancelScope, seconds: float) -> None:
        """The scope ends so long after the last thing that came to an end, and so long after the
        last moment that the gateway shows to wait for. A gateway that always waits for another
        moment, or always has more to do, does not come to rest."""
        begun = current_time()
        scope.deadline = begun + seconds
        before = StillOpen()
        while True:
            now = await self._still_open()
            due_in_s = now.due_in_s(self.now_ms())
            if due_in_s or now.has_ended_some_of(before):
                until = current_time() + due_in_s + seconds
                scope.deadline = max(scope.deadline, min(until, begun + PAUSES_S_MAX))
            before = now
            await sleep(LOOK_AT_PAUSES_S)

    async def _still_open(self) -> StillOpen:
        """What is not over, as far as the gateway tells."""
        shown = StillOpen()
        if self.connection is not None:
            with suppress(*LOST, NotNow, Unknown):
                shown = await self.connection.still_open()
        runners = runners_in(self.lives.home, self.runners_killed)
        return replace(shown, runners=runners, updates=self.platform.waiting)

    async def _what_is_open(self) -> str:
        return (await self._still_open()).words(self.now_ms())

    async def _is_quiet(self) -> bool:
        connection = await self.comes_up()
        try:
            is_over = self.platform.is_taken and not has_runners(
                self.lives.home, self.runners_killed
            )
            return is_over and await connection.is_quiet()
        except (*LOST, NotNow):
            return False

    async def _told_from_start(self, person: TorturePerson) -> tuple[str, list[SeenEvent]]:
        """What a new follower is told, up to the last words in the chat."""
        last = await person.hears_reply(await person.order("/help"))
        told: list[SeenEvent] = []
        connection = await self.comes_up()
        async with aclosing(connection.events(person.chat, None)) as events:
            async for each in events:
                told.append(each)
                if each.place >= last.place:
                    break
        return person.chat, told

    def _seen(self, from_start: Sequence[tuple[str, list[SeenEvent]]]) -> TrialSeen:
        ends = {chat: told[-1].place for chat, told in from_start}
        return TrialSeen(
            sent=[each for person in self.people for each in person.sent],
            told={
                person.chat: [each for each in person.told if each.place <= ends[person.chat]]
                for person in self.people
            },
            from_start=dict(from_start),
            remains=read_remains(self.lives.home),
            ledger=read_ledger(self.workdir),
            visits=[each for visitor in self.visitors for each in visitor.visits],
            posted=list(self.platform.posted),
            acknowledged=self.platform.acknowledged,
            runners_killed=frozenset(self.runners_killed),
            unfinished=[words for each in self._all_people() for words in each.unfinished],
        )

    def _complain(self, fault: Fault, words: str) -> None:
        self.tally.violations.append(Violation(fault=fault, words=words))


def _leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The errors inside groups of groups."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in error.exceptions:
        yield from _leaves_of(each)
