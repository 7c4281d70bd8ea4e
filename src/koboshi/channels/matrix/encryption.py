"""Encrypted rooms: the Olm machine of matrix-nio, fed by our own calls.

Theory of operation. Keys of rooms come as messages between devices, with the answers of `/sync`,
and each can be opened once. So the keys of an answer are durable, in the file of `key_store.py`,
before our own commit of its `next_batch`. After a kill between the two the same answer comes again:
its messages cannot be opened a second time, and need not be. After a kill before both, nothing was
opened.

* What is made for others is durable before it leaves: one-time keys before they are uploaded, the
  state of a session before its message is sent. So nothing is ever encrypted twice with one key.
* The key by which we encrypt in a room lives in memory only. After a start there is a new one, and
  also when a device came or went. A send that is repeated is therefore another ciphertext under
  the same transaction id, and the homeserver keeps the first.
* Devices are taken by the keys that they were first seen with. A message counts as its sender's
  only if its key came from a device of that person.
* A file of keys that went back in time must not be used again, and one device cannot have two.
  `check_device` finds that out.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

import apsw
import msgspec
import structlog
from anyio import CapacityLimiter, Lock, to_thread
from nio import MegolmEvent, OlmEvent, RoomKeyEvent
from nio.crypto import Olm
from nio.crypto.attachments import decrypt_attachment, encrypt_attachment
from nio.exceptions import EncryptionError
from nio.responses import KeysClaimResponse, KeysQueryResponse, KeysUploadResponse

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.matrix.client import CLIENT, MatrixApi
from koboshi.channels.matrix.codec import ENCRYPTED, SENDS_KEY
from koboshi.channels.matrix.key_store import KeyStore
from koboshi.channels.matrix.types import MatrixEvent, SyncAnswer
from koboshi.domain.errors import ChannelUnusable, FileNotHad
from koboshi.ports.clock import Clock

log = structlog.get_logger()

SIGNED = "signed_curve25519"
QUERY_MS = 10_000
NEW_DEVICE = (
    "log in again, so that the account has a new device, and store the new token; messages in "
    "encrypted rooms from before are told as unreadable then"
)
Result = TypeVar("Result")


class _Queried(msgspec.Struct, frozen=True, kw_only=True):
    device_keys: dict[str, dict[str, Any]] = {}


class _Claimed(msgspec.Struct, frozen=True, kw_only=True):
    one_time_keys: dict[str, dict[str, Any]] = {}


class _Uploaded(msgspec.Struct, frozen=True, kw_only=True):
    one_time_key_counts: dict[str, int] = {}


@dataclass(slots=True, kw_only=True)
class Encryption:
    api: MatrixApi
    user: str
    folder: Path
    clock: Clock
    _olm: Any = None
    _store: KeyStore | None = None
    _one: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(1))
    _asking: Lock = field(default_factory=Lock)
    _lacks_fallback: bool = False
    """The homeserver has no key to give away when the one-time keys are used up."""
    _without_keys: set[tuple[str, str]] = field(default_factory=set)
    """Devices that have no one-time key to begin with."""

    @property
    def is_open(self) -> bool:
        return self._olm is not None

    @property
    def _machine(self) -> Any:
        if self._olm is None:
            raise NoAnswer("the keys are not loaded")
        return self._olm

    async def open(self, device: str) -> None:
        """Load the keys of our device, or make some. Raises ChannelUnusable."""
        self.close()
        name = hashlib.sha256(f"{self.user}\n{device}".encode()).hexdigest()[:16]
        try:
            await to_thread.run_sync(self._open, device, self.folder / f"{name}.db")
        except (apsw.Error, OSError) as error:
            raise ChannelUnusable(f"the keys of {self.user} cannot be read: {error}") from error

    def close(self) -> None:
        self._olm = None
        if self._store is not None:
            self._store.close()
            self._store = None

    async def check_device(self, mark: str) -> str:
        """Which device this home is, where `mark` is stored. Raises ChannelUnusable if
        the device must not be used any more."""
        olm = self._machine
        ours = str(olm.account.identity_keys["curve25519"])
        wanted = f"{olm.device_id} {ours}"
        asked = {"device_keys": {self.user: [olm.device_id]}, "timeout": QUERY_MS}
        answer = await self.api.ask_patiently(_Queried, "POST", f"{CLIENT}/keys/query", asked)
        theirs = _curve_key(answer.device_keys.get(self.user, {}).get(olm.device_id), olm.device_id)
        if theirs not in ("", ours):
            raise ChannelUnusable(f"the keys of this device are not in this home: {NEW_DEVICE}")
        if mark != wanted and olm.account.shared:
            raise ChannelUnusable(f"this home was restored: {NEW_DEVICE}")
        return wanted

    async def publish(self) -> None:
        """Upload our keys, or more one-time keys, where the homeserver has too few."""
        async with self._asking:
            if self._machine.should_upload_keys or self._lacks_fallback:
                keys = await self._run(self._make_keys)
                place = f"{CLIENT}/keys/upload"
                answer = await self.api.ask_patiently(_Uploaded, "POST", place, keys)
                count = answer.one_time_key_counts.get(SIGNED, 0)
                await self._run(self._machine.handle_response, KeysUploadResponse(0, count))
                self._lacks_fallback = False

    async def take(self, answer: SyncAnswer) -> Collection[str]:
        """Make durable what came for our device. Returns the rooms to which keys came."""
        changed = set(answer.device_lists.changed)
        count = answer.device_one_time_keys_count.get(SIGNED)
        if count is not None:
            self._machine.uploaded_key_count = count
        unused = answer.device_unused_fallback_key_types
        self._lacks_fallback = unused is not None and SIGNED not in unused
        if changed:
            self._machine.add_changed_users(changed)
            self._without_keys.clear()
        rooms: Collection[str] = ()
        if answer.to_device.events:
            rooms = await self._run(self._take, answer.to_device.events)
        await self.publish()
        return rooms

    async def unseal(self, room: str, events: Sequence[MatrixEvent]) -> Sequence[MatrixEvent]:
        """The events, those that can be opened in their own words and others as they are."""
        senders = {event.sender for event in events if event.type == ENCRYPTED}
        if not senders:
            return events
        async with self._asking:
            await self._know(senders)
        return await self._run(lambda: [self._unsealed(room, event) for event in events])

    async def seal(
        self, room: str, members: Collection[str], kind: str, content: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The content of the encrypted event. How it relates to others and its key stand outside,
        where the homeserver needs them. Raises what a call raises; nothing is sent then."""
        outside = {key: content[key] for key in ("m.relates_to", SENDS_KEY) if key in content}
        inside = {key: value for key, value in content.items() if key != "m.relates_to"}
        async with self._asking:
            await self._know(set(members))
            await self._begin_sessions(members)
            for people, messages in await self._run(self._shares, room, members):
                await self._to_devices(ENCRYPTED, messages)
                self._machine.outbound_group_sessions[room].users_shared_with.update(people)
            self._mark_as_shared(room, members)
            sealed: dict[str, Any] = await self._run(
                self._machine.group_encrypt, room, {"type": kind, "content": inside}
            )
        return sealed | outside

    @property
    def has_errands(self) -> bool:
        olm = self._machine
        return bool(olm.wedged_devices or olm.outgoing_to_device_messages)

    async def look_after_devices(self) -> None:
        """Begin anew with devices whose messages could not be opened, and ask for missing keys."""
        async with self._asking:
            olm = self._machine
            if olm.wedged_devices:
                await self._claim(olm.get_users_for_key_claiming())
                olm.wedged_devices.clear()
            for message in list(olm.outgoing_to_device_messages):
                place = f"{CLIENT}/sendToDevice/{message.type}/{token_hex(8)}"
                await self.api.call_patiently("PUT", place, message.as_dict())
                await self._run(olm._mark_to_device_message_as_sent, message)

    def _open(self, device: str, path: Path) -> None:
        store = KeyStore(path, self.clock)
        with store.transaction():
            self._olm = Olm(self.user, device, store)
        self._store = store

    def _make_keys(self) -> dict[str, Any]:
        olm = self._machine
        is_new = not olm.account.shared
        keys: dict[str, Any] = olm.share_keys() if olm.should_upload_keys else {}
        if is_new or self._lacks_fallback:
            account = olm.account._account  # matrix-nio does not know of these keys
            account.generate_fallback_key()
            keys["fallback_keys"] = {
                f"{SIGNED}:{name}": self._signed({"key": key.to_base64(), "fallback": True})
                for name, key in account.fallback_key.items()
            }
        olm.save_account()
        return keys

    def _signed(self, key: dict[str, Any]) -> dict[str, Any]:
        olm = self._machine
        signature = olm.sign_json(key)
        return {**key, "signatures": {self.user: {f"ed25519:{olm.device_id}": signature}}}

    def _take(self, events: Iterable[msgspec.Raw]) -> Collection[str]:
        rooms = set[str]()
        for raw in events:
            try:
                read = OlmEvent.from_dict(msgspec.json.decode(raw))
                opened = self._machine.handle_to_device_event(read)
            except apsw.Error:
                raise
            except Exception as error:
                # Anyone can send anything to our device. One message must not stop the rest.
                log.warning("device_message_unreadable", error=type(error).__name__)
                continue
            if isinstance(opened, RoomKeyEvent):
                rooms.add(opened.room_id)
        return rooms

    def _unsealed(self, room: str, event: MatrixEvent) -> MatrixEvent:
        if event.type != ENCRYPTED or not event.content:
            return event
        opened = self._opened(room, event)
        if opened is None:
            return event
        relations = event.unsigned.get("m.relations")
        edit = relations.get("m.replace") if isinstance(relations, dict) else None
        if not isinstance(edit, dict) or edit.get("type") != ENCRYPTED:
            return opened
        latest = {"m.relations": {"m.replace": self._edit_of(room, edit)}}
        return msgspec.structs.replace(opened, unsigned=event.unsigned | latest)

    def _edit_of(self, room: str, edit: dict[str, Any]) -> dict[str, Any]:
        """The newest edit of an event, as the homeserver tells it with that."""
        try:
            found = self._opened(room, msgspec.convert(edit, MatrixEvent))
        except msgspec.ValidationError:
            return {}
        return {} if found is None else {"sender": found.sender, "content": found.content}

    def _opened(self, room: str, event: MatrixEvent) -> MatrixEvent | None:
        """What an event says; None where its key is missing, or of another person."""
        olm, content = self._machine, dict(event.content)
        by_key = olm.inbound_group_store[room]
        if "sender_key" not in content:  # clients need not say it any more
            wanted = content.get("session_id")
            keys = [key for key, sessions in by_key.items() if wanted in sessions]
            content["sender_key"] = keys[0] if keys else ""
        content.setdefault("device_id", "")
        try:
            read = MegolmEvent.from_dict(
                {**msgspec.to_builtins(event), "content": content, "room_id": room}
            )
            found = olm.decrypt_megolm_event(read, room) if isinstance(read, MegolmEvent) else None
        except EncryptionError:
            return None
        except Exception as error:
            log.warning("event_unreadable", error=type(error).__name__)
            return None
        source = getattr(found, "source", None)
        if not isinstance(source, dict) or not self._is_by(event.sender, room, content):
            return None
        kind, said = source.get("type"), source.get("content")
        if not isinstance(kind, str) or not isinstance(said, dict):
            return None
        return msgspec.structs.replace(event, type=kind, content=said)

    def _is_by(self, sender: str, room: str, content: Mapping[str, Any]) -> bool:
        """Whether the key of an event came from a device of its sender."""
        if sender == self.user and content["sender_key"] == self._own_key:
            return True
        session = self._machine.inbound_group_store.get(
            room, content["sender_key"], content["session_id"]
        )
        keys = (session.sender_key, session.ed25519)
        devices = self._machine.device_store.active_user_devices(sender)
        if any((device.curve25519, device.ed25519) == keys for device in devices):
            return True
        self._machine.users_for_key_query.add(sender)
        return False

    @property
    def _own_key(self) -> str:
        return str(self._machine.account.identity_keys["curve25519"])

    async def _know(self, people: set[str]) -> None:
        """Ask for the devices of people whose devices we do not know, or not any more."""
        olm = self._machine
        unknown = {each for each in people if each not in olm.tracked_users}
        unknown |= people & olm.users_for_key_query
        if unknown:
            asked = {"device_keys": {user: [] for user in unknown}, "timeout": QUERY_MS}
            answer = await self.api.ask_patiently(_Queried, "POST", f"{CLIENT}/keys/query", asked)
            keys = {user: answer.device_keys.get(user, {}) for user in unknown}
            await self._run(olm.handle_response, KeysQueryResponse(keys, {}))

    async def _begin_sessions(self, members: Collection[str]) -> None:
        missing: dict[str, list[str]] = {}
        for user, devices in self._machine.get_missing_sessions(list(members)).items():
            wanted = [each for each in devices if (user, each) not in self._without_keys]
            if wanted:
                missing[user] = wanted
        if missing:
            await self._claim(missing)
            self._without_keys |= {(user, each) for user in missing for each in missing[user]}

    async def _claim(self, devices: Mapping[str, Iterable[str]]) -> None:
        keys = {user: dict.fromkeys(each, SIGNED) for user, each in devices.items()}
        asked = {"one_time_keys": keys, "timeout": QUERY_MS}
        answer = await self.api.ask_patiently(_Claimed, "POST", f"{CLIENT}/keys/claim", asked)
        response = KeysClaimResponse(answer.one_time_keys, {})
        await self._run(self._machine.handle_response, response)

    def _devices_of(self, members: Collection[str]) -> set[tuple[str, str]]:
        devices = self._machine.device_store.active_user_devices
        return {(user, device.id) for user in members for device in devices(user)}

    def _shares(
        self, room: str, members: Collection[str]
    ) -> list[tuple[set[tuple[str, str]], dict[str, Any]]]:
        """What tells the devices of a room our key for it: nothing where they all know it."""
        olm, devices = self._machine, self._devices_of(members)
        session = olm.outbound_group_sessions.get(room)
        if session is not None:
            told = session.users_shared_with | session.users_ignored
            if session.shared and told == devices and not session.expired:
                return []
            if session.shared or session.expired or not session.users_shared_with <= devices:
                olm.rotate_outbound_group_session(room)
        return list(olm.share_group_session_parallel(room, list(members)))

    def _mark_as_shared(self, room: str, members: Collection[str]) -> None:
        session = self._machine.outbound_group_sessions[room]
        session.users_ignored |= self._devices_of(members) - session.users_shared_with
        session.mark_as_shared()

    async def _to_devices(self, kind: str, messages: Mapping[str, Any]) -> None:
        place = f"{CLIENT}/sendToDevice/{kind}/{token_hex(8)}"
        await self.api.call_patiently("PUT", place, messages)

    async def _run(self, work: Callable[..., Result], *given: Any) -> Result:
        """Do something with the keys, and make it durable. If that fails, what is in memory is not
        what is stored: it is let go, and the next connection loads what is."""
        store = self._store
        if store is None:
            raise NoAnswer("the keys are not loaded")

        def durably() -> Result:
            with store.transaction():
                return work(*given)

        try:
            return await to_thread.run_sync(durably, limiter=self._one)
        except Exception as error:
            self.close()
            raise NoAnswer(f"the keys cannot be used: {error}") from error


async def encrypted_file(content: bytes) -> tuple[bytes, dict[str, Any]]:
    """A file as the homeserver gets it, and what opens it."""
    sealed: tuple[bytes, dict[str, Any]] = await to_thread.run_sync(encrypt_attachment, content)
    return sealed


async def decrypted_file(content: bytes, key: str, iv: str, sha256: str) -> bytes:
    """Raises FileNotHad if it is not what the message spoke of."""
    try:
        work = partial(decrypt_attachment, content, key, sha256, iv)
        opened: bytes = await to_thread.run_sync(work)
    except (EncryptionError, ValueError) as error:
        raise FileNotHad("it is damaged: it cannot be decrypted") from error
    return opened


def _curve_key(device: object, device_id: str) -> str:
    keys = device.get("keys") if isinstance(device, dict) else None
    key = keys.get(f"curve25519:{device_id}") if isinstance(keys, dict) else None
    return key if isinstance(key, str) else ""
