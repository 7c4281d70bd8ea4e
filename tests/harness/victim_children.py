"""A child from its call to its end, for the story that is killed at each verb."""

from collections.abc import AsyncIterator

from koboshi.domain.transcript import Effect, Reply
from tests.harness.family import makes, replies
from tests.harness.homes import Home, a_call

CHAT = "una"


async def with_children(home: Home) -> AsyncIterator[str]:
    """Each verb changes something: a child is made, answers, and its parent hears of it."""
    await home.say("a lot of work", chat=CHAT)
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    (call_id,) = await home.propose(claim, a_call("delegate", effect=Effect.REPEATABLE))
    yield "turns.append"
    await home.start(claim, call_id)
    yield "turns.start_call"
    await makes(home, claim, call_id)
    yield "children.delegate"
    await home.finish(claim, call_id)
    yield "turns.finish_call"
    await home.store.turns.answer(claim, Reply(text="asked"), (), is_silent=True)
    yield "turns.answer"
    (work,) = await home.claims()
    yield "turns.claim"
    await replies(home, work)
    yield "turns.answer"
    (hears,) = await home.claims()
    yield "turns.claim"
    await home.store.turns.answer(hears, Reply(text="heard"), (), is_silent=True)
    yield "turns.answer"
