"""Issue 13, B10: a backlog joins one turn at its first claim."""

from dataclasses import replace

import pytest

from koboshi.domain.command import Command, CommandName, Response, SessionFacts
from koboshi.domain.files import Attachment
from koboshi.domain.notes import BACKLOG, backlog
from koboshi.domain.session import Busy
from koboshi.domain.story import story_of_lines
from koboshi.domain.transcript import Message
from koboshi.domain.turn import Claim
from koboshi.ports.store import Arrival
from tests.harness.fake_time import HOUR_MS
from tests.harness.homes import WEB, Home, a_world

THREE = ("delete the backups", "and the logs", "never mind")


async def heard(home: Home, claim: Claim) -> list[str]:
    """The messages of a turn, in order."""
    loaded = await home.store.turns.load(claim)
    return [step.body.text for step in loaded.steps if isinstance(step.body, Message)]


async def three_while_it_is_down(home: Home) -> None:
    """The platform brings what was sent an hour ago, in one batch."""
    arrivals = [Arrival(inbound=home.inbound(text)) for text in THREE]
    home.clock.move(HOUR_MS)
    await home.reopen(crash=True)
    await home.accept(*arrivals)


async def test_what_was_sent_while_it_was_down_is_one_turn(home: Home) -> None:
    """Issue 13, B10: each keeps its row, and what is said goes to the newest."""
    await three_while_it_is_down(home)

    claim = await home.claim()

    assert await heard(home, claim) == list(THREE)
    (note,) = await home.notes(claim.turn_id, BACKLOG)
    assert note.text == backlog(3)
    await home.answer(claim, "all right")
    (delivery,) = await home.deliver()
    assert delivery.anchor == "key-3"
    rows = home.rows()
    assert [row["turn_id"] for row in rows.inbox] == [claim.turn_id] * 3
    assert [row["state"] for row in rows.turns] == ["done"]


async def test_what_an_earlier_boot_has_stored_joins_too(home: Home) -> None:
    """Issue 13, B10: behind the turn that was worked on, whatever the clock does."""
    first = await home.work_on("first")
    await home.say("second")
    await home.say("third")
    home.clock.move(-HOUR_MS)
    resumed = await home.resume(first.turn_id)
    assert await heard(home, resumed) == ["first"]
    await home.answer(resumed)

    claim = await home.claim()

    assert await heard(home, claim) == ["second", "third"]


async def test_what_was_sent_before_this_boot_connected_joins(home: Home) -> None:
    """Issue 13, B10: the boot could not reach the platform for an hour, and then was brought what
    was sent meanwhile. What was sent after it connected has turns of its own."""
    await home.reopen(crash=True)
    await home.store.inbox.bind({WEB: "bot-1"})
    arrivals = [Arrival(inbound=home.inbound(text)) for text in THREE]
    home.clock.move(HOUR_MS)
    await home.store.inbox.connect(WEB, "bot-1")
    home.clock.move(HOUR_MS)
    await home.store.inbox.connect(WEB, "bot-1")
    later = Arrival(inbound=home.inbound("good evening"))
    await home.accept(*arrivals, later)

    claim = await home.claim()

    assert await heard(home, claim) == list(THREE)
    await home.answer(claim)
    assert await heard(home, await home.claim()) == ["good evening"]


async def test_what_is_sent_to_this_boot_has_turns_of_its_own(home: Home) -> None:
    """Issue 13, B10: also after the clock was set back."""
    first = await home.work_on("first")
    home.clock.move(-HOUR_MS)
    await home.say("second")
    await home.say("third")
    await home.answer(first)

    claim = await home.claim()

    assert await heard(home, claim) == ["second"]
    assert await home.notes(claim.turn_id, BACKLOG) == []


async def test_a_turn_that_died_is_claimed_again_with_the_same_messages(home: Home) -> None:
    """Issue 13, B10: only the first claim joins, and only once is it told."""
    await three_while_it_is_down(home)
    claim = await home.claim()
    await home.say("something new")

    again = await home.resume(claim.turn_id)

    assert await heard(home, again) == list(THREE)
    assert len(await home.notes(claim.turn_id, BACKLOG)) == 1
    waiting = [row for row in home.rows().inbox if row["state"] == "waiting"]
    assert [row["external_id"] for row in waiting] == ["key-4"]


async def test_another_person_ends_the_row(home: Home) -> None:
    """Issue 13, B10: in a group, no one is overtaken."""
    people = ("ann", "ann", "bob", "ann")
    arrivals = [
        Arrival(inbound=home.inbound(f"{person} {place}", chat="group", person=person))
        for place, person in enumerate(people)
    ]
    home.clock.move(HOUR_MS)
    await home.reopen(crash=True)
    await home.accept(*arrivals)

    seen = []
    for _ in range(3):
        claim = await home.claim()
        seen.append(await heard(home, claim))
        await home.answer(claim)

    assert seen == [["ann 0", "ann 1"], ["bob 2"], ["ann 3"]]


async def test_chats_are_not_joined_with_each_other(home: Home) -> None:
    """Issue 13, B10: one conversation, one turn."""
    arrivals = [Arrival(inbound=home.inbound(chat, chat=chat)) for chat in ("one", "two")]
    home.clock.move(HOUR_MS)
    await home.reopen(crash=True)
    for arrival in arrivals:
        await home.accept(arrival)

    claims = await home.claims()

    assert [await heard(home, claim) for claim in claims] == [["one"], ["two"]]


async def test_words_that_were_sent_to_wait_have_their_own_turn(home: Home) -> None:
    """Issue 13, B10: the person has said so with `/queue`."""
    plain, queued = home.inbound("plain"), home.inbound("queued")
    queued = replace(queued, words=replace(queued.words, busy=Busy.QUEUE))
    home.clock.move(HOUR_MS)
    await home.reopen(crash=True)
    await home.accept(Arrival(inbound=plain), Arrival(inbound=queued))

    claim = await home.claim()

    assert await heard(home, claim) == ["plain"]


async def test_a_command_is_not_joined_and_cuts_what_was_sent_before_it(home: Home) -> None:
    """Issue 13, B10: `/stop` among what came meanwhile does what it always does."""
    await home.say("before")
    await home.say("as well")
    await home.reopen(crash=True)
    await home.command(CommandName.STOP)
    await home.say("behind it")

    claim = await home.claim()

    assert await heard(home, claim) == ["behind it"]


async def test_the_turn_of_a_person_who_lost_the_right_is_joined_by_no_one(home: Home) -> None:
    """Issue 13, B10: nothing is claimed, so nothing joins."""
    await home.say("first")
    await home.say("second")
    await home.reopen(crash=True, world=a_world(revoked=("ann",)))

    assert await home.claims() == ()

    assert [row["state"] for row in home.rows().inbox] == ["attached", "waiting"]


async def test_files_come_along(home: Home) -> None:
    """Issue 13, B10: a message keeps what was sent with it."""
    file = Attachment(reference="abc", path="a.jpg", kind="photo")
    plain, with_file = home.inbound("look"), home.inbound("")
    with_file = replace(with_file, words=replace(with_file.words, files=(file,)))
    home.clock.move(HOUR_MS)
    await home.reopen(crash=True)
    await home.accept(Arrival(inbound=plain), Arrival(inbound=with_file))

    claim = await home.claim()

    loaded = await home.store.turns.load(claim)
    files = [step.body.files for step in loaded.steps if isinstance(step.body, Message)]
    assert files == [(), (file,)]


async def test_what_does_not_fit_is_for_the_next_turn(home: Home) -> None:
    """Issue 13, B10: ten at most, in order, and none is lost."""
    arrivals = [Arrival(inbound=home.inbound(f"{number}")) for number in range(23)]
    home.clock.move(HOUR_MS)
    await home.reopen(crash=True)
    await home.accept(*arrivals)

    seen = []
    for _ in range(3):
        claim = await home.claim()
        seen.append(await heard(home, claim))
        await home.answer(claim)

    assert [len(each) for each in seen] == [10, 10, 3]
    assert [text for each in seen for text in each] == [f"{number}" for number in range(23)]


@pytest.mark.parametrize("busy", ["queue", "steer", "interrupt"])
async def test_it_is_the_same_whatever_a_message_does_to_a_turn_at_work(
    home: Home, busy: str
) -> None:
    """Issue 13, B10."""
    home.world = a_world(busy=busy)
    await three_while_it_is_down(home)

    claim = await home.claim()

    assert await heard(home, claim) == list(THREE)


async def test_who_hears_that_it_failed_hears_that_it_was_all_of_them(home: Home) -> None:
    """Issue 13, B10: none of the messages looks as if it had been forgotten."""
    await three_while_it_is_down(home)
    claim = await home.claim()

    await home.store.turns.fail(claim, "no")

    (apology,) = await home.deliver()
    assert "«delete the backups (and 2 more)»" in apology.text
    assert apology.anchor == "key-3"


async def test_the_story_of_the_turn_tells_it(home: Home) -> None:
    """Issue 13, B10: `/why` and `explain` say that messages joined the turn."""
    await three_while_it_is_down(home)
    claim = await home.claim()

    explained = await home.store.views.explain(claim.turn_id)

    assert explained is not None
    assert [entry.entry_id for entry in explained.entries] == [1, 2, 3]
    assert sum("joined it" in words for _, words in story_of_lines(explained.lines)) == 1
    stories: list[str] = []

    def respond(command: Command, facts: SessionFacts) -> Response:
        assert facts.open_turn is not None
        stories.extend(facts.open_turn.story)
        return Response(reply="so it is")

    why = Command(name=CommandName.WHY, said="/why", argument="")
    await home.accept(Arrival(inbound=home.inbound("/why"), command=why), respond=respond)
    assert sum("joined it" in line for line in stories) == 1
