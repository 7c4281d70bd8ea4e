"""The life of a turn is one table, and there is no way beside it."""

from dataclasses import FrozenInstanceError
from itertools import product
from typing import cast

import pytest

from koboshi.domain.errors import IllegalTransition
from koboshi.domain.ids import Epoch, Generation, SessionId, TurnId, WorkerId
from koboshi.domain.turn import (
    CLOSED,
    OPEN,
    TRANSITIONS,
    Claim,
    TurnEvent,
    TurnState,
    advance,
)
from tests.harness.transitions import ALL, missing_transitions

AS_DESIGNED = """
claimed      queued                               -> running
stepped      running                              -> running
asked        running                              -> waiting
replied      waiting                              -> queued
declined     waiting                              -> stopped
expired      waiting                              -> stopped
answered     running                              -> answered
settled      answered                             -> done
released     running                              -> queued
postponed    running                              -> queued
interrupted  running, queued                      -> stopped
erred        running                              -> failed
cut          queued, running, waiting, suspended  -> stopped
dropped      queued, running, waiting, suspended  -> stopped
resumed      queued, running, waiting, suspended  -> queued
prompted     queued, running, suspended           -> waiting
parked       queued, running                      -> suspended
cleared      queued, running, waiting, suspended  -> stopped
cleared      answered                             -> done
gave-up      queued, running, suspended           -> failed
silenced     answered                             -> done
"""
"""The table of section 6 of the design, once more and in other words."""


def designed_transitions() -> set[tuple[str, str, str]]:
    transitions = set()
    for line in AS_DESIGNED.strip().splitlines():
        way, after = line.split("->")
        event, origins = way.split(maxsplit=1)
        transitions |= {(before.strip(), event, after.strip()) for before in origins.split(",")}
    return transitions


PAIRS = tuple(product(TurnState, TurnEvent))


def test_there_are_exactly_eight_states() -> None:
    assert len(TurnState) == 8


def test_there_are_exactly_twenty_events() -> None:
    assert len(TurnEvent) == 20


def test_the_transitions_are_those_of_the_design() -> None:
    assert designed_transitions() == ALL


@pytest.mark.parametrize("pair", sorted(TRANSITIONS), ids="-".join)
def test_an_event_in_the_table_leads_where_the_table_says(
    pair: tuple[TurnState, TurnEvent],
) -> None:
    assert advance(*pair) is TRANSITIONS[pair]


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair not in TRANSITIONS], ids="-".join)
def test_an_event_that_is_not_in_the_table_is_refused(pair: tuple[TurnState, TurnEvent]) -> None:
    with pytest.raises(IllegalTransition):
        advance(*pair)


def test_a_refusal_names_the_state_and_the_event() -> None:
    with pytest.raises(IllegalTransition, match="the turn is done: claimed is no way"):
        advance(TurnState.DONE, TurnEvent.CLAIMED)


def test_every_event_happens_somewhere() -> None:
    assert {event for _before, event in TRANSITIONS} == set(TurnEvent)


def test_no_way_leads_out_of_a_closed_state() -> None:
    """S83: a turn that was stopped is not resumed by anything."""
    assert not [before for before, _event in TRANSITIONS if before in CLOSED]


def test_every_state_is_reachable_from_queued() -> None:
    assert reachable_from(TurnState.QUEUED) == set(TurnState)


@pytest.mark.parametrize("state", sorted(set(TurnState) - CLOSED))
def test_every_state_that_is_not_closed_can_still_be_closed(state: TurnState) -> None:
    assert reachable_from(state) & CLOSED


def test_a_state_is_either_open_or_answered_or_closed() -> None:
    parts = [OPEN, {TurnState.ANSWERED}, CLOSED]

    assert sorted(state for part in parts for state in part) == sorted(TurnState)


@pytest.mark.parametrize("state", sorted(OPEN))
def test_every_open_turn_can_be_cut(state: TurnState) -> None:
    """S80, S81: /stop takes a turn wherever it stands, started or not."""
    assert advance(state, TurnEvent.CUT) is TurnState.STOPPED


def test_an_answered_turn_is_not_cut() -> None:
    """The answers of earlier turns still go out after /stop."""
    assert (TurnState.ANSWERED, TurnEvent.CUT) not in TRANSITIONS


def test_only_a_claim_makes_a_turn_run() -> None:
    """S1: no work is done before the claim is stored."""
    entries = {before for (before, _), after in TRANSITIONS.items() if after is TurnState.RUNNING}

    assert entries == {TurnState.QUEUED, TurnState.RUNNING}
    assert advance(TurnState.RUNNING, TurnEvent.STEPPED) is TurnState.RUNNING


def test_only_a_running_turn_can_be_answered() -> None:
    """S87: a worker that lost the claim has nothing to answer with."""
    origins = {before for (before, _), after in TRANSITIONS.items() if after is TurnState.ANSWERED}

    assert origins == {TurnState.RUNNING}


def test_an_answered_turn_can_only_become_done() -> None:
    """S147: no second turn of the model for an answer that exists."""
    ways = {after for (before, _), after in TRANSITIONS.items() if before is TurnState.ANSWERED}

    assert ways == {TurnState.DONE}


def test_the_table_cannot_be_changed_at_run_time() -> None:
    table = cast(dict[tuple[TurnState, TurnEvent], TurnState], TRANSITIONS)

    with pytest.raises(TypeError):
        table[TurnState.DONE, TurnEvent.CLAIMED] = TurnState.RUNNING


def test_a_claim_cannot_be_altered() -> None:
    claim = Claim(
        turn_id=TurnId(1),
        session_id=SessionId(1),
        generation=Generation(0),
        epoch=Epoch(1),
        worker_id=WorkerId(1),
    )

    with pytest.raises(FrozenInstanceError):
        claim.epoch = Epoch(2)  # type: ignore[misc]


def test_all_transitions_are_missing_when_nothing_was_seen() -> None:
    assert set(missing_transitions([])) == ALL


def test_a_transition_that_was_seen_is_not_missing() -> None:
    missing = missing_transitions([("queued", "claimed", "running")])

    assert ALL.difference(missing) == {("queued", "claimed", "running")}


def test_journal_lines_that_are_no_transition_count_for_nothing() -> None:
    seen = [(None, "opened", "queued"), ("owed", "claimed", "sending"), ("done", "cut", "done")]

    assert set(missing_transitions(seen)) == ALL


def test_nothing_is_missing_once_every_transition_was_seen() -> None:
    assert missing_transitions(ALL) == ()


def reachable_from(origin: TurnState) -> set[TurnState]:
    found = {origin}
    while True:
        new = {after for (before, _), after in TRANSITIONS.items() if before in found} - found
        if not new:
            return found
        found |= new
