"""A campaign that cannot fail proves nothing: bugs that gateways have had are planted, one at a
time, and each must be found."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import pytest
from _pytest.mark import ParameterSet
from hypothesis import Phase

from tests.harness.tally import WANTS_ALL, found_by
from tests.sim import planted
from tests.sim.plots import Plot, seeds_about
from tests.sim.run import leaves_of, run_seed
from tests.sim.store import Promises
from tests.sim.store_machine import run_machine
from tests.sim.violations import AWAITED

SEEDS_MAX = 40
EXAMPLES = 25
Bug = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Case:
    """A bug, what a run must be about to come by it, and what is said of it."""

    name: str
    bug: Bug
    plot: Plot
    said: str
    promises: Callable[[], Promises] = Promises
    number: str = ""
    """The promise of issue 12 that it breaks. While that is awaited, the gateway itself does."""


FOUND_LATE = {
    "ack before commit": 149,
    "disarm outside the transaction": 53,
    "a failed once call is an error and runs again": 69,
    "nobody tells how a job ended": 129,
    "a backlog of two people is one turn": 258,
    "what is sent to this boot is joined": 156,
    "answer and outbox in two transactions": 173,
    "counter after dispatch": 37,
}
"""Seeds that notice a bug which most do not. They are tried first; where another history has come
about since, the others are looked through as usual."""


def _acknowledges_early() -> Promises:
    return Promises(answers_early={"inbox.accept"})


CASES = (
    Case("ack before commit", nullcontext, Plot.STEPS, "is stored 0 times", _acknowledges_early),
    Case(
        "answer and outbox in two transactions",
        planted.answer_and_outbox_apart,
        Plot.STEPS,
        "answered",
    ),
    Case("commit after the effect", planted.started_after_the_effect, Plot.STEPS, " times"),
    Case(
        "disarm outside the transaction",
        planted.disarmed_apart,
        Plot.STEPS,
        "was announced after it was read",
    ),
    Case("counter after dispatch", planted.tries_counted_afterwards, Plot.ROUGH, "are counted"),
    Case(
        "abandon at the first Unsure",
        planted.abandoned_at_the_first_unsure,
        Plot.ROUGH,
        "never arrived: its outcome is unknown after 1 tries",
    ),
    Case("deaths are not counted", planted.deaths_not_counted, Plot.DEADLY, "killed the gateway"),
    Case("nothing is ever stale", planted.nothing_is_stale, Plot.AWAY, "and no question was asked"),
    Case(
        "old generations are heard",
        planted.old_generations_are_heard,
        Plot.CUTS,
        "which is of before a cut",
    ),
    Case(
        "nobody is checked for being allowed",
        planted.every_person_is_allowed,
        Plot.PEOPLE,
        "who is not allowed",
    ),
    Case(
        "unknown outcome not looked for before a repeat",
        planted.no_one_looks_before_a_repeat,
        Plot.ROUGH,
        "it was not looked for",
    ),
    Case("part order broken", planted.newest_first, Plot.ROUGH, "out of order"),
    Case(
        "a closed turn leaves no note",
        planted.closed_turns_leave_no_note,
        Plot.CUTS,
        "as one",
        number="A2",
    ),
    Case(
        "a revoked person's turn runs on because another person wrote",
        planted.others_speak_for_the_revoked,
        Plot.PEOPLE,
        "who is not allowed",
        number="A3",
    ),
    Case(
        "a failed once call is an error and runs again",
        planted.unknown_outcomes_are_errors,
        Plot.STARVED,
        "was done 2 times",
        number="A4",
    ),
    Case(
        "a wait is not capped after the clock was set back",
        planted.waits_are_not_capped,
        Plot.CLOCK,
        "it never comes to rest",
        number="A5",
    ),
    Case(
        "a place is never given back",
        planted.places_are_not_given_back,
        Plot.SIDE,
        "s for a place",
    ),
    Case(
        "a new bot reads with the old bot's cursor",
        planted.one_cursor_for_all_bots,
        Plot.BOT,
        "is stored 0 times",
        number="A6",
    ),
    Case(
        "a hanging channel blocks another",
        planted.one_limit_for_all_channels,
        Plot.SIDE,
        "waited for the other channel",
        number="B9",
    ),
    Case(
        "a short outage of the model fails the turn",
        planted.an_outage_fails_the_turn,
        Plot.OUTAGE,
        "failed: it is down",
        number="B13",
    ),
    Case(
        "nobody tells how a job ended",
        planted.no_one_tells_of_an_end,
        Plot.STARVED,
        "was told 0 times by the gateway and 0 times by the model",
    ),
    Case(
        "a backlog of two people is one turn",
        planted.a_backlog_of_two_people,
        Plot.PEOPLE,
        "joined messages of",
    ),
    Case(
        "a message is joined and not heard",
        planted.joined_and_not_heard,
        Plot.COMMON,
        "was never heard",
    ),
    Case(
        "what is sent to this boot is joined",
        planted.a_live_talk_is_joined,
        Plot.COMMON,
        "was sent to the boot that joined it",
    ),
)


def _as_parameter(case: Case) -> ParameterSet:
    is_awaited = case.number in AWAITED
    reason = f"issue 12, {case.number}: the gateway itself does this until it is fixed"
    marks = [pytest.mark.xfail(strict=True, reason=reason)] if is_awaited else []
    return pytest.param(case, id=case.name, marks=marks)


def _seeds_for(case: Case) -> list[int]:
    known = [FOUND_LATE[case.name]] if case.name in FOUND_LATE and not WANTS_ALL else []
    return [*known, *seeds_about(case.plot, SEEDS_MAX)]


def _first_violation(case: Case) -> tuple[int, str]:
    """The first seed that notices the bug, and what it says."""
    with case.bug():
        for seed in _seeds_for(case):
            run = run_seed(seed, promises=case.promises)
            found = " | ".join([run.violation, *run.awaited.values()])
            if case.said in found:
                return seed, found
    raise AssertionError(f"nobody noticed in {SEEDS_MAX} seeds")


@pytest.mark.simulation
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", [_as_parameter(case) for case in CASES])
def test_the_simulation_notices(case: Case) -> None:
    """Issue 12, C17: what a person was owed, what the model was shown, what ran in the world."""
    seed, violation = _first_violation(case)

    without = run_seed(seed)
    assert not without.violation, without.told()
    assert case.number not in without.awaited, without.awaited
    found_by(case.name, "simulation", f"seed {seed}", violation)


@pytest.mark.timeout(900)
def test_the_state_machine_notices_a_write_without_its_epoch() -> None:
    """On one machine only a claim of a dead worker can be late, and the simulation has none that
    writes: so here a person writes on purpose."""
    with (
        planted.no_epoch_in_claimed_writes(),
        pytest.raises((AssertionError, ExceptionGroup)) as found,
    ):
        run_machine(1, EXAMPLES, phases=(Phase.generate,))

    said = [str(error) for error in leaves_of(found.value)]
    assert any("a write of an old claim was taken" in words for words in said), said
    found_by("missing epoch condition", "state machine", "group 1", said[0])


def test_the_state_machine_ends_well_without_it() -> None:
    run_machine(1, EXAMPLES, phases=(Phase.generate,))
