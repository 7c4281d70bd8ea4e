"""Encrypted rooms, on a real homeserver, with a client of others in the same room."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest
from anyio import create_task_group

from koboshi.app.platforms import matrix as matrix_platform
from koboshi.app.platforms.matrix import matrix_channel
from koboshi.app.platforms.platform import ChannelSetup
from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.matrix import receiving as receiving_module
from koboshi.channels.matrix import sealed as sealed_module
from koboshi.channels.matrix.key_store import KeyStore
from koboshi.channels.matrix.sealed import DEVICE_MARK, KEPT_MS, TOLD_AFTER_MS
from koboshi.channels.matrix.types import MatrixEvent
from koboshi.clock import SystemClock
from koboshi.config import Limits, MatrixConfig, Secret
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.files import OutFile
from koboshi.domain.ids import ChannelName
from koboshi.domain.outbox import Sent
from koboshi.domain.route import Route
from tests.channels.fakes import FakeClock, FakeGateway
from tests.channels.matrix_rig import (
    MAIN,
    NOTHING_NEAR,
    RememberingChannel,
    a_channel,
    all_allowed,
)
from tests.channels.telegram_rig import YES_NO, owed
from tests.harness.encrypted import Secretive, a_secretive
from tests.harness.polling import until, until_asked
from tests.harness.synapse import Person, shared_homeserver

KEY: dict[str, Any] = {"send_key": "0123456789-7"}


@dataclass
class Stored(FakeGateway):
    """A gateway that stores watermarks, too."""

    @property
    def marks(self) -> dict[str, str]:
        return {chat: mark for chat, mark in self.watermarks.items() if mark}

    async def stored_marks(self, _account: str) -> Mapping[str, str]:
        return self.marks

    @property
    def sealed(self) -> list[str]:
        return [chat for chat in self.marks if chat != DEVICE_MARK]

    @property
    def texts(self) -> list[str]:
        return [inbound.words.text for _, inbound in self.stored.values()]


@dataclass
class EncryptedRig:
    ann: Secretive
    bot: Person
    room: str
    home: Path
    gateway: Stored = field(default_factory=Stored)
    clock: FakeClock = field(default_factory=FakeClock)

    @property
    def route(self) -> Route:
        return Route(channel=MAIN, chat=self.room)

    @asynccontextmanager
    async def connected(self, **options: Any) -> AsyncIterator[RememberingChannel]:
        given = {"home": self.home, "watermarks": self.gateway.stored_marks, "encryption": True}
        given |= {"clock": self.clock, **options}
        async with a_channel(self.bot, **given) as channel, create_task_group() as tasks:
            tasks.start_soon(channel.receive, self.gateway.cursor, self.gateway.accept)
            await until(lambda: channel.trouble is None, "it is connected")
            yield channel
            tasks.cancel_scope.cancel()

    async def takes(self, *texts: str) -> None:
        await until(lambda: self.gateway.texts == list(texts), f"{texts} are taken in")


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EncryptedRig]:
    monkeypatch.setattr(receiving_module, "POLL_MS", 200)
    server = shared_homeserver()
    await server.ready()
    bot = await server.person("bot")
    async with a_secretive(await server.person("ann")) as ann:
        room = await ann.encrypted_room(bot.user)
        await bot.join(room)
        made = EncryptedRig(ann, bot, room, tmp_path)
        async with made.connected():
            pass  # it is a device now, and has keys
        await ann.knows(room, bot.user)
        yield made


async def test_words_go_both_ways_and_the_homeserver_reads_none_of_them(rig: EncryptedRig) -> None:
    async with rig.connected() as channel:
        await rig.ann.say(rig.room, "a secret question")
        await rig.takes("a secret question")
        (question,) = rig.gateway.stored
        sent = await channel.send(owed(rig.route, "a secret answer", anchor=question, **KEY))
        assert isinstance(sent, Sent)
        answer = await rig.ann.hears(rig.room, "a secret answer", rig.bot.user)
        assert answer.event_id == sent.platform_id
        again = await channel.send(
            owed(rig.route, "a secret answer", anchor=question, is_ambiguous=True, **KEY)
        )
        assert again == sent, "another ciphertext under the same key is the same event"
        assert await channel.find(owed(rig.route, **KEY), NOTHING_NEAR) == sent
        await channel.edit(rig.route, sent.platform_id, "a better answer")
        await rig.ann.hears(rig.room, "a better answer", rig.bot.user)

    seen = await rig.ann.person.events(rig.room)
    assert "secret" not in str(seen)
    assert "better" not in str(seen)
    (said,) = [each for each in seen if each["event_id"] == sent.platform_id]
    assert said["type"] == "m.room.encrypted"
    assert said["content"]["m.relates_to"] == {"m.in_reply_to": {"event_id": question}}


async def test_another_life_and_a_new_device_of_a_person_are_told_our_key(
    rig: EncryptedRig,
) -> None:
    """Our own key for a room is in memory only: each life has another one."""
    async with a_secretive(await rig.ann.person.log_in_again()) as phone:
        await phone.knows(rig.room, rig.bot.user)
        for number in range(2):
            async with rig.connected() as channel:
                key = {"send_key": f"0123456789-{number}"}
                sent = await channel.send(owed(rig.route, f"life{number}", **key))
                assert isinstance(sent, Sent)
            for device in (rig.ann, phone):
                await device.hears(rig.room, f"life{number}", rig.bot.user)
        assert phone.said_by(rig.room, rig.bot.user) == ["life0", "life1"]


async def test_questions_files_edits_and_deletions_work_in_encrypted_rooms(
    rig: EncryptedRig,
) -> None:
    content = b"some bytes\0" * 1_000
    (rig.home / "note.txt").write_bytes(content)
    file = OutFile(name="note.txt", path="note.txt", size=len(content))
    async with rig.connected() as channel:
        asked = await channel.send(owed(rig.route, "Sure?", choices=YES_NO, question=5, **KEY))
        assert isinstance(asked, Sent)
        relation = {"rel_type": "m.annotation", "event_id": asked.platform_id, "key": "2️⃣"}
        await rig.ann.person.send(rig.room, "m.reaction", {"m.relates_to": relation})
        await until(lambda: rig.gateway.stored, "the press is taken in")
        ((_, pressed),) = rig.gateway.stored.values()
        assert (pressed.words.question, pressed.words.choice_id) == (5, "no")

        await channel.send(owed(rig.route, "here", file=file, send_key="0123456789-8"))
        shown = await rig.ann.hears(rig.room, "here", rig.bot.user)
        assert shown.source["content"]["file"]["url"].startswith("mxc://")
        await rig.ann.send_file(rig.room, "mine.txt", content)
        await until(lambda: len(rig.gateway.stored) == 2, "the file is taken in")
        *_, (_, inbound) = rig.gateway.stored.values()
        (attachment,) = inbound.words.files
        await channel.fetch(attachment, rig.home / attachment.path)
        assert (rig.home / attachment.path).read_bytes() == content

    rig.gateway.stored.clear()
    edited, deleted = await rig.ann.say(rig.room, "wrnog"), await rig.ann.say(rig.room, "oops")
    new = {"msgtype": "m.text", "body": "wrong"}
    relation = {"rel_type": "m.replace", "event_id": edited}
    await rig.ann.say(rig.room, "* wrong", **{"m.relates_to": relation, "m.new_content": new})
    await rig.ann.person.ask("PUT", f"/rooms/{rig.room}/redact/{deleted}/k1", {})
    async with rig.connected():
        await until(lambda: len(rig.gateway.stored) >= 3, "all are taken in")
    read = {key: inbound for key, (_, inbound) in rig.gateway.stored.items()}
    assert read[edited].words.text == "wrong"
    assert (read[deleted].words.text, read[deleted].ignored) == ("", "deleted")


async def test_an_event_whose_key_comes_late_is_kept_told_of_and_taken_in(
    rig: EncryptedRig,
) -> None:
    """It survives the end of the connection, and the key may come in another life."""
    async with rig.connected():
        event, key = await rig.ann.say_before_the_key(rig.room, "too early")
        await until(lambda: rig.gateway.sealed, "it is kept")
    async with rig.connected():
        await rig.ann.say(rig.room, "in between")
        await until(lambda: rig.gateway.stored, "others are taken in")
        assert event not in rig.gateway.stored
        assert rig.ann.said_by(rig.room, rig.bot.user) == [], "nothing is told yet"
        rig.clock.passed_s += TOLD_AFTER_MS / 1000
        told = await rig.ann.hears(rig.room, "Please send it again", rig.bot.user)
        await until(lambda: "told" in str(rig.gateway.marks), "it is noted as told")
        await rig.ann.give_key(key)
        await until(lambda: event in rig.gateway.stored, "it is taken in")
        assert not rig.gateway.sealed
    assert rig.gateway.stored[event][1].words.text == "too early"
    async with rig.connected():
        await rig.ann.say(rig.room, "the end")
        await until(lambda: "the end" in rig.gateway.texts, "it goes on")
        await rig.ann.sync()
    assert rig.ann.said_by(rig.room, rig.bot.user) == [told.body], "it was told once"


async def test_keys_that_could_not_be_stored_come_again(
    rig: EncryptedRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if killed between the two changes of one message: a part of it is as good as nothing."""
    tries: list[str] = []
    save = KeyStore.save_inbound_group_session

    def failing(store: KeyStore, session: Any) -> None:
        tries.append(session.id)
        if len(tries) == 1:
            raise apsw.FullError("no room")
        save(store, session)

    await rig.ann.say(rig.room, "hello")
    monkeypatch.setattr(KeyStore, "save_inbound_group_session", failing)
    with pytest.raises(NoAnswer, match="no room"):
        await _receive(rig, rig.bot)
    assert not rig.gateway.stored
    async with rig.connected():
        await rig.takes("hello")
    assert len(tries) == 2


async def test_an_event_whose_key_never_comes_is_noted_after_a_week(
    rig: EncryptedRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tried again, it keeps its place; and however many there are, each room is told."""
    monkeypatch.setattr(sealed_module, "SEALED_MAX", 1)
    other = await rig.ann.encrypted_room(rig.bot.user)
    await rig.bot.join(other)
    await rig.ann.knows(other, rig.bot.user)
    async with rig.connected():
        event, _ = await rig.ann.say_before_the_key(rig.room, "lost")
        await until(lambda: rig.gateway.sealed, "it is kept")
        for room in (rig.room, other):
            await rig.ann.say_before_the_key(room, "lost")
        await until(lambda: other in str(rig.gateway.sealed), "one of the other room is kept")
    async with rig.connected():
        rig.clock.passed_s += TOLD_AFTER_MS / 1000
        for room in (rig.room, other):
            await rig.ann.hears(room, "Please send it again", rig.bot.user)
        assert len(rig.gateway.sealed) == 2
        rig.clock.passed_s += KEPT_MS / 1000
        await until(lambda: not rig.gateway.sealed, "it is not waited for any more")
    assert rig.gateway.stored[event][1].ignored == "encrypted"


async def test_a_key_from_a_device_of_another_person_opens_nothing(rig: EncryptedRig) -> None:
    """What the homeserver says about who sent an event is not enough."""
    server = rig.bot.server
    async with a_secretive(await server.person("eve")) as eve:
        await rig.ann.person.invite(rig.room, eve.person.user)
        await eve.person.join(rig.room)
        await eve.knows(rig.room, rig.bot.user)
        async with rig.connected() as channel:
            await eve.say(rig.room, "I am eve")
            await until(lambda: rig.gateway.stored, "words of eve are hers")
            await eve.sync()
            (event,) = eve.events_of(rig.room, eve.person.user)
            encryption = channel._receiving.encryption
            assert encryption is not None
            raw = [
                each
                for each in await rig.ann.person.events(rig.room)
                if each["event_id"] == event.event_id
            ]

            def as_by(sender: str) -> MatrixEvent:
                return MatrixEvent(
                    event_id=event.event_id,
                    type="m.room.encrypted",
                    sender=sender,
                    content=raw[0]["content"],
                    origin_server_ts=raw[0]["origin_server_ts"],
                )

            (hers,) = await encryption.unseal(rig.room, [as_by(eve.person.user)])
            (forged,) = await encryption.unseal(rig.room, [as_by(rig.ann.person.user)])
    assert (hers.type, forged.type) == ("m.room.message", "m.room.encrypted")


async def test_a_home_without_its_keys_or_that_was_restored_needs_a_new_device(
    rig: EncryptedRig,
) -> None:
    forgotten = rig.gateway.watermarks.pop(DEVICE_MARK)
    with pytest.raises(ChannelUnusable, match="was restored"):
        await _receive(rig, rig.bot)
    rig.gateway.watermarks[DEVICE_MARK] = forgotten
    (rig.home / "matrix").rename(rig.home / "elsewhere")
    with pytest.raises(ChannelUnusable, match="not in this home"):
        await _receive(rig, rig.bot)

    before = await rig.ann.say(rig.room, "for the old device")
    rig.bot = await rig.bot.log_in_again()
    async with rig.connected():
        await until(lambda: rig.gateway.sealed, "it cannot be read")
        await rig.ann.say(rig.room, "for the new one")
        await rig.takes("for the new one")
        rig.clock.passed_s += TOLD_AFTER_MS / 1000
        await rig.ann.hears(rig.room, "Please send it again", rig.bot.user)
    assert rig.gateway.sealed == [f"sealed {rig.room} {before}"]


async def test_more_people_than_one_time_keys_can_write_while_it_is_down(
    rig: EncryptedRig,
) -> None:
    me = await rig.bot.ask("GET", "/account/whoami")
    asked = {"one_time_keys": {rig.bot.user: {me["device_id"]: "signed_curve25519"}}}

    async def claim() -> str:
        claimed = await rig.ann.person.ask("POST", "/keys/claim", asked)
        (key,) = claimed["one_time_keys"][rig.bot.user][me["device_id"]].values()
        return str(key["key"])

    keys = set[str]()
    while (key := await claim()) not in keys:  # the last one is given to everyone
        keys.add(key)
    assert len(keys) == 51
    await rig.ann.say(rig.room, "one more")
    async with rig.connected():
        await rig.takes("one more")
        await until_asked(lambda: _is_new(claim, keys), "there are new ones")


async def _is_new(claim: Callable[[], Awaitable[str]], keys: set[str]) -> bool:
    return await claim() not in keys


async def test_hostile_messages_to_the_device_stop_nothing(rig: EncryptedRig) -> None:
    me = await rig.bot.ask("GET", "/account/whoami")
    _, key, _ = rig.gateway.marks[DEVICE_MARK].split()
    olm = "m.olm.v1.curve25519-aes-sha2"
    bodies: list[dict[str, Any]] = [
        {},
        {"algorithm": olm},
        {"algorithm": olm, "sender_key": key, "ciphertext": {key: {"type": 0, "body": "x"}}},
        {"algorithm": olm, "sender_key": "?", "ciphertext": {key: {"type": 1, "body": "AwoAAAA"}}},
        {"algorithm": olm, "sender_key": key, "ciphertext": {key: {"type": 9, "body": ""}}},
        {"algorithm": olm, "sender_key": key, "ciphertext": {key: None}},
    ]
    async with rig.connected():
        for number, body in enumerate(bodies):
            messages = {"messages": {rig.bot.user: {me["device_id"]: body}}}
            path = f"/sendToDevice/m.room.encrypted/hostile{number}"
            await rig.ann.person.ask("PUT", path, messages)
        broken = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "no", "session_id": "x"}
        await rig.ann.person.send(rig.room, "m.room.encrypted", broken)
        await rig.ann.say(rig.room, "still there?")
        await rig.takes("still there?")


async def test_without_the_extra_or_on_postgresql_it_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = MatrixConfig(
        name="matrix:main",
        homeserver="http://127.0.0.1:1",
        user="@bot:localhost",
        token=Secret("x"),
        encryption=True,
    )
    with pytest.raises(ChannelUnusable, match="PostgreSQL"):
        matrix_channel(config, _setup(tmp_path, in_home=False))
    matrix_channel(config, _setup(tmp_path, in_home=True))
    monkeypatch.setattr(matrix_platform, "find_spec", lambda _name: None)
    with pytest.raises(ChannelUnusable, match=r"koboshi\[matrix-e2e\]"):
        matrix_channel(config, _setup(tmp_path, in_home=True))


async def _receive(rig: EncryptedRig, bot: Person) -> None:
    given = {"home": rig.home, "watermarks": rig.gateway.stored_marks, "encryption": True}
    async with a_channel(bot, **given) as channel:
        await channel.receive(rig.gateway.cursor, rig.gateway.accept)


def _setup(home: Path, *, in_home: bool) -> ChannelSetup:
    async def nothing(_channel: ChannelName, _account: str) -> dict[str, str]:
        return {}

    async def allowed(_channel: ChannelName, person: str) -> bool:
        return await all_allowed(person)

    return ChannelSetup(
        home=home,
        keeps_store_in_home=in_home,
        limits=Limits(),
        commands=(),
        clock=SystemClock(),
        on_back=lambda: None,
        watermarks=nothing,
        is_allowed=allowed,
    )
