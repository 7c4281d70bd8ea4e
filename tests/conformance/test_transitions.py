"""Every way through the life of a turn can be taken by real verbs, and the journal shows it.

One short story per transition of `TRANSITIONS`. A transition without a story fails, and so does a
story without a transition: the one who adds one adds the other.
"""

import pytest

from koboshi.domain.ids import TurnId
from koboshi.domain.turn import TRANSITIONS, TurnEvent, TurnState
from tests.harness.homes import Home
from tests.harness.transitions import ALL, Transition, missing_transitions
from tests.harness.turn_stories import STORIES, E, S

NO_VERB_YET = {(S.ANSWERED, E.CLEARED)}
"""No verb gives up the deliveries of an answered turn; `outbox.settle` ends them one by one."""


async def taken(home: Home, turn_id: TurnId) -> set[Transition]:
    """The transitions in the journal of a turn. A step is a line of its own there: it belongs to
    STEPPED when the turn was running and went on running."""
    seen: set[Transition] = set()
    state: str | None = None
    for line in await home.lines(turn_id):
        if line.subject == "turn":
            if line.before is not None:
                assert line.before == state, "the journal has a gap"
                seen.add((S(line.before), E(line.event), S(str(line.after))))
            state = line.after
        elif line.subject == "step" and line.event in ("reply", "result") and state == S.RUNNING:
            seen.add((S.RUNNING, E.STEPPED, S.RUNNING))
    return seen


@pytest.mark.parametrize("pair", sorted(STORIES), ids="-".join)
async def test_the_transition_is_reached(home: Home, pair: tuple[TurnState, TurnEvent]) -> None:
    turn_id = await STORIES[pair](home)

    seen = await taken(home, turn_id)
    assert (*pair, TRANSITIONS[pair]) in seen
    assert seen <= ALL, "something that is not in the table"
    assert (await home.explain(turn_id)).turn.state == (await home.view(turn_id)).state


def test_every_transition_has_a_story() -> None:
    told = {(*pair, TRANSITIONS[pair]) for pair in STORIES}
    missing = missing_transitions(told)

    assert {(before, event) for before, event, _ in missing} == NO_VERB_YET
