"""The keys of one device, in a file of its own: what the Olm machine of matrix-nio asks of a store.

Each change is durable when its transaction ends, and a transaction is whatever belongs together. A
message between devices can be opened once: the state behind it and the key that it carried are one
commit. The store that comes with matrix-nio makes two, and a kill between them loses the key.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.resources import files
from pathlib import Path

import apsw
from nio.crypto import (
    DeviceStore,
    GroupSessionStore,
    InboundGroupSession,
    OlmAccount,
    OlmDevice,
    OutgoingKeyRequest,
    Session,
    SessionStore,
)

from koboshi.ports.clock import Clock

ROOM_KEY_LIFE_MS = 90 * 24 * 3_600_000
"""Clients change the key of a room every week or so. Older ones are not needed any more."""
FORM = 1
_TEXT = files("koboshi.channels.matrix").joinpath("key_store.sql").read_text(encoding="utf-8")
_QUERIES = dict(re.findall(r"^-- name: (\w+)\n(.+?)(?=^-- name: |\Z)", _TEXT, re.M | re.S))


class KeyStore:
    """Only one thread at a time may use it."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Open the file, or make it. Raises apsw.Error or OSError."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        self._clock = clock
        self._file = apsw.Connection(str(path))
        self._file.set_busy_timeout(1_000)
        self._run("settings")
        (form,) = next(self._run("form"))
        if form not in (0, FORM):
            self._file.close()
            raise apsw.FormatError(f"{path.name} is of a newer koboshi")
        if form == 0:
            with self.transaction():
                self._run("make")

    def close(self) -> None:
        self._file.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is saved inside is durable at its end, all of it or nothing."""
        if self._file.in_transaction:
            yield
            return
        with self._file:
            yield

    def load_account(self) -> OlmAccount | None:
        for pickle, shared in self._run("account"):
            return OlmAccount.from_pickle(str(pickle).encode(), shared=bool(shared))
        return None

    def save_account(self, account: OlmAccount) -> None:
        self._run("account_save", account.pickle().decode(), int(account.shared))

    def load_sessions(self) -> SessionStore:
        found = SessionStore()
        for key, pickle, created, used in self._run("sessions"):
            session = Session.from_pickle(
                str(pickle).encode(), _time(created), use_time=_time(used)
            )
            found.add(str(key), session)
        return found

    def save_session(self, curve_key: str, session: Session) -> None:
        times = session.creation_time.isoformat(), session.use_time.isoformat()
        self._run("session_save", curve_key, session.id, session.pickle().decode(), *times)

    def load_inbound_group_sessions(self) -> GroupSessionStore:
        self._run("room_keys_forget", self._clock.now_ms() - ROOM_KEY_LIFE_MS)
        found = GroupSessionStore()
        for room, key, ed25519, pickle in self._run("room_keys"):
            found.add(
                InboundGroupSession.from_pickle(
                    str(pickle).encode(), str(ed25519), str(key), str(room)
                )
            )
        return found

    def save_inbound_group_session(self, session: InboundGroupSession) -> None:
        self._run(
            "room_key_save",
            session.room_id,
            session.sender_key,
            session.id,
            session.ed25519,
            session.pickle().decode(),
            self._clock.now_ms(),
        )

    def load_device_keys(self) -> DeviceStore:
        found = DeviceStore()
        for user, device, ed25519, curve25519, deleted in self._run("devices"):
            keys = {"ed25519": str(ed25519), "curve25519": str(curve25519)}
            found.add(OlmDevice(str(user), str(device), keys, deleted=bool(deleted)))
        return found

    def save_device_keys(self, changed: dict[str, dict[str, OlmDevice]]) -> None:
        with self.transaction():
            for device in (each for devices in changed.values() for each in devices.values()):
                keys = device.ed25519, device.curve25519
                self._run("device_save", device.user_id, device.id, *keys, int(device.deleted))

    def load_outgoing_key_requests(self) -> dict[str, OutgoingKeyRequest]:
        return {}  # what was asked for in an earlier life is asked for again

    def add_outgoing_key_request(self, key_request: OutgoingKeyRequest) -> None:
        """It is enough to know it in memory."""

    def remove_outgoing_key_request(self, key_request: OutgoingKeyRequest) -> None:
        """It is enough to know it in memory."""

    # Devices are known by the keys that they were first seen with; no person verifies them.

    def is_device_verified(self, _device: OlmDevice) -> bool:
        return False

    def is_device_blacklisted(self, _device: OlmDevice) -> bool:
        return False

    def is_device_ignored(self, _device: OlmDevice) -> bool:
        return True

    def _run(self, name: str, *values: str | int) -> "apsw.Cursor":
        return self._file.execute(_QUERIES[name], values)


def _time(stored: object) -> datetime:
    return datetime.fromisoformat(str(stored))
