"""What of a group is for the agent: decided in the transaction that stores the message."""

from dataclasses import replace

import pytest

from koboshi.commands.run import respond
from koboshi.domain.command import Command, CommandName
from koboshi.domain.inbox import EntryState
from koboshi.domain.session import Listen
from koboshi.ports.channel import Inbound, Receipt
from koboshi.ports.store import Arrival
from tests.harness.homes import FRONT, Home, a_world

ROOM = "room"


def overheard(home: Home, text: str, person: str = "ann", thread: str = "") -> Inbound:
    inbound = home.inbound(text, chat=ROOM, person=person, channel=FRONT, thread=thread)
    return replace(inbound, is_group=True, is_addressed=False)


async def said_aside(
    home: Home, text: str = "lunch?", person: str = "ann", thread: str = ""
) -> Receipt:
    (receipt,) = await home.accept(Arrival(inbound=overheard(home, text, person, thread)))
    return receipt


def rows_in(home: Home, table: str) -> int:
    ((count,),) = home.sql(f"SELECT count(*) FROM {table}")
    assert isinstance(count, int)
    return count


async def listen(home: Home, argument: str, person: str = "ann", thread: str = "") -> str:
    """What `/listen` answers in the group."""
    inbound = home.inbound("/listen", chat=ROOM, person=person, channel=FRONT, thread=thread)
    inbound = replace(inbound, is_group=True)
    command = Command(name=CommandName.LISTEN, said="/listen", argument=argument)
    replies: list[str] = []

    def kept(command: Command, facts: object) -> object:
        response = respond(command, facts)  # type: ignore[arg-type]
        replies.append(response.reply)
        return response

    await home.accept(Arrival(inbound=inbound, command=command), respond=kept)  # type: ignore[arg-type]
    return replies[0]


@pytest.fixture
async def owned(home: Home) -> Home:
    """Ann is named by the configuration; bob is only let in."""
    world = replace(
        a_world(),
        is_allowed=lambda _channel, person: person in ("ann", "bob"),
        is_owner=lambda _channel, person: person == "ann",
    )
    await home.reopen(world=world)
    return home


async def test_what_is_not_said_to_us_is_passed_over_and_its_words_are_not_kept(
    owned: Home,
) -> None:
    """Issue 13, B14: the default, as before."""
    before = rows_in(owned, "inbox"), rows_in(owned, "journal")
    receipt = await said_aside(owned)
    await said_aside(owned, person="eve")

    assert receipt.state is EntryState.IGNORED
    assert (rows_in(owned, "inbox"), rows_in(owned, "journal")) == before, "no row at all"


async def test_an_owner_lets_the_agent_hear_everything(owned: Home) -> None:
    """Issue 13, B14: the setting is in the database, so it survives a kill."""
    assert "every message" in await listen(owned, "all")
    await owned.reopen(crash=True)

    assert (await said_aside(owned)).state is EntryState.ATTACHED
    assert (await said_aside(owned, person="bob")).state is EntryState.WAITING
    assert (await said_aside(owned, person="eve")).state is EntryState.IGNORED

    await listen(owned, "mention")
    assert (await said_aside(owned)).state is EntryState.IGNORED


async def test_each_topic_is_set_by_itself(owned: Home) -> None:
    """Issue 13, B14."""
    await listen(owned, "all", thread="5")

    assert (await said_aside(owned, thread="5")).state is EntryState.ATTACHED
    assert (await said_aside(owned, thread="6")).state is EntryState.IGNORED
    assert (await said_aside(owned)).state is EntryState.IGNORED


async def test_who_is_only_let_in_is_told_why_it_is_not_changed(owned: Home) -> None:
    """Issue 13, B14: the owners are those whom the configuration names."""
    assert "in `allow`" in await listen(owned, "all", person="bob")

    assert (await said_aside(owned)).state is EntryState.IGNORED
    assert "(mention)" in await listen(owned, "", person="bob")


async def test_the_configuration_says_what_holds_in_every_group(owned: Home) -> None:
    """Issue 13, B14: and a chat can say otherwise."""
    world = replace(owned.world, listen={FRONT: Listen.ALL})
    await owned.reopen(world=world)

    assert (await said_aside(owned)).state is EntryState.ATTACHED
    assert "So says the configuration" in await listen(owned, "")
    await listen(owned, "mention")
    assert (await said_aside(owned)).state is EntryState.IGNORED
    await listen(owned, "default")
    assert (await said_aside(owned)).state is EntryState.WAITING


async def test_the_message_behind_the_command_is_heard_in_the_same_batch(owned: Home) -> None:
    """Issue 13, B14: nothing is decided from a copy that could be out of date."""
    inbound = owned.inbound("/listen all", chat=ROOM, channel=FRONT)
    command = Command(name=CommandName.LISTEN, said="/listen", argument="all")
    first = Arrival(inbound=replace(inbound, is_group=True), command=command)
    behind = Arrival(inbound=overheard(owned, "and this?"))

    before, _, after = await owned.accept(
        Arrival(inbound=overheard(owned, "not yet")), first, behind, respond=respond
    )

    assert (before.state, after.state) == (EntryState.IGNORED, EntryState.ATTACHED)


async def test_what_was_passed_over_is_new_when_it_comes_again(owned: Home) -> None:
    """Issue 15, V8: nothing of it was kept but the cursor, not even its key."""
    arrival = Arrival(inbound=overheard(owned, "lunch?"))
    await owned.accept(arrival)
    await listen(owned, "all")

    (again,) = await owned.accept(arrival)

    assert (again.state, again.is_duplicate) == (EntryState.ATTACHED, False)
