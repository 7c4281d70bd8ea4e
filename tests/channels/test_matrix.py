"""The Matrix channel on a real homeserver: what is read, what is said, and what is found again."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from anyio import create_task_group, fail_after

from koboshi.app.platforms.platform import ProbeFailed
from koboshi.app.platforms.registry import platform_of
from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.common.reading import DELETED
from koboshi.channels.matrix import session as session_module
from koboshi.channels.matrix.invitations import JOIN_AGAIN_SECONDS
from koboshi.channels.matrix.receiving import REMEMBERED_MS
from koboshi.config import MatrixConfig, Secret
from koboshi.domain.errors import ChannelUnusable, FileNotHad
from koboshi.domain.files import OutFile
from koboshi.domain.outbox import Later, Refused, Sent, Unsure
from koboshi.domain.route import Route
from tests.channels.fakes import FakeClock, FakeGateway
from tests.channels.matrix_front import a_front
from tests.channels.matrix_rig import MAIN, NOTHING_NEAR, MatrixRig, a_channel, rig_at
from tests.channels.proxy import wire
from tests.channels.telegram_rig import YES_NO, owed
from tests.fakes.telegram.wire import Reply
from tests.harness.polling import WITHIN_S, until, until_asked
from tests.harness.synapse import Person, shared_homeserver


@pytest.fixture
async def rig() -> AsyncIterator[MatrixRig]:
    server = shared_homeserver()
    await server.ready()
    async with rig_at(server) as made:
        yield made


KEY: dict[str, Any] = {"send_key": "0123456789-7"}


async def test_a_send_is_found_by_its_key_and_one_that_is_not_there_was_not_sent(
    rig: MatrixRig,
) -> None:
    """Also when the homeserver has forgotten the key: the event carries it."""
    for number in range(3):
        await rig.channel.send(owed(rig.route, f"other{number}", send_key=f"0123456789-{number}"))
    sent = await rig.channel.send(owed(rig.route, "this", **KEY))

    assert isinstance(sent, Sent)
    assert await rig.channel.find(owed(rig.route, **KEY), NOTHING_NEAR) == sent
    absent = await rig.channel.find(owed(rig.route, send_key="0123456789-99"), NOTHING_NEAR)
    assert isinstance(absent, Later)


async def test_a_send_whose_answer_is_lost_is_one_event(rig: MatrixRig) -> None:
    """S146: the connection breaks behind the request; the repeat gets the same event."""
    async with wire(rig.bot.server.port) as cut:
        cut.limits = [0]
        async with a_channel(rig.bot, homeserver=cut.url) as channel:
            lost = await channel.send(owed(rig.route, "once", **KEY))
            assert isinstance(lost, Unsure)
            again = await channel.send(owed(rig.route, "once", is_ambiguous=True, **KEY))

    assert isinstance(again, Sent)
    assert await rig.ann.said_by(rig.room, rig.bot.user) == ["once"]


async def test_without_a_device_a_send_is_not_repeated_but_looked_for(rig: MatrixRig) -> None:
    """The homeserver knows keys of devices only: it would say a repeat twice."""
    token = await rig.bot.server.token_without_device(rig.bot.user)
    async with a_channel(rig.bot, token=token) as channel, create_task_group() as tasks:
        tasks.start_soon(channel.receive, None, FakeGateway().accept)
        await until(lambda: channel.trouble is None, "it is connected")
        abilities = channel.abilities
        sent = await channel.send(owed(rig.route, "once", **KEY))
        found = await channel.find(owed(rig.route, **KEY), NOTHING_NEAR)
        tasks.cancel_scope.cancel()

    assert (abilities.idempotent_send, abilities.finds_sent) == (False, True)
    assert isinstance(sent, Sent)
    assert found == sent


async def test_another_device_knows_no_keys_so_an_unknown_send_is_looked_for(
    rig: MatrixRig,
) -> None:
    """The homeserver tells repeats for each device by itself: a repeat would say it twice."""
    gateway, clock = FakeGateway(), FakeClock()

    async def marks(_account: str) -> dict[str, str]:
        return {chat: mark for chat, mark in gateway.watermarks.items() if mark}

    async def abilities(bot: Person) -> bool:
        async with (
            a_channel(bot, watermarks=marks, clock=clock) as channel,
            create_task_group() as tasks,
        ):
            tasks.start_soon(channel.receive, gateway.cursor, gateway.accept)
            await until(lambda: channel.trouble is None, "it is connected")
            tasks.cancel_scope.cancel()
        assert channel.abilities.finds_sent
        return channel.abilities.idempotent_send

    assert [await abilities(rig.bot), await abilities(rig.bot)] == [True, True]
    other = await rig.bot.log_in_again()
    assert not await abilities(other)
    clock.passed_s += REMEMBERED_MS / 1000
    assert await abilities(other)


async def test_a_room_that_is_not_ours_or_none_is_refused(rig: MatrixRig) -> None:
    foreign = await rig.ann.room()
    for chat in (foreign, "not-a-room"):
        outcome = await rig.channel.send(owed(Route(channel=MAIN, chat=chat), **KEY))
        assert isinstance(outcome, Refused), outcome


async def test_what_stands_before_the_homeserver_says_nothing_about_a_room(rig: MatrixRig) -> None:
    """A proxy answers 404 while the homeserver is away: a refusal of that has an `errcode`. Taken
    for one, a private room would be one of many people, and its messages meant for others."""
    page = Reply(404, b"404 page not found", "text/plain")
    gateway = FakeGateway()
    async with (
        a_front(rig.bot.server) as front,
        a_channel(rig.bot, homeserver=front.url) as channel,
    ):
        front.refuses["/joined_members"] = front.refuses["/send/"] = page
        async with create_task_group() as tasks:
            tasks.start_soon(channel.receive, None, gateway.accept)
            await until(lambda: channel.trouble is None, "it is connected")
            tasks.cancel_scope.cancel()
        await rig.ann.say(rig.room, "hello")
        with fail_after(WITHIN_S), pytest.raises(NoAnswer):
            await channel.receive(gateway.cursor, gateway.accept)
        assert isinstance(await channel.send(owed(rig.route, **KEY)), Unsure)

    assert not gateway.stored


async def test_a_token_of_another_account_makes_the_channel_unusable(rig: MatrixRig) -> None:
    async with a_channel(rig.bot, user=rig.ann.user) as channel:
        with pytest.raises(ChannelUnusable, match="set user"):
            await channel.receive(None, FakeGateway().accept)
    async with a_channel(rig.bot, token="syt_wrong") as channel:
        with pytest.raises(ChannelUnusable, match="refuses the token"):
            await channel.receive(None, FakeGateway().accept)


async def test_a_place_that_the_homeserver_does_not_know_is_told_and_not_passed_over(
    rig: MatrixRig,
) -> None:
    with pytest.raises(ChannelUnusable, match="does not know the place"):
        await rig.channel.receive("nonsense", FakeGateway().accept)
    assert "does not know the place" in str(rig.channel.trouble)


async def test_files_go_both_ways_whole_or_not_at_all(rig: MatrixRig, tmp_path: Path) -> None:
    content = b"some bytes\0" * 1_000
    (tmp_path / "note.txt").write_bytes(content)
    file = OutFile(name="note.txt", path="note.txt", size=len(content))
    async with a_channel(rig.bot, home=tmp_path) as channel:
        sent = await channel.send(owed(rig.route, "here", file=file, **KEY))
    assert isinstance(sent, Sent)
    (event,) = [each for each in await rig.ann.events(rig.room) if "url" in each["content"]]
    assert (event["content"]["filename"], event["content"]["body"]) == ("note.txt", "here")

    gateway = FakeGateway()
    async with create_task_group() as tasks:
        tasks.start_soon(rig.channel.receive, None, gateway.accept)
        await rig.ready()
        picture = {"msgtype": "m.image", "body": "cat.png", "url": event["content"]["url"]}
        await rig.ann.send(rig.room, "m.room.message", picture)
        await until(lambda: gateway.stored, "the picture is taken in")
        tasks.cancel_scope.cancel()
    ((_, inbound),) = gateway.stored.values()
    (attachment,) = inbound.words.files
    await rig.channel.fetch(attachment, tmp_path / attachment.path)
    assert (tmp_path / attachment.path).read_bytes() == content
    missing = replace(attachment, reference="mxc://localhost/nothing", path="other")
    with pytest.raises(FileNotHad):
        await rig.channel.fetch(missing, tmp_path / "other")


async def test_what_was_edited_or_deleted_before_it_was_read_is_taken_as_it_is(
    rig: MatrixRig,
) -> None:
    gateway = FakeGateway()
    async with create_task_group() as tasks:
        tasks.start_soon(rig.channel.receive, None, gateway.accept)
        await rig.ready()
        await until(lambda: rig.channel.place, "there is a place")
        tasks.cancel_scope.cancel()
    edited, deleted = await rig.ann.say(rig.room, "wrnog"), await rig.ann.say(rig.room, "oops")
    relation = {"rel_type": "m.replace", "event_id": edited}
    new = {"msgtype": "m.text", "body": "wrong"}
    await rig.ann.say(rig.room, "* wrong", **{"m.relates_to": relation, "m.new_content": new})
    await rig.ann.ask("PUT", f"/rooms/{rig.room}/redact/{deleted}/k1", {})
    async with create_task_group() as tasks:
        tasks.start_soon(rig.channel.receive, rig.channel.place, gateway.accept)
        await until(lambda: len(gateway.stored) >= 4, "all are taken in")
        waits = await rig.ann.say(rig.room, "never mind")
        await until(lambda: waits in gateway.stored, "it is taken in")
        gone = await rig.ann.ask("PUT", f"/rooms/{rig.room}/redact/{waits}/k2", {})
        await until(lambda: gone["event_id"] in gateway.stored, "that it is gone is taken in")
        tasks.cancel_scope.cancel()

    read = {key: inbound for key, (_, inbound) in gateway.stored.items()}
    taken_back = read[gone["event_id"]]
    assert (taken_back.edits, taken_back.words.text) == (waits, DELETED)
    assert taken_back.sender == rig.ann.user
    assert read[edited].words.text == "wrong"
    assert (read[deleted].words.text, read[deleted].ignored) == ("", "deleted")
    (edit,) = [inbound for inbound in read.values() if inbound.edits == edited]
    assert (edit.edits, edit.words.text) == (edited, "wrong")


async def test_in_a_room_with_others_only_what_names_us_is_for_us(rig: MatrixRig) -> None:
    bob = await rig.bot.server.person("bob")
    room = await rig.ann.room(rig.bot.user, bob.user, direct=False)
    await bob.join(room)
    await rig.bot.join(room)
    local = rig.bot.user[1:].partition(":")[0]
    gateway = FakeGateway()
    async with create_task_group() as tasks:
        tasks.start_soon(rig.channel.receive, None, gateway.accept)
        await rig.ready()
        await bob.say(room, "lunch?")
        await rig.ann.say(room, f"{local}: hello")
        await rig.ann.say(room, "and you?", **{"m.mentions": {"user_ids": [rig.bot.user]}})
        await until(lambda: len(gateway.stored) >= 3, "all are read")
        tasks.cancel_scope.cancel()

    read = [inbound for _, inbound in gateway.stored.values()]
    said = [(each.words.text, each.is_addressed, each.is_group) for each in read]
    assert said == [("lunch?", False, True), ("hello", True, True), ("and you?", True, True)]


async def test_a_question_shows_its_choices_and_marks_to_press(rig: MatrixRig) -> None:
    gateway = FakeGateway()
    async with create_task_group() as tasks:
        tasks.start_soon(rig.channel.receive, None, gateway.accept)
        await rig.ready()
        sent = await rig.channel.send(owed(rig.route, "Sure?", choices=YES_NO, question=5, **KEY))
        assert isinstance(sent, Sent)

        async def marks() -> list[str] | None:
            events = await rig.ann.events(rig.room)
            keys = [
                event["content"]["m.relates_to"]["key"]
                for event in events
                if event["type"] == "m.reaction"
            ]
            return keys if len(keys) == 2 else None

        assert await until_asked(marks, "both marks are there") == ["1️⃣", "2️⃣"]
        relation = {"rel_type": "m.annotation", "event_id": sent.platform_id, "key": "2️⃣"}
        await rig.ann.send(rig.room, "m.reaction", {"m.relates_to": relation})
        await until(lambda: gateway.stored, "the press is taken in")
        tasks.cancel_scope.cancel()

    ((_, pressed),) = gateway.stored.values()
    assert (pressed.words.question, pressed.words.choice_id) == (5, "no")
    assert pressed.route == rig.route


async def test_only_what_came_with_an_invitation_or_behind_it_is_read(
    rig: MatrixRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much was said since: the invitation is looked for page by page."""
    monkeypatch.setattr(session_module, "PAGE_MAX", 10)
    gateway = FakeGateway()
    room = await rig.ann.room()
    await rig.ann.say(room, "before")
    async with create_task_group() as tasks:
        tasks.start_soon(rig.channel.receive, None, gateway.accept)
        await rig.ready()
        await until(lambda: rig.channel.place, "there is a place")
        tasks.cancel_scope.cancel()
    await rig.ann.invite(room, rig.bot.user)
    for number in range(60):
        await rig.ann.say(room, f"word{number}")
    async with create_task_group() as tasks:
        tasks.start_soon(rig.channel.receive, rig.channel.place, gateway.accept)
        await until(lambda: len(gateway.stored) >= 60, "all are taken in")
        tasks.cancel_scope.cancel()

    texts = [inbound.words.text for _, inbound in gateway.stored.values()]
    assert texts == [f"word{number}" for number in range(60)]


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(502, b"<html>"),
        Reply(429, b'{"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 99000}'),
    ],
)
async def test_an_invitation_that_cannot_be_followed_now_holds_up_nothing_and_is_kept(
    rig: MatrixRig, refusal: Reply
) -> None:
    """The room is on a homeserver that does not answer, or joins are limited: it is tried again,
    also by the next life, and then read back to the invitation."""
    gateway, clock = FakeGateway(), FakeClock()

    async def marks(account: str) -> dict[str, str]:
        return gateway.watermarks

    async def hears(text: str) -> None:
        await rig.ann.say(rig.room, text)
        await until(lambda: text in texts_of(gateway), f"{text} is taken in")

    async with a_front(rig.bot.server) as front:
        kept: dict[str, Any] = {"homeserver": front.url, "watermarks": marks, "clock": clock}
        async with a_channel(rig.bot, **kept) as channel, create_task_group() as tasks:
            tasks.start_soon(channel.receive, None, gateway.accept)
            await until(lambda: channel.place, "there is a place")
            front.refuses["/join/"] = refusal
            room = await rig.ann.room(rig.bot.user)
            await rig.ann.say(room, "with the invitation")
            await hears("the rest")
            tasks.cancel_scope.cancel()
        assert gateway.watermarks[room] == f"asked {rig.ann.user}"
        async with a_channel(rig.bot, **kept) as channel, create_task_group() as tasks:
            tasks.start_soon(channel.receive, gateway.cursor, gateway.accept)
            await until(lambda: front.refused >= 2, "it is tried again")
            front.refuses.clear()
            clock.passed_s += JOIN_AGAIN_SECONDS + 1
            await hears("more")
            await until(lambda: "with the invitation" in texts_of(gateway), "it is read")
            await until(lambda: not gateway.watermarks[room], "nothing is left to do")
            tasks.cancel_scope.cancel()


async def test_an_invitation_that_was_taken_back_meanwhile_is_forgotten(rig: MatrixRig) -> None:
    gateway, clock = FakeGateway(), FakeClock()
    gateway.watermarks["!gone:localhost"] = f"asked {rig.ann.user}"

    async def marks(account: str) -> dict[str, str]:
        return dict(gateway.watermarks)

    channel = a_channel(rig.bot, watermarks=marks, clock=clock)
    async with channel as again, create_task_group() as tasks:
        tasks.start_soon(again.receive, None, gateway.accept)
        await until(lambda: again.place, "there is a place")

        async def is_forgotten() -> bool:
            await rig.ann.say(rig.room, "a word")
            return not gateway.watermarks["!gone:localhost"]

        await until_asked(is_forgotten, "the mark is gone")
        tasks.cancel_scope.cancel()


def texts_of(gateway: FakeGateway) -> list[str]:
    return [inbound.words.text for _, inbound in gateway.stored.values()]


async def test_doctor_and_init_find_out_whose_token_it_is(rig: MatrixRig) -> None:
    def account(**keys: str) -> MatrixConfig:
        given: dict[str, Any] = {"homeserver": rig.bot.server.url, "user": rig.bot.user, **keys}
        token = Secret(given.pop("secret", rig.bot.token))
        return MatrixConfig(name="matrix:main", token=token, **given)

    platform = platform_of("matrix")
    found = [each async for each in platform.examine(account())]
    assert [each.severity for each in found] == ["ok", "ok", "ok"]
    assert found[0].words == f"the account is {rig.bot.user}"
    assert found[2].words == "it is in 1 rooms"
    for wrong in (account(user=rig.ann.user), account(secret="syt_wrong")):
        with pytest.raises(ProbeFailed):
            await platform.probe(wrong)
