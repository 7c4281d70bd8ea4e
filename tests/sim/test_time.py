"""Schedules and goals by chance: seconds pass, gateways die, clocks jump, people stop and edit.

One seed decides everything. After each step the same must hold: every due time of every schedule is
accounted for once, and no step of a goal follows from anything but a judged answer. Three planted
bugs must be found, so that we know that the checks can fail.
"""

import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from koboshi.domain.goal import Gate, GoalEvent, GoalState, Judgement, JudgeVerdict
from koboshi.domain.schedule import Overlap
from koboshi.domain.transcript import Reply
from koboshi.domain.wish import BeginGoal, MoveGoal
from koboshi.kernel import filing, goal_gate, schedules
from tests.harness.backends import SqliteBackend
from tests.harness.homes import Home, a_world
from tests.harness.tally import WANTS_ALL, add_to_tally, found_by
from tests.harness.timed import EVERY, Clockwork, a_clockwork, an_order

FIRST = int(os.environ.get("KOBOSHI_SEED", "1"))
SEEDS, KILLS = (20, 200) if WANTS_ALL else (1, 60)
SECOND_MS = 1_000


class Wrong(AssertionError):
    """Something that must hold does not."""


@dataclass(slots=True)
class Life:
    """One seed of the campaign."""

    clock: Clockwork
    chance: random.Random
    kills: int = 0
    done: list[str] = field(default_factory=list)

    @property
    def home(self) -> Home:
        return self.clock.home

    async def step(self) -> None:
        name, deed = self.chance.choice(self.deeds())
        self.done.append(name)
        await deed()
        await self.check(name)

    def deeds(self) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        often = [("second", self.second), ("fire", self.fire), ("answer", self.answer)]
        rare = [
            ("die", self.die),
            ("away", self.away),
            ("fail", self.fail),
            ("stop", self.stop),
            ("judge", self.judge),
            ("resume", self.resume),
            ("say", self.say),
        ]
        return [*often * 3, *rare]

    async def second(self) -> None:
        self.home.clock.move(self.chance.choice([200, 1_000, 1_700]))

    async def away(self) -> None:
        await self.die()
        self.home.clock.move(self.chance.choice([5, 30, 300]) * SECOND_MS)

    async def die(self) -> None:
        self.kills += 1
        await self.home.reopen(crash=True)
        for turn_id in await self.home.store.turns.unowned(with_suspended=True):
            await self.home.store.turns.recover(turn_id)

    async def fire(self) -> None:
        try:
            await self.home.store.schedules.fire(64)
        except Interrupted:
            await self.die()

    async def answer(self) -> None:
        for claim in await self.home.claims(1):
            if self.chance.random() < 0.3:
                return  # it is under way, and may die
            await self.home.store.turns.answer(claim, Reply(text="done"), ("done",))

    async def fail(self) -> None:
        for claim in await self.home.claims(1):
            is_goals = self.begun_by(claim.turn_id) == "goal"
            before = await self.goal_state()
            await self.home.store.turns.fail(claim, "the provider is down")
            after = await self.goal_state()
            if is_goals and before is GoalState.ACTIVE and after is not GoalState.PAUSED:
                raise Wrong("a turn that failed counts as progress of its goal")

    def begun_by(self, turn_id: int) -> str:
        rows = self.home.sql(
            f"SELECT kind FROM inbox WHERE turn_id = {turn_id} ORDER BY entry_id LIMIT 1"
        )
        return str(rows[0][0]) if rows else ""

    async def goal_state(self) -> GoalState | None:
        views = await self.home.store.goals.views(limit=1)
        return views[0].goal.state if views else None

    async def stop(self) -> None:
        await self.home.stop()

    async def say(self) -> None:
        await self.home.say("hello")

    async def judge(self) -> None:
        for claim in await self.home.store.goals.claim(self.home.worker.worker_id, 1):
            if self.chance.random() < 0.3:
                return  # it dies over this one
            verdict = self.chance.choice([JudgeVerdict.CONTINUE, JudgeVerdict.WAIT])
            judgement = Judgement(verdict=verdict, reason="more", minutes=1)
            await self.home.store.goals.judged(claim, judgement, 1)
        await self.home.store.goals.wake(10)

    async def resume(self) -> None:
        await self.clock.wish(MoveGoal(event=GoalEvent.RESUMED))

    async def check(self, after: str) -> None:
        """Every due time is accounted for once, and every step has one entry."""
        sql = self.home.sql
        for row in sql(
            "SELECT s.schedule_id, s.created_ms, s.due_ms, s.expression, "
            "(SELECT coalesce(sum(count), 0) FROM occasions AS o "
            "WHERE o.schedule_id = s.schedule_id) FROM schedules AS s WHERE s.state = 'armed'"
        ):
            number, made_ms, due_ms, seconds, accounted = (int(str(each)) for each in row)
            passed = (due_ms - made_ms) // (seconds * SECOND_MS) - 1
            if accounted != passed:
                raise Wrong(
                    f"after {after}: {accounted} of {passed} due times of c{number} are told"
                )
        fired = sql("SELECT count(*) FROM occasions WHERE entry_id IS NOT NULL")
        entries = sql("SELECT count(*) FROM inbox WHERE kind = 'occasion'")
        if fired != entries:
            raise Wrong(f"after {after}: {fired} occasions and {entries} entries of occasions")
        twice = sql(
            "SELECT turn_id FROM inbox WHERE kind IN ('occasion', 'goal') AND turn_id IS NOT NULL "
            "GROUP BY turn_id HAVING count(*) > 1"
        )
        if twice:
            raise Wrong(f"after {after}: turns of two occasions: {twice}")
        steps = sql("SELECT coalesce(sum(step), 0) FROM goals")
        begun = sql("SELECT count(*) FROM inbox WHERE kind = 'goal'")
        if steps != begun:
            raise Wrong(f"after {after}: {steps} steps of goals and {begun} entries of them")


class Interrupted(Exception):
    """The gateway is killed inside of something that should have been one transaction."""


async def lived(folder: Path, seed: int, kills: int) -> Life:
    chance = random.Random(seed)
    home = Home(backend=SqliteBackend(folder / "home"), world=a_world())
    await home.boot()
    clock = await a_clockwork(home)
    life = Life(clock=clock, chance=chance)
    try:
        for seconds, overlap in (("1", Overlap.SKIP), ("1", Overlap.QUEUE), ("3", Overlap.SKIP)):
            await clock.make(an_order(EVERY, seconds, overlap=overlap, late_ms=2_000))
        await clock.wish(BeginGoal(text="tidy up"))
        while life.kills < kills:
            await life.step()
    except AssertionError as error:
        raise Wrong(f"seed {seed}: {error}; last: {life.done[-8:]}") from error
    finally:
        await home.store.close()
    return life


async def lives(folder: Path, seeds: int) -> None:
    for seed in range(1, seeds):
        await lived(folder / str(seed), seed, 30)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
async def test_random_kills_with_schedules_each_second_and_goals_under_way(
    seed: int, tmp_path: Path
) -> None:
    """Must show: 200 random kills: no occasion twice, none unaccounted for."""
    life = await lived(tmp_path, seed, KILLS)
    assert life.kills >= KILLS
    add_to_tally("time", {"seed": seed, "kills": life.kills, "deeds": len(life.done)})


def moves_due_times_outside(patch: pytest.MonkeyPatch) -> None:
    """`due_ms` is moved in a transaction of its own, before the occasion is stored."""
    fire = schedules.ScheduleVerbs.fire
    calls = {"count": 0}

    async def torn(verbs: schedules.ScheduleVerbs, limit: int) -> object:
        calls["count"] += 1
        if calls["count"] % 3:
            return await fire(verbs, limit)
        with pytest.MonkeyPatch.context() as only_moves:
            only_moves.setattr(filing, "file_occasion", lambda *_: None)
            done = await fire(verbs, limit)
        if done.decided:
            raise Interrupted
        return done

    patch.setattr(schedules.ScheduleVerbs, "fire", torn)


def gates_on_words(patch: pytest.MonkeyPatch) -> None:
    """A turn that said something counts as progress, however it ended."""
    patch.setattr(goal_gate, "gate", lambda *_args, **_more: Gate.JUDGE)


def keys_without_due_time(patch: pytest.MonkeyPatch) -> None:
    """All occasions of a schedule have one key."""
    due_of = filing.DueOccasion

    def keyless(**fields: object) -> filing.DueOccasion:
        return due_of(**{**fields, "key": "occasion"})  # type: ignore[arg-type]

    patch.setattr(filing, "DueOccasion", keyless)


@pytest.mark.parametrize("plant", [moves_due_times_outside, gates_on_words, keys_without_due_time])
async def test_planted_bugs_are_found(
    plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Must show: `due_ms` moved outside the transaction, the goal gate on "text is not blank", an
    occasion key without the due time."""
    plant(monkeypatch)
    with pytest.raises(Wrong) as found:
        await lives(tmp_path, 20)
    found_by(plant.__name__, "time", "seeds", str(found.value))
