"""What people and programs may look at: one consistent moment each, nothing skipped or repeated."""

import pytest
from anyio import create_task_group

from koboshi.domain.command import CommandName
from koboshi.domain.ids import ChannelName, DeliveryId, EntryId, SessionId, TurnId
from koboshi.domain.recovery import VerdictKind
from koboshi.domain.route import Route
from koboshi.domain.transcript import Answer, Choice, Message, Reply, Result
from koboshi.domain.turn import CLOSED, TurnState
from koboshi.ports.views import Event
from tests.harness.fake_time import HOUR_MS, SECOND_MS
from tests.harness.homes import HOOK, WEB, Home, a_world

# ── following a chat ────────────────────────────────────────────────────────────────────────────


async def a_busy_chat(home: Home) -> None:
    for number in range(3):
        claim = await home.work_on(f"question {number}")
        await home.step(claim)
        await home.answer(claim, f"answer {number}", " in two parts")
        await home.deliver()


async def test_a_follower_sees_every_event_once_and_in_order(home: Home) -> None:
    """S149, S162: read one by one, from any place, it is the same story."""
    await a_busy_chat(home)
    everything = await home.events()
    one_by_one: list[Event] = []
    while found := await home.store.views.events(WEB, "ann", after=place(one_by_one), limit=1):
        one_by_one += found

    assert one_by_one == everything
    numbers = [event.line.seq for event in everything]
    assert numbers == sorted(set(numbers))
    for number in numbers:
        later = await home.events(after=number)
        assert later == [event for event in everything if event.line.seq > number]


def place(events: list[Event]) -> int:
    return events[-1].line.seq if events else 0


async def test_a_follower_misses_nothing_while_many_write(home: Home) -> None:
    """S149: what has been read is final; nothing appears behind the reader."""
    seen: list[Event] = []

    async def write(number: int) -> None:
        for turn in range(3):
            await home.say(f"message {turn}", chat="ann", person=f"person {number}")
            await home.say("noise", chat=f"other {number}")

    async def follow() -> None:
        for _ in range(60):
            seen.extend(await home.store.views.events(WEB, "ann", after=place(seen), limit=5))

    async with create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(write, number)
        tasks.start_soon(follow)
    while found := await home.store.views.events(WEB, "ann", after=place(seen), limit=5):
        seen.extend(found)

    assert seen == await home.events()
    accepted = [event for event in seen if event.line.event == "accepted"]
    assert len(accepted) == 30


async def test_numbers_of_events_go_on_after_a_crash(home: Home) -> None:
    """S162: a follower that comes back with its last number goes on from there."""
    await a_busy_chat(home)
    before = await home.events()
    await home.reopen(crash=True)
    assert await home.events() == before
    await home.say("one more")

    after = await home.events(after=place(before))
    assert [event.line.event for event in after] == ["accepted", "opened"]
    assert all(event.line.seq > place(before) for event in after)


async def test_events_carry_what_they_are_about(home: Home) -> None:
    claim = await home.work_on("a question")
    await home.step(claim)
    await home.answer(claim, "an answer")
    await home.deliver()

    events = await home.events()
    bodies = [event.body for event in events if event.body is not None]
    assert [type(body) for body in bodies] == [Message, Reply, Result, Answer]
    assert isinstance(bodies[0], Message)
    assert (bodies[0].text, bodies[0].sender) == ("a question", "ann")
    (delivered,) = [event for event in events if event.delivery]
    assert delivered.delivery is not None
    assert delivered.line.event == "delivered"
    assert (delivered.delivery.text, delivered.delivery.part) == ("an answer", 1)
    assert all(event.route == Route(channel=WEB, chat="ann") for event in events)


async def test_a_delivered_question_carries_its_choices(home: Home) -> None:
    claim = await home.work_on()
    choices = (Choice(choice_id="r", label="Red"),)
    await home.ask(claim, choices=choices)
    await home.deliver()

    (shown,) = [event.delivery for event in await home.events() if event.delivery]
    assert shown.choices == choices
    assert shown.question is not None


async def test_the_threads_of_a_chat_are_followed_together_and_other_chats_are_not(
    home: Home,
) -> None:
    await home.say(chat="ann")
    await home.say(chat="ann", thread="7")
    await home.say(chat="bob")
    await home.say(chat="ann", channel=HOOK)

    events = await home.events("ann")
    assert {event.route.thread for event in events} == {"", "7"}
    assert {(event.route.channel, event.route.chat) for event in events} == {(WEB, "ann")}


async def test_the_newest_event_of_a_chat_is_known(home: Home) -> None:
    assert await home.store.views.last_event(WEB, "ann") == 0
    await home.say(chat="ann")
    await home.say(chat="bob")

    assert await home.store.views.last_event(WEB, "ann") == place(await home.events("ann"))


async def test_chats_in_which_something_happened_are_known(home: Home) -> None:
    newest, chats = await home.store.views.chats_touched(WEB, after=0)
    assert chats == frozenset()
    await home.say(chat="ann")
    await home.say(chat="bob")
    await home.say(chat="cat", channel=HOOK)

    later, chats = await home.store.views.chats_touched(WEB, after=newest)
    assert chats == {"ann", "bob"}
    assert await home.store.views.chats_touched(WEB, after=later) == (later, frozenset())


@pytest.mark.parametrize("lines", [0, 1, 3, 1_000])
async def test_the_place_before_the_newest_lines_is_known(home: Home, lines: int) -> None:
    await a_busy_chat(home)
    await home.say(chat="bob")

    after = await home.store.views.place_before(WEB, "ann", lines=lines)
    events = await home.events(after=after)
    assert events == (await home.events())[-lines:] if lines else not events


async def test_a_chat_that_no_one_knows_has_no_events(home: Home) -> None:
    assert await home.events("nobody") == []
    assert await home.store.views.session_of(Route(channel=WEB, chat="nobody")) is None
    assert await home.store.sessions.find(Route(channel=WEB, chat="nobody")) is None
    assert await home.store.views.place_before(WEB, "nobody", lines=1) == 0


# ── why ─────────────────────────────────────────────────────────────────────────────────────────


async def bring_to(home: Home, state: TurnState) -> TurnId:
    """A turn of chat `ann` in this state."""
    if state is TurnState.SUSPENDED:
        await home.say(person="eve")
        await home.reopen(world=a_world(revoked=["eve"]))
        assert await home.claims() == ()
        return (await home.turns())[0].turn_id
    await home.say("a question")
    turn_id = (await home.turns())[0].turn_id
    if state is TurnState.QUEUED:
        return turn_id
    claim = await home.claim()
    match state:
        case TurnState.WAITING:
            await home.ask(claim)
        case TurnState.ANSWERED | TurnState.DONE:
            await home.answer(claim)
        case TurnState.STOPPED:
            await home.stop()
        case TurnState.FAILED:
            await home.store.turns.fail(claim, "it broke")
        case _:
            assert state is TurnState.RUNNING
    if state is TurnState.DONE:
        await home.deliver()
    return turn_id


VERDICTS = {
    TurnState.QUEUED: VerdictKind.RESUME,
    TurnState.RUNNING: VerdictKind.RESUME,
    TurnState.WAITING: VerdictKind.STAND,
    TurnState.SUSPENDED: VerdictKind.SUSPEND,
    TurnState.ANSWERED: VerdictKind.DELIVER,
}


@pytest.mark.parametrize("state", TurnState)
async def test_every_turn_can_be_explained_in_every_state(home: Home, state: TurnState) -> None:
    """S161, S168."""
    turn_id = await bring_to(home, state)
    before = await home.everything()
    explained = await home.explain(turn_id)

    assert explained.turn.state == state
    assert explained.lines[0].event == "opened"
    moves = [line for line in explained.lines if line.subject == "turn"]
    assert moves[-1].after == state
    assert [line.before for line in moves[1:]] == [line.after for line in moves[:-1]]
    assert [entry.turn_id for entry in explained.entries] == [turn_id]
    if state in CLOSED:
        assert (explained.why, explained.facts) == (None, None)
        assert explained.turn.closed_ms is not None
    else:
        assert explained.why is not None
        assert explained.facts is not None
        assert explained.why.kind is VERDICTS[state]
        assert explained.why.because
        assert explained.turn.closed_ms is None
    assert await home.everything() == before, "looking changes nothing"


@pytest.mark.parametrize("state", [TurnState.FAILED, TurnState.STOPPED, TurnState.SUSPENDED])
async def test_every_end_that_a_person_did_not_see_coming_has_a_reason(
    home: Home, state: TurnState
) -> None:
    turn_id = await bring_to(home, state)

    assert (await home.view(turn_id)).reason


async def test_a_turn_tells_what_it_owes_and_owed(home: Home) -> None:
    claim = await home.work_on()
    await home.ask(claim)
    await home.deliver()
    await home.say("that one")
    claim = await home.claim()
    await home.answer(claim, "1", "2")

    rows = (await home.explain(claim.turn_id)).deliveries
    assert [(row.text, row.state) for row in rows] == [
        ("which one?", "delivered"),
        ("1", "owed"),
        ("2", "owed"),
    ]
    assert await home.store.views.delivery(rows[0].delivery_id) == rows[0]


# ── the rest ────────────────────────────────────────────────────────────────────────────────────


async def test_the_status_counts_what_is_open(home: Home) -> None:
    empty = await home.store.views.status()
    assert (empty.turns, empty.inbox_waiting, empty.outbox_unsettled, empty.sessions) == (
        {},
        0,
        0,
        0,
    )
    await home.say(chat="ann")
    await home.say(chat="ann")
    await home.say(chat="bob")
    claims = await home.claims()
    await home.answer(claims[1], "1", "2")
    status = await home.store.views.status()

    assert status.turns == {"running": 1, "answered": 1}
    assert (status.inbox_waiting, status.outbox_unsettled, status.sessions) == (1, 2, 2)
    assert status.worker == home.worker


async def test_the_status_does_not_count_what_is_closed(home: Home) -> None:
    await home.answer(await home.work_on())
    await home.deliver()

    assert (await home.store.views.status()).turns == {}


async def test_turns_are_listed_newest_first_and_as_many_as_asked(home: Home) -> None:
    for number in range(3):
        await home.answer(await home.work_on(f"question {number}"))
    session_id = await home.session_id()

    views = await home.store.views.turns_of(session_id, 2)
    assert [view.request for view in views] == ["question 2", "question 1"]
    assert await home.store.views.turns_of(SessionId(99), 10) == ()


async def test_a_turn_shows_when_it_was_opened_and_when_it_moved(home: Home) -> None:
    claim = await home.work_on()
    opened_ms = home.clock.now_ms()
    home.clock.move(SECOND_MS)
    await home.answer(claim)

    view = await home.view(claim.turn_id)
    assert (view.opened_ms, view.changed_ms) == (opened_ms, opened_ms + SECOND_MS)


async def test_a_message_is_found_by_our_number_and_by_the_platforms(home: Home) -> None:
    receipt = await home.say("hello", key="k1")

    entry = await home.store.views.entry(receipt.entry_id)
    assert entry == await home.store.views.entry_by_external_id("k1")
    assert entry is not None
    assert (entry.text, entry.sender, entry.kind, entry.source) == (
        "hello",
        "ann",
        "message",
        WEB,
    )


async def test_of_two_channels_with_the_same_key_the_newest_message_is_found(home: Home) -> None:
    await home.say("first", key="k1", channel=WEB)
    await home.say("second", key="k1", channel=HOOK)

    entry = await home.store.views.entry_by_external_id("k1")
    assert entry is not None
    assert entry.text == "second"


async def test_what_is_not_there_is_not_found(home: Home) -> None:
    views = home.store.views
    assert await views.entry(EntryId(99)) is None
    assert await views.entry_by_external_id("k1") is None
    assert await views.delivery(DeliveryId(99)) is None
    assert await views.explain(TurnId(99)) is None
    assert await views.last_event(ChannelName("nobody"), "ann") == 0


async def test_commands_are_shown_as_they_were_written(home: Home) -> None:
    receipt = await home.command(CommandName.STATUS, "now")

    entry = await home.entry(receipt)
    assert (entry.kind, entry.state, entry.text) == ("command", "handled", "/status now")


async def test_a_turn_that_runs_well_can_be_told_from_one_that_died(home: Home) -> None:
    claim = await home.work_on()
    running = await home.view(claim.turn_id)
    home.clock.move(2 * HOUR_MS)
    await home.reopen(crash=True)

    assert running.worker_id != home.worker.worker_id
    assert (await home.view(claim.turn_id)).worker_id == running.worker_id
