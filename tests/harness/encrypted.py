"""A person with a client of others that encrypts: matrix-nio, with its own store in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from nio import AsyncClient, AsyncClientConfig, MegolmEvent
from nio.crypto import encrypt_attachment
from nio.responses import RoomSendResponse, SyncResponse
from nio.store import SqliteMemoryStore

from tests.harness.polling import until_asked
from tests.harness.synapse import Person

ENCRYPTED: dict[str, Any] = {
    "initial_state": [
        {
            "type": "m.room.encryption",
            "state_key": "",
            "content": {"algorithm": "m.megolm.v1.aes-sha2"},
        }
    ]
}


class _InMemory(SqliteMemoryStore):  # type: ignore[misc]
    def __init__(self, user: str, device: str, _path: str, pickle_key: str = "", _name: str = ""):
        super().__init__(user, device, pickle_key=pickle_key)


@dataclass(slots=True)
class Secretive:
    """`person` is the same one by plain HTTP, to whom encrypted words are noise."""

    person: Person
    client: AsyncClient
    heard: dict[str, list[Any]] = field(default_factory=dict)

    async def encrypted_room(self, *invited: str) -> str:
        room = await self.person.room(*invited, **ENCRYPTED)
        await self.knows(room)
        return room

    async def knows(self, room: str, *members: str) -> None:
        """Wait until the client knows a room, and who is in it."""

        async def look() -> bool:
            await self.sync()
            known = self.client.rooms.get(room)
            return known is not None and known.encrypted and set(members) <= set(known.users)

        await until_asked(look, "the client knows the room")

    async def sync(self) -> None:
        answer = await self.client.sync(timeout=0)
        assert isinstance(answer, SyncResponse), answer
        for room, news in answer.rooms.join.items():
            self.heard.setdefault(room, []).extend(news.timeline.events)
        olm = self.client.olm
        if self.client.should_upload_keys:
            await self.client.keys_upload()
        if self.client.should_query_keys:
            await self.client.keys_query()
        if olm.wedged_devices:
            await self.client.keys_claim(self.client.get_users_for_key_claiming())
        await self.client.send_to_device_messages()

    async def say(self, room: str, text: str, **more: object) -> str:
        await self.sync()
        return await self.send(room, "m.room.message", {"msgtype": "m.text", "body": text, **more})

    async def send(self, room: str, kind: str, content: dict[str, Any]) -> str:
        sent = await self.client.room_send(room, kind, content, ignore_unverified_devices=True)
        assert isinstance(sent, RoomSendResponse), sent
        return str(sent.event_id)

    async def send_file(self, room: str, name: str, content: bytes) -> str:
        sealed, opening = encrypt_attachment(content)
        address = await self.person.upload(sealed)
        file = {**opening, "url": address}
        message = {"msgtype": "m.file", "body": name, "filename": name, "file": file}
        return await self.send(room, "m.room.message", message)

    async def say_before_the_key(self, room: str, text: str) -> tuple[str, dict[str, Any]]:
        """An event whose key has not left yet, and the key, for `give_key`."""
        await self.sync()
        olm = self.client.olm
        users = list(self.client.rooms[room].users)
        olm.create_outbound_group_session(room)
        if missing := olm.get_missing_sessions(users):
            await self.client.keys_claim(missing)
        people, messages = olm.share_group_session(room, users, True, True)
        session = olm.outbound_group_sessions[room]
        session.users_shared_with.update(people)
        session.mark_as_shared()
        content = {"msgtype": "m.text", "body": text}
        sealed = olm.group_encrypt(room, {"type": "m.room.message", "content": content})
        del olm.outbound_group_sessions[room]  # the next one has a key of its own
        return await self.person.send(room, "m.room.encrypted", sealed), messages

    async def give_key(self, key: dict[str, Any]) -> None:
        await self.person.ask("PUT", "/sendToDevice/m.room.encrypted/late", key)

    async def hears(self, room: str, text: str, by: str) -> Any:
        """Wait until another person has said something, encrypted, that holds `text`."""

        async def look() -> Any:
            await self.sync()
            said = [each for each in self.events_of(room, by) if text in each.body]
            return said[0] if said else None

        return await until_asked(look, f"{by} says {text!r}")

    def events_of(self, room: str, by: str) -> list[Any]:
        """What of it could be decrypted, and was encrypted."""
        return [
            each
            for each in self.heard.get(room, ())
            if each.sender == by and each.decrypted and hasattr(each, "body")
        ]

    def said_by(self, room: str, user: str) -> list[str]:
        return [event.body for event in self.events_of(room, user)]

    def unreadable(self, room: str) -> int:
        return sum(isinstance(event, MegolmEvent) for event in self.heard.get(room, ()))


@asynccontextmanager
async def a_secretive(person: Person) -> AsyncIterator[Secretive]:
    me = await person.ask("GET", "/account/whoami")
    config = AsyncClientConfig(store=_InMemory, encryption_enabled=True, store_sync_tokens=False)
    client = AsyncClient(
        person.server.url, person.user, me["device_id"], store_path="unused", config=config
    )
    client.restore_login(person.user, me["device_id"], person.token)
    made = Secretive(person, client)
    try:
        await made.sync()
        yield made
    finally:
        await client.close()
