"""Children in a home of a test: a parent gives work away, and hears of it."""

from dataclasses import dataclass

from koboshi.domain.child import Child, ChildTask
from koboshi.domain.ids import CallId, ChildId, SessionId
from koboshi.domain.transcript import Effect, Note, Reply
from koboshi.domain.turn import Claim
from tests.harness.homes import Home, a_call

PATIENCE_MS = 60_000
"""Longer than a turn waits after a death."""


async def proposes(home: Home, claim: Claim) -> CallId:
    """A call of `delegate` is committed as started."""
    (call_id,) = await home.propose(claim, a_call("delegate", effect=Effect.REPEATABLE))
    await home.start(claim, call_id)
    return call_id


async def delegates(home: Home, claim: Claim, task: str = "count the stars") -> Child:
    """A turn gives work away, and its call has a result."""
    call_id = await proposes(home, claim)
    child = await makes(home, claim, call_id, task)
    await home.finish(claim, call_id, child.shown)
    return child


async def makes(home: Home, claim: Claim, call_id: CallId, task: str = "count the stars") -> Child:
    made = await home.store.children.delegate(claim, call_id, ChildTask(name=task, task=task))
    assert made.child is not None, made.refusal
    return made.child


async def claim_of(home: Home, child: Child) -> Claim:
    """The claim on the turn that is open in a child."""
    now = await read(home, child.child_id)
    found = [each for each in await home.claims() if each.session_id == now.own_session]
    (claim,) = found
    return claim


async def after_a_death(home: Home) -> dict[SessionId, Claim]:
    """Through a death of the gateway to the next claims, by their sessions."""
    await home.reopen()
    for turn_id in await home.store.turns.unowned(with_suspended=False):
        await home.recover(turn_id)
    home.clock.move(PATIENCE_MS)
    return {each.session_id: each for each in await home.claims()}


async def replies(home: Home, claim: Claim, text: str = "as many as sand") -> None:
    """A child answers: no person is told."""
    await home.store.turns.answer(claim, Reply(text=text), (), is_silent=True)


async def read(home: Home, child_id: ChildId) -> Child:
    child = await home.store.children.child(child_id)
    assert child is not None
    return child


@dataclass(frozen=True, slots=True)
class Heard:
    """An entry of a parent's inbox about the end of a child."""

    child: str
    state: str
    turn: int | None
    reason: str | None


def heard(home: Home) -> list[Heard]:
    rows = home.sql(
        "SELECT external_id, state, turn_id, reason FROM inbox WHERE kind = 'child' "
        "ORDER BY entry_id"
    )
    return [
        Heard(
            child=f"a{child}",
            state=str(state),
            turn=None if turn is None else int(str(turn)),
            reason=None if reason is None else str(reason),
        )
        for child, state, turn, reason in rows
    ]


async def told_in(home: Home, claim: Claim) -> list[str]:
    """What the model of a turn was told about children."""
    loaded = await home.store.turns.load(claim)
    notes = [step.body.text for step in loaded.steps if isinstance(step.body, Note)]
    return [text for text in notes if "Sub-agent" in text]
