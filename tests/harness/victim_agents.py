"""The verbs of foreign agents, one after the other, for the story that is killed at each."""

from collections.abc import AsyncIterator

from koboshi.domain.agent import AgentProcess, MessageKind
from koboshi.domain.agent_talk import Asked, CallBegan, Heard, Said, Settled, ToldMore
from koboshi.domain.command import Ruling
from koboshi.domain.ids import ProcessId, Seq
from koboshi.domain.sandbox import Boundary
from koboshi.domain.transcript import ApprovalSeal, Note, Result, ResultStatus
from koboshi.domain.turn import Claim
from tests.harness.fake_time import DAY_MS
from tests.harness.homes import Home

AGENT, CHAT, NAME = "fake", "gus", "external"


async def with_agents(home: Home) -> AsyncIterator[str]:
    """An agent works, asks for a permission and dies; the next one is stopped and ended."""
    agents = home.store.agents
    await home.say("let the agent do it", chat=CHAT)
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    process_id = await _begin(home, claim)
    yield "agents.begin"
    settled = Settled(offset=0, number=1, can_load=True)
    assert await agents.take(process_id, 0, 10, [settled], claim)
    yield "agents.take"
    await agents.say(claim, process_id, MessageKind.NEW, "{}")
    yield "agents.say"
    named = Settled(offset=10, number=2, external_id=NAME)
    assert await agents.take(process_id, 10, 20, [named], claim)
    yield "agents.take"
    note = Note(cause="agent", text="it begins")
    prompt = MessageKind.PROMPT
    await agents.say(claim, process_id, prompt, "{}", rule="first", note=note, told="It works.")
    yield "agents.say"
    assert await agents.take(process_id, 20, 90, _a_lot(), claim)
    yield "agents.take"
    async for verb in _with_a_death(home, claim):
        yield verb
    async for verb in _with_an_end(home):
        yield verb


def _a_lot() -> list[Heard]:
    """Words, a call that has no end, a plan and a request."""
    call = CallBegan(
        offset=30, session=NAME, external_id="c1", kind="execute", title="ls", arguments="{}"
    )
    return [
        Said(offset=20, session=NAME, text="I look. "),
        call,
        Said(offset=40, session=NAME, text="I wait."),
        ToldMore(offset=50, session=NAME, kind="plan", text="[completed] first"),
        Asked(offset=60, session=NAME, external_id="7", method="m", params="{}"),
    ]


async def _with_a_death(home: Home, claim: Claim) -> AsyncIterator[str]:
    """A person allows something; the agent dies, and a person is asked what to do."""
    agents = home.store.agents
    (request,) = (await _newest(home, claim)).requests
    call_id = await agents.propose(claim, request, "agent permission", "{}")
    yield "agents.propose"
    sealed = ApprovalSeal(seal="s", rule_key="k", begin=0, end=2)
    await home.store.turns.ask(claim, call_id, "may it?", (), DAY_MS, sealed=sealed)
    yield "turns.ask"
    (question,) = [each for each in await home.store.views.questions(10) if each.text == "may it?"]
    assert await home.store.approvals.rule_on(Seq(question.question), Ruling(is_yes=True))
    yield "approvals.rule_on"
    claim = await home.claim()
    yield "turns.claim"
    result = Result(call_id=call_id, status=ResultStatus.OK, text="allowed")
    await agents.reply(request, "{}", "allowed", result)
    assert (await home.results(claim.turn_id))[call_id] == result
    yield "agents.reply"
    process = await _newest(home, claim)
    await agents.drained(process.process_id, begun=True)
    yield "agents.drained"
    (prompt,) = (await agents.standing(claim, AGENT)).prompts
    await agents.ask(claim, prompt, "The agent died. Again?", DAY_MS)
    yield "agents.ask"
    await home.stop(chat=CHAT)
    yield "inbox.accept"


async def _with_an_end(home: Home) -> AsyncIterator[str]:
    agents = home.store.agents
    await home.say("once more", chat=CHAT)
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    process_id = await _begin(home, claim)
    yield "agents.begin"
    await agents.say(claim, process_id, MessageKind.PROMPT, "{}")
    yield "agents.say"
    await home.stop(chat=CHAT)
    yield "inbox.accept"
    await agents.cancel(process_id, claim.turn_id, "{}")
    yield "agents.cancel"
    await agents.end(process_id)
    yield "agents.end"
    await home.say("and again", chat=CHAT)
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    await agents.give_up(claim, process_id, "agent-silent", "it does not answer")
    yield "agents.give_up"


async def _begin(home: Home, claim: Claim) -> ProcessId:
    process = await home.store.agents.begin(
        claim, AGENT, "{}", command="fake", workdir=".", boundary=Boundary.NONE
    )
    return process.process_id


async def _newest(home: Home, claim: Claim) -> AgentProcess:
    process = (await home.store.agents.standing(claim, AGENT)).process
    assert process is not None
    return process
