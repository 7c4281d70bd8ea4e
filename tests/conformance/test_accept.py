"""What arrives is stored, once, together with what follows from it."""

import pytest
from anyio import create_task_group

from koboshi.domain.command import Command, CommandName, Response, SessionFacts
from koboshi.domain.inbox import EntryState
from koboshi.domain.route import Route
from koboshi.domain.session import Busy, Settings
from koboshi.domain.transcript import Message
from koboshi.domain.turn import TurnState
from koboshi.ports.channel import Receipt
from koboshi.ports.store import Arrival
from koboshi.ports.wakeups import JOURNAL, OUTBOX, TURNS
from tests.harness.fake_time import HOUR_MS
from tests.harness.homes import HOOK, WEB, Home, OpenHome, a_call, a_world


async def test_a_message_on_an_idle_session_opens_a_turn(home: Home) -> None:
    """S1, S162: the receipt says what is stored."""
    receipt = await home.say("count to three")

    (turn,) = await home.turns()
    assert (turn.state, turn.request, turn.worker_id) == ("queued", "count to three", None)
    assert receipt.state is EntryState.ATTACHED
    assert not receipt.is_duplicate
    assert (await home.entry(receipt)).turn_id == turn.turn_id


async def test_the_turn_is_durable_before_a_worker_works_on_it(home: Home) -> None:
    """S1, S10: killed right after the receipt, the message and its turn are there."""
    receipt = await home.say("count to three")
    await home.reopen(crash=True)

    claim = await home.claim()
    assert (await home.entry(receipt)).turn_id == claim.turn_id
    (message,) = (await home.store.turns.load(claim)).steps
    assert isinstance(message.body, Message)
    assert message.body.text == "count to three"


async def test_a_message_wakes_those_who_claim_and_those_who_follow(home: Home) -> None:
    home.wakeups.hints.clear()
    await home.say()

    assert set(home.wakeups.hints) == {TURNS, JOURNAL}


async def test_each_route_has_one_session_for_ever(home: Home) -> None:
    """S40, S163: a thread is a place of its own; nothing has no place."""
    first = await home.say(chat="ann")
    await home.say(chat="ann", thread="7")
    await home.say(chat="bob")
    await home.reopen()
    again = await home.say(chat="ann")

    assert (await home.store.views.status()).sessions == 3
    assert (await home.entry(first)).session_id == (await home.entry(again)).session_id


async def test_the_same_message_again_changes_nothing(home: Home) -> None:
    """S97: a platform that repeats itself is heard once."""
    first = await home.say("pay the bill", key="k1")
    before = await home.everything()
    second = await home.say("pay the bill", key="k1")

    assert await home.everything() == before
    assert second == Receipt(
        entry_id=first.entry_id, state=EntryState.ATTACHED, is_duplicate=True, is_same=True
    )


async def test_the_same_message_again_is_known_after_a_crash(home: Home) -> None:
    first = await home.say("pay the bill", key="k1")
    await home.reopen(crash=True)
    second = await home.say("pay the bill", key="k1")

    assert second.is_duplicate
    assert second.entry_id == first.entry_id
    assert len(await home.turns()) == 1


async def test_the_same_message_later_is_still_the_same(home: Home) -> None:
    await home.say("pay the bill", key="k1")
    home.clock.move(HOUR_MS)

    assert (await home.say("pay the bill", key="k1")).is_same


async def test_the_same_key_with_other_words_is_not_the_same_and_is_not_stored(home: Home) -> None:
    await home.say("pay the bill", key="k1")
    second = await home.say("pay it twice", key="k1")

    assert second.is_duplicate
    assert not second.is_same
    assert [turn.request for turn in await home.turns()] == ["pay the bill"]


async def test_the_same_key_and_words_in_another_chat_are_not_the_same(home: Home) -> None:
    """S162: "we have it already" would be untrue for the second chat."""
    await home.say("pay the bill", key="k1", chat="ann")
    second = await home.say("pay the bill", key="k1", chat="bob")

    assert second.is_duplicate
    assert not second.is_same


async def test_a_button_and_the_same_words_typed_are_not_the_same(home: Home) -> None:
    await home.say("Yes", key="k1")

    assert not (await home.say("Yes", key="k1", question=1, choice="yes")).is_same


async def test_channels_do_not_share_their_keys(home: Home) -> None:
    await home.say(key="k1", channel=WEB)
    second = await home.say(key="k1", channel=HOOK)

    assert not second.is_duplicate
    assert (await home.store.views.status()).turns == {"queued": 2}


async def test_fifty_deliveries_of_one_message_at_once_open_one_turn(home: Home) -> None:
    """S160."""
    receipts: list[Receipt] = []

    async def deliver() -> None:
        receipts.append(await home.say("pay the bill", key="k1"))

    async with create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(deliver)

    assert sum(not receipt.is_duplicate for receipt in receipts) == 1
    assert len({receipt.entry_id for receipt in receipts}) == 1
    assert len(await home.turns()) == 1


async def test_fifty_messages_at_once_make_one_open_turn_and_a_queue(home: Home) -> None:
    """S163: one turn at a time, however many come together."""
    async with create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(home.say, f"message {number}")

    status = await home.store.views.status()
    assert status.turns == {"queued": 1}
    assert status.inbox_waiting == 49


# ── what was read, and how far ──────────────────────────────────────────────────────────────────


async def test_a_batch_and_how_far_we_read_are_stored_together(home: Home) -> None:
    first, second = home.inbound("one", chat="ann"), home.inbound("two", chat="bob")
    receipts = await home.accept(Arrival(inbound=first), Arrival(inbound=second), cursor="42")
    await home.reopen(crash=True)

    assert len(receipts) == 2
    assert await home.store.inbox.cursor(WEB) == "42"
    assert {turn.request for turn in await home.turns("ann") + await home.turns("bob")} == {
        "one",
        "two",
    }


async def test_a_batch_that_fails_leaves_neither_messages_nor_cursor(home: Home) -> None:
    """S162: what was not stored is not acknowledged, and is read again."""
    await home.accept(cursor="41")
    before = await home.everything()

    def breaks(_command: Command, _facts: SessionFacts) -> Response:
        raise RuntimeError("a bug in a command")

    command = Command(name=CommandName.STATUS, said="/status")
    with pytest.raises(RuntimeError, match="a bug in a command"):
        await home.accept(
            Arrival(inbound=home.inbound("one")),
            Arrival(inbound=home.inbound("/status"), command=command),
            cursor="42",
            respond=breaks,
        )

    assert await home.store.inbox.cursor(WEB) == "41"
    assert await home.everything() == before


@pytest.mark.timeout(20)
async def test_a_command_that_ends_an_iteration_too_early_fails_alone(home: Home) -> None:
    """A StopIteration cannot be carried by a future; its caller must hear of it all the same."""

    def breaks(_command: Command, _facts: SessionFacts) -> Response:
        return next(iter(()))

    command = Command(name=CommandName.STATUS, said="/status")
    with pytest.raises(RuntimeError):
        await home.accept(Arrival(inbound=home.inbound("/status"), command=command), respond=breaks)
    assert (await home.say()).state is EntryState.ATTACHED


async def test_a_batch_without_a_cursor_leaves_it_where_it_was(home: Home) -> None:
    await home.say(cursor="42")
    await home.say(cursor=None)

    assert await home.store.inbox.cursor(WEB) == "42"


async def test_a_cursor_moves_without_messages_and_by_channel(home: Home) -> None:
    await home.accept(cursor="41")
    await home.accept(cursor="42")

    assert await home.store.inbox.cursor(WEB) == "42"
    assert await home.store.inbox.cursor(HOOK) is None


async def test_a_duplicate_in_a_batch_does_not_hold_up_the_others(home: Home) -> None:
    await home.say("one", key="k1")
    receipts = await home.accept(
        Arrival(inbound=home.inbound("one", key="k1")),
        Arrival(inbound=home.inbound("two", chat="bob")),
        cursor="2",
    )

    assert [receipt.is_duplicate for receipt in receipts] == [True, False]
    assert len(await home.turns("bob")) == 1


async def test_what_is_not_for_us_is_kept_with_its_reason_and_wakes_nothing(home: Home) -> None:
    inbound = home.inbound("let me in", person="eve", key="k1")
    (receipt,) = await home.accept(Arrival(inbound=inbound, ignored="not-allowed"), cursor="43")

    entry = await home.entry(receipt)
    assert receipt.state is EntryState.IGNORED
    assert (entry.kind, entry.reason, entry.session_id) == ("ignored", "not-allowed", None)
    assert await home.store.inbox.cursor(WEB) == "43"
    assert await home.claims() == ()


async def test_what_is_not_for_us_can_be_traced_by_the_id_the_platform_gave(home: Home) -> None:
    """Also when no other has ever written on that channel."""
    inbound = home.inbound("let me in", person="eve", key="k1")
    await home.accept(Arrival(inbound=inbound, ignored="not-allowed"))

    entry = await home.store.views.entry_by_external_id("k1")
    assert entry is not None
    assert entry.reason == "not-allowed"


async def test_a_button_without_a_question_does_nothing(home: Home) -> None:
    receipt = await home.say("Yes", question=99, choice="yes")

    entry = await home.entry(receipt)
    assert (entry.state, entry.reason) == ("dropped", "question-closed")
    assert await home.turns() == []


@pytest.mark.parametrize(
    "text",
    ["", "a\0b", "いいえ 🎎", "x" * 1_000_000, '"quoted" \\ \n \u2028', "'); DROP TABLE turns; --"],
    ids=["empty", "nul", "beyond-ascii", "long", "escapes", "sql"],
)
async def test_words_come_back_as_they_were_said(home: Home, text: str) -> None:
    await home.say(text)
    await home.reopen()

    (step,) = (await home.store.turns.load(await home.claim())).steps
    assert isinstance(step.body, Message)
    assert step.body.text == text


async def test_words_that_are_no_text_are_refused_and_harm_no_other(home: Home) -> None:
    before = await home.everything()
    with pytest.raises(UnicodeEncodeError):
        await home.say("half a \ud83c character")

    assert await home.everything() == before
    assert (await home.say()).state is EntryState.ATTACHED


# ── while a turn is open ────────────────────────────────────────────────────────────────────────


async def test_a_message_waits_while_a_turn_runs_and_then_opens_the_next(home: Home) -> None:
    """S92: queue mode, one turn per message, in order."""
    claim = await home.work_on("one")
    receipts = [await home.say(text) for text in ("two", "three")]

    assert [receipt.state for receipt in receipts] == [EntryState.WAITING] * 2
    await home.answer(claim)
    (second,) = await home.claims()
    assert (await home.view(second.turn_id)).request == "two"
    assert (await home.entry(receipts[1])).state == "waiting"
    await home.answer(second)
    assert (await home.view((await home.claim()).turn_id)).request == "three"


async def test_a_message_waits_while_a_turn_is_queued(home: Home) -> None:
    await home.say("one")

    assert (await home.say("two")).state is EntryState.WAITING


async def test_waiting_messages_survive_deaths_in_order_and_run_once(home: Home) -> None:
    """S97, S3: killed after every single step of the way. Of two people, so that each has its
    turn."""
    for number in range(5):
        await home.say(f"message {number}", person=("ann", "bob")[number % 2])
        await home.reopen(crash=True)

    requests = []
    while claims := await home.claims():
        (claim,) = claims
        requests.append((await home.view(claim.turn_id)).request)
        claim = await home.resume(claim.turn_id)
        await home.answer(claim)
        await home.reopen(crash=True)

    assert requests == [f"message {number}" for number in range(5)]
    assert (await home.store.views.status()).inbox_waiting == 0


async def test_at_most_a_thousand_messages_wait_in_a_session(home: Home) -> None:
    """S92, S162: the one too many is refused in words, not lost in silence."""
    await home.work_on()
    batch = [Arrival(inbound=home.inbound(f"message {number}")) for number in range(1_000)]
    receipts = await home.accept(*batch)
    assert {receipt.state for receipt in receipts} == {EntryState.WAITING}

    refused = await home.say("one too many")
    entry = await home.entry(refused)
    assert (refused.state, entry.reason) == (EntryState.DROPPED, "inbox-full")
    (notice,) = await home.deliver()
    assert "did not take this one" in notice.text
    assert notice.anchor == entry.external_id
    assert (await home.say(chat="bob")).state is EntryState.ATTACHED


async def test_room_in_the_inbox_is_used_again(open_home: OpenHome) -> None:
    home = await open_home(waiting_max=1)
    claim = await home.work_on("one")
    assert (await home.say("two")).state is EntryState.WAITING
    assert (await home.say("three")).state is EntryState.DROPPED
    await home.answer(claim)

    assert (await home.say("four")).state is EntryState.WAITING


async def test_a_refused_message_stays_refused_when_it_is_sent_again(open_home: OpenHome) -> None:
    home = await open_home(waiting_max=0)
    claim = await home.work_on("one")
    await home.say("two", key="k2")
    await home.answer(claim)

    assert (await home.say("two", key="k2")).state is EntryState.DROPPED
    assert len(await home.turns()) == 1


async def test_a_message_that_interrupts_ends_the_turn_and_opens_the_next(home: Home) -> None:
    """S93: the words of the interrupted turn are not said; the generation stays."""
    claim = await home.work_on("one")
    await set_busy(home, Busy.INTERRUPT)
    (call_id,) = await home.propose(claim, a_call())
    await home.start(claim, call_id)
    receipt = await home.say("two")

    stopped, opened = await home.turns()
    assert (stopped.state, stopped.event) == ("stopped", "interrupted")
    assert (opened.state, opened.request) == ("queued", "two")
    assert receipt.state is EntryState.ATTACHED
    assert not await home.store.turns.holds(claim)
    assert f"claim:{claim.turn_id}" in home.wakeups.hints
    session = await home.store.sessions.find(Route(channel=WEB, chat="ann"))
    assert session is not None
    assert session.generation == claim.generation
    assert (await home.results(claim.turn_id))[call_id].status == "unknown"


async def test_a_message_that_interrupts_a_queued_turn_waits(home: Home) -> None:
    """Nothing runs that could be interrupted."""
    await home.say("one")
    await set_busy(home, Busy.INTERRUPT)

    assert (await home.say("two")).state is EntryState.WAITING


async def test_an_interrupted_turn_is_over_after_a_crash(home: Home) -> None:
    """S13."""
    claim = await home.work_on("one")
    await set_busy(home, Busy.INTERRUPT)
    await home.say("two")
    await home.reopen(crash=True)

    assert await home.store.turns.unowned(with_suspended=True) == ()
    assert (await home.claim()).turn_id != claim.turn_id


async def test_a_message_can_interrupt_a_turn_that_died(home: Home) -> None:
    """S13: the person does not wait for the verdict, and the verdict finds nothing to do."""
    claim = await home.work_on("one")
    await set_busy(home, Busy.INTERRUPT)
    await home.reopen(crash=True)
    assert (await home.say("two")).state is EntryState.ATTACHED

    assert await home.store.turns.recover(claim.turn_id) is None
    assert [turn.state for turn in await home.turns()] == ["stopped", "queued"]


async def test_the_configured_busy_mode_counts_where_the_session_says_nothing(
    open_home: OpenHome,
) -> None:
    home = await open_home(a_world(busy="interrupt"))
    claim = await home.work_on("one")
    await home.say("two")

    assert (await home.view(claim.turn_id)).state == TurnState.STOPPED


# ── commands ────────────────────────────────────────────────────────────────────────────────────


async def test_a_command_is_handled_with_its_reply_in_one_transaction(home: Home) -> None:
    home.wakeups.hints.clear()
    receipt = await home.command(CommandName.STATUS)
    await home.reopen(crash=True)

    assert receipt.state is EntryState.HANDLED
    (reply,) = await home.deliver()
    assert reply.text == "open: False, waiting: 0, owed: 0"
    assert reply.cause == f"command:{receipt.entry_id}"
    assert OUTBOX in home.wakeups.hints


async def test_a_repeated_command_does_nothing(home: Home) -> None:
    """S74: the platform delivers the /stop again after the restart."""
    await home.work_on("one")
    await home.command(CommandName.STOP, key="k1")
    claim = await home.work_on("two")
    await home.reopen(crash=True)
    again = await home.command(CommandName.STOP, key="k1")

    assert again.is_duplicate
    assert (await home.view(claim.turn_id)).state == "running"
    assert len(await home.deliver()) == 1


async def test_a_command_never_becomes_input(home: Home) -> None:
    """S96."""
    claim = await home.work_on("one")
    await set_busy(home, Busy.STEER)
    await home.command(CommandName.STATUS)
    await home.step(claim)
    await home.answer(claim)

    assert await home.claims() == ()
    assert [turn.request for turn in await home.turns()] == ["one"]


async def test_a_command_rests_on_facts_of_its_own_transaction(home: Home) -> None:
    """S162."""
    seen: list[SessionFacts] = []

    def watch(_command: Command, facts: SessionFacts) -> Response:
        seen.append(facts)
        return Response(reply="fine")

    await home.work_on("one")
    await home.say("two")
    await home.accept(
        Arrival(inbound=home.inbound("three")),
        Arrival(
            inbound=home.inbound("/status"),
            command=Command(name=CommandName.STATUS, said="/status"),
        ),
        respond=watch,
    )

    (facts,) = seen
    assert facts.waiting == 2
    assert facts.now_ms == home.clock.now_ms()
    assert facts.open_turn is not None
    assert facts.open_turn == facts.last_turn
    assert (facts.open_turn.state, facts.open_turn.request) == (TurnState.RUNNING, "one")
    assert facts.open_turn.steps == 1
    assert [line.split("UTC ")[1] for line in facts.open_turn.story] == [
        "accepted",
        "work began (boot 1)",
    ]


async def set_busy(home: Home, busy: Busy) -> None:
    home.configure(await home.session_id(), Settings(busy=busy))
