"""What a torture plans: all of it from the seed, and every stored step among it."""

import random
from itertools import islice

import pytest

from koboshi.torture.errands import MARK, Errand, ErrandKind, errands_of
from koboshi.torture.plan import MOMENTS, STEPS, Aim, RandomKill, StepKill, kills_of
from tests.crash.points import EXEMPT, verbs_of_the_store

NOT_MET = {
    *EXEMPT,
    "processes.ask_end",
    "processes.report",
    "turns.summarise",
    "inbox.drop",
    "inbox.retry",
    "schedules.fire",
    "schedules.wish",
    "goals.claim",
    "goals.judged",
    "memory.wish",
    "memory.show",
    "memory.read_back",
    "memory.paint",
    "memory.painted",
    "children.delegate",
    "models.bench",
    "models.put_on",
    "budget.reserve",
    "budget.settle",
}
"""Verbs that no errand reaches: no errand ends or watches a job, orders something for later,
pursues a goal, keeps something in mind or delegates, no chat is long enough, no model costs
anything or is replaced by another, and there is no operator. They are killed at in
tests/crash/test_every_point.py; verbs that a web chat never reaches are killed at elsewhere.
"""


def errands(seed: str, number: int) -> list[Errand]:
    dice = random.Random(seed)
    return [each for place in range(number) for each in errands_of(dice, f"p1x{place:05d}")]


def test_every_verb_of_the_store_is_a_step_or_excused() -> None:
    assert set(STEPS) | NOT_MET == verbs_of_the_store()
    assert not set(STEPS) & NOT_MET


@pytest.mark.parametrize("aim", list(Aim))
def test_the_same_seed_plans_the_same_kills(aim: Aim) -> None:
    first, again, other = (list(islice(kills_of(seed, aim), 300)) for seed in (7, 7, 8))

    assert first == again
    assert first != other


def test_sixty_kills_meet_every_step_at_both_moments() -> None:
    kills = list(islice(kills_of(1, Aim.BOTH), 60))

    met = {str(kill) for kill in kills if isinstance(kill, StepKill)}
    assert met == {f"{verb}:{moment}" for verb in STEPS for moment in MOMENTS}
    assert any(isinstance(kill, RandomKill) for kill in kills)


def test_kills_are_aimed_as_asked() -> None:
    assert all(isinstance(kill, RandomKill) for kill in islice(kills_of(1, Aim.RANDOM), 100))
    assert all(isinstance(kill, StepKill) for kill in islice(kills_of(1, Aim.STEPS), 100))


def test_the_same_seed_plans_the_same_errands_of_every_kind() -> None:
    planned = errands("7", 400)

    assert planned == errands("7", 400)
    assert planned != errands("8", 400)
    assert {each.kind for each in planned} == set(ErrandKind) - {ErrandKind.REPLY, ErrandKind.ORDER}


def test_every_errand_has_a_mark_of_its_own() -> None:
    marks = [each.mark for each in errands("7", 400)]

    assert len(set(marks)) == len(marks)
    assert all(MARK.fullmatch(mark) for mark in marks)
