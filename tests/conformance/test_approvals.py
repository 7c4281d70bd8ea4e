"""A yes is bound to what it was given for; rules are kept, listed and revoked; who may answer."""

import pytest

from koboshi.commands.parse import parse_command
from koboshi.commands.run import respond
from koboshi.domain.approval import OPERATOR
from koboshi.domain.command import Ruling
from koboshi.domain.errors import Fenced
from koboshi.domain.files import Attachment
from koboshi.domain.ids import CallId, Seq
from koboshi.domain.inbox import EntryState, Words
from koboshi.domain.outbox import Delivery, DeliveryState, Postpone, Settle
from koboshi.domain.phrases import ALWAYS, NO, NO_YES_HERE, YES_NO, no_spoken_ruling
from koboshi.domain.rule import RuleId
from koboshi.domain.transcript import ApprovalSeal, Effect, Message, Need
from koboshi.domain.turn import Claim, TurnState
from koboshi.ports.channel import Inbound, Receipt
from koboshi.ports.store import Arrival
from tests.harness.fake_time import DAY_MS
from tests.harness.homes import Home, OpenHome, a_call, a_world

SEALED = ApprovalSeal(seal="seal-1", rule_key="key-1", begin=4, end=8, asked_by="ann")
RECORDING = Attachment(reference="r", path="received/said.ogg", kind="voice")


async def gated(
    home: Home,
    sealed: ApprovalSeal = SEALED,
    *,
    chat: str = "ann",
    chat_text: str = "",
) -> tuple[Claim, CallId, bool]:
    """A turn whose call needs an approval; whether the person was asked."""
    claim = await home.work_on("clean up", chat=chat)
    call = a_call("rm", effect=Effect.ONCE, need=Need.APPROVAL)
    (call_id,) = await home.propose(claim, call)
    is_asked = await home.store.turns.ask(
        claim,
        call_id,
        "run make?",
        (*YES_NO, ALWAYS),
        DAY_MS,
        sealed=sealed,
        chat_text=chat_text,
    )
    return claim, call_id, is_asked


async def question_of(home: Home) -> Seq:
    (asked,) = await home.store.views.questions(10)
    return Seq(asked.question)


async def send(home: Home, text: str = "", *, chat: str = "ann", **more: object) -> Receipt:
    """Words or a button, as they come in from a platform."""
    inbound = home.inbound(text or "x", chat=chat, person="ann")
    words = Words(text=text, sent_ms=0, anchor=inbound.external_id, **more)  # type: ignore[arg-type]
    made = Inbound(route=inbound.route, external_id=inbound.external_id, sender="ann", words=words)
    command = None if words.is_forwarded else parse_command(text)
    (receipt,) = await home.accept(Arrival(inbound=made, command=command), respond=respond)
    return receipt


async def last_words(home: Home, chat: str = "ann") -> str:
    return (await home.deliver(chat))[-1].text


# ── the seal ────────────────────────────────────────────────────────────────────────────────────


async def test_a_call_starts_only_under_the_seal_of_its_yes(home: Home) -> None:
    """Issue 15, item 5: bound to the exact bytes, also after a kill."""
    _, call_id, _ = await gated(home)
    await home.say("yes")
    await home.reopen(crash=True)
    claim = await home.claim()

    (record,) = (await home.store.turns.load(claim)).calls
    assert record.seal == "seal-1"
    for wrong in (None, "", "seal-2"):
        with pytest.raises(Fenced):
            await home.store.turns.start_call(claim, call_id, wrong)
    assert await home.store.turns.start_call(claim, call_id, "seal-1")
    with pytest.raises(Fenced):
        await home.store.turns.start_call(claim, call_id, "seal-1")


async def test_an_approval_of_an_earlier_version_has_no_seal_and_runs_nothing_else(
    home: Home,
) -> None:
    """Its question stored none, so no seal that is made now fits."""
    claim = await home.work_on("clean up")
    call_id = await home.ask(claim, need=Need.APPROVAL)
    await home.say("yes")
    claim = await home.claim()

    with pytest.raises(Fenced):
        await home.store.turns.start_call(claim, call_id, "seal-1")


async def test_the_literal_goes_to_the_channel_with_the_question(home: Home) -> None:
    """Issue 15, V1."""
    await gated(home)

    (delivery,) = await home.deliver()
    assert delivery.literal == (4, 8)
    (asked,) = await home.store.views.questions(10)
    assert (asked.literal, asked.asked_by) == ((4, 8), "ann")


# ── too long for the chat ───────────────────────────────────────────────────────────────────────


LONG = ApprovalSeal(seal="seal-1", rule_key="key-1", begin=4, end=8, is_elsewhere=True)


@pytest.mark.parametrize("said", ["yes", "always", "/approve", "/approve always", "(button)"])
async def test_a_yes_in_a_chat_that_could_not_show_it_whole_counts_nothing(
    home: Home, said: str
) -> None:
    """Issue 15, V2."""
    claim, _, _ = await gated(home, LONG, chat_text="too long")
    (delivery,) = await home.deliver()
    assert delivery.choices == (NO,)
    if said == "(button)":
        await send(home, question=await question_of(home), choice_id="yes")
    else:
        await send(home, said)

    assert (await home.view(claim.turn_id)).state == TurnState.WAITING
    assert "too long to approve here" in await last_words(home)
    assert await home.claims() == ()


@pytest.mark.parametrize("said", ["no", "put it into a file", "/deny"])
async def test_a_no_counts_everywhere(home: Home, said: str) -> None:
    await gated(home, LONG, chat_text="too long")
    await send(home, said)

    claim = await home.claim()
    assert [each.text for each in (await home.results(claim.turn_id)).values()]


async def test_the_page_approves_what_the_chat_could_not_show(home: Home) -> None:
    """Issue 15, V2."""
    _, call_id, _ = await gated(home, LONG, chat_text="too long")
    question = await question_of(home)

    assert await home.store.approvals.rule_on(question, Ruling(is_yes=True))
    assert not await home.store.approvals.rule_on(question, Ruling(is_yes=True))
    claim = await home.claim()
    (record,) = (await home.store.turns.load(claim)).calls
    assert (record.approved_by, record.seal) == (OPERATOR, "seal-1")
    assert await home.store.turns.start_call(claim, call_id, "seal-1")


REFUSED = Settle(state=DeliveryState.REJECTED, reason="too long", is_told=True)
LATER = Postpone(wait_ms=60_000, is_ambiguous=False, reason="not now")
UNSURE = Postpone(wait_ms=60_000, is_ambiguous=True, reason="broke off", is_unsure=True)


async def try_to_show(home: Home, outcome: Settle | Postpone, chat: str = "ann") -> None:
    """The platform says this to the next card that the chat is owed."""
    worker = home.worker.worker_id
    card = await home.store.outbox.claim(await home.session_id(chat), worker)
    assert isinstance(card, Delivery)
    await home.store.outbox.settle(card, worker, outcome)


@pytest.mark.parametrize("said", ["yes", "/approve"])
@pytest.mark.parametrize("outcome", [REFUSED, LATER])
async def test_a_yes_in_a_chat_where_the_question_did_not_arrive_counts_nothing(
    home: Home, outcome: Settle | Postpone, said: str
) -> None:
    """Issue 15: what is approved is what was shown. The page shows it, and a no needs no look."""
    claim, call_id, _ = await gated(home)
    await try_to_show(home, outcome)
    await send(home, said)

    assert (await home.view(claim.turn_id)).state == TurnState.WAITING
    replies = home.sql("SELECT text FROM outbox WHERE question IS NULL ORDER BY delivery_id")
    assert NO_YES_HERE["not-shown-here"] in str(replies[-1][0])
    assert await home.store.approvals.rule_on(await question_of(home), Ruling(is_yes=True))
    assert await home.store.turns.start_call(await home.claim(), call_id, "seal-1")


async def test_a_no_needs_no_look(home: Home) -> None:
    await gated(home)
    await try_to_show(home, REFUSED)
    await send(home, "/deny")

    claim = await home.claim()
    assert [each.text for each in (await home.results(claim.turn_id)).values()]


async def test_a_yes_counts_where_the_question_may_have_arrived(home: Home) -> None:
    """Its send broke off: the person may look at it."""
    _, call_id, _ = await gated(home)
    await try_to_show(home, UNSURE)
    await send(home, "/approve")

    assert await home.store.turns.start_call(await home.claim(), call_id, "seal-1")


async def test_the_page_answers_only_open_approvals(home: Home) -> None:
    claim = await home.work_on("which one?")
    await home.ask(claim)

    assert not await home.store.approvals.rule_on(await question_of(home), Ruling(is_yes=True))
    assert not await home.store.approvals.rule_on(Seq(9_999), Ruling(is_yes=True))


# ── rules ───────────────────────────────────────────────────────────────────────────────────────


async def keep(home: Home, chat: str = "ann") -> None:
    """A rule: the person says always, and the call is done."""
    _, call_id, _ = await gated(home, chat=chat)
    await home.say("always", chat=chat)
    claim = await home.claim()
    assert await home.store.turns.start_call(claim, call_id, "seal-1")
    await home.finish(claim, call_id)
    await home.answer(claim, "done")


async def test_a_rule_spares_the_question_and_runs_under_the_seal(home: Home) -> None:
    """Issue 15, item 5: stored, and good over a kill."""
    await keep(home)
    (rule,) = await home.store.approvals.rules(10)
    assert (rule.shown, rule.made_by, rule.tool) == ("make", "ann", "rm")
    await home.reopen(crash=True)

    sealed = ApprovalSeal(seal="seal-2", rule_key="key-1", begin=4, end=8)
    claim, call_id, is_asked = await gated(home, sealed)

    assert not is_asked
    (record,) = (await home.store.turns.load(claim)).calls
    assert (record.approved_by, record.seal) == (f"rule:{rule.rule_id}", "seal-2")
    assert await home.store.turns.start_call(claim, call_id, "seal-2")


@pytest.mark.parametrize(
    "chat, key", [("bob", "key-1"), ("ann", "key-2"), ("ann", "")], ids=["chat", "other", "none"]
)
async def test_a_rule_is_for_the_same_thing_in_the_same_chat(
    home: Home, chat: str, key: str
) -> None:
    """Issue 15, item 5: what cannot be kept has no key, so no rule fits it."""
    await keep(home)

    sealed = ApprovalSeal(seal="seal-2", rule_key=key, begin=4, end=8)
    _, _, is_asked = await gated(home, sealed, chat=chat)

    assert is_asked


async def test_a_revoked_rule_spares_nothing(home: Home) -> None:
    """Issue 15, item 5."""
    await keep(home)
    (rule,) = await home.store.approvals.rules(10)

    assert (await home.store.approvals.revoke(rule.rule_id)) is not None
    assert (await home.store.approvals.revoke(rule.rule_id)) is None
    assert await home.store.approvals.revoke(RuleId(99)) is None
    assert await home.store.approvals.rules(10) == ()
    await home.reopen(crash=True)
    _, _, is_asked = await gated(home)
    assert is_asked


async def test_a_chat_lists_and_revokes_its_own_rules(home: Home) -> None:
    """Issue 15, item 5."""
    await keep(home)
    await keep(home, "bob")
    mine, others = sorted(await home.store.approvals.rules(10), key=lambda rule: rule.chat)

    await send(home, "/rules")
    listed = await last_words(home)
    assert f"{mine.name} make (by ann" in listed
    assert others.name not in listed
    await send(home, f"/rules revoke {others.name}")
    assert "There is no rule" in await last_words(home)
    await send(home, f"/rules revoke {mine.name}")
    assert "Revoked" in await last_words(home)
    assert [rule.rule_id for rule in await home.store.approvals.rules(10)] == [others.rule_id]
    await send(home, "/rules")
    assert "Nothing is allowed for good" in await last_words(home)


async def test_approve_always_keeps_a_rule_where_it_is_offered(home: Home) -> None:
    await gated(home)
    await send(home, "/approve always")
    assert len(await home.store.approvals.rules(10)) == 1
    await home.claim()

    without = ApprovalSeal(seal="seal-3", begin=4, end=8)
    await gated(home, without, chat="bob")
    await send(home, "/approve always", chat="bob")
    assert "there are words behind it" in await last_words(home, "bob")


async def test_a_rule_of_a_person_who_may_not_use_us_spares_nothing(open_home: OpenHome) -> None:
    """Issue 15, item 5."""
    home = await open_home()
    await keep(home)
    await home.reopen(world=a_world(revoked=["ann"]))
    await home.say("again", person="bob")
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call("rm", effect=Effect.ONCE, need=Need.APPROVAL))

    assert await home.store.turns.ask(claim, call_id, "run make?", YES_NO, DAY_MS, sealed=SEALED)


# ── forwarded words ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("said", ["yes", "no", "always", "[forwarded from Eve]\nyes"])
async def test_forwarded_words_do_not_answer_an_approval(home: Home, said: str) -> None:
    """Issue 15, V6: they wait, over a kill as well, and become a message of their own."""
    claim, _, _ = await gated(home)
    receipt = await send(home, said, is_forwarded=True)

    assert receipt.state is EntryState.WAITING
    assert (await home.view(claim.turn_id)).state == TurnState.WAITING
    await home.reopen(crash=True)
    await home.store.turns.recover(claim.turn_id)
    assert (await home.view(claim.turn_id)).state == TurnState.WAITING
    await home.say("no")
    assert (await home.view(claim.turn_id)).state == TurnState.QUEUED


async def test_a_recording_answers_no_approval_and_is_heard_afterwards(home: Home) -> None:
    """Issue 21: what is said in it is not known yet, so it is neither a yes nor a no. The person is
    told, and a written yes still counts, over a kill as well."""
    claim, _, _ = await gated(home)
    receipt = await send(home, files=(RECORDING,))

    assert receipt.state is EntryState.WAITING
    assert (await home.view(claim.turn_id)).state == TurnState.WAITING
    assert await last_words(home) == no_spoken_ruling()
    await home.reopen(crash=True)
    await home.store.turns.recover(claim.turn_id)
    assert (await home.view(claim.turn_id)).state == TurnState.WAITING
    await home.say("yes")
    (record,) = (await home.store.turns.load(await home.claim())).calls
    assert record.approved_ms is not None


async def test_a_recording_answers_what_the_model_wants_to_know(home: Home) -> None:
    claim = await home.work_on("which mail?")
    await home.ask(claim)

    assert (await send(home, files=(RECORDING,))).state is EntryState.ATTACHED
    assert (await home.view(claim.turn_id)).state == TurnState.QUEUED
    await home.reopen(crash=True)
    loaded = await home.store.turns.load(await home.claim())
    last = loaded.steps[-1].body
    assert isinstance(last, Message), "the file is read before the model goes on"
    assert last.files == (RECORDING,)


async def test_forwarded_words_answer_what_the_model_wants_to_know(home: Home) -> None:
    claim = await home.work_on("which mail?")
    await home.ask(claim)

    assert (await send(home, "this one", is_forwarded=True)).state is EntryState.ATTACHED
