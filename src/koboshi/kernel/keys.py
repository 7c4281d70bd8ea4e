"""The keys of the chats that a verb writes to.

Every verb reads, decides and writes, and relies on no other write to the same chat in between. A
store with one writer guarantees that: SQLite uses no keys. Where several nodes write to one
database, a transaction that writes a row of a session holds the key of its chat until the commit. A
verb names the keys that it knows before it begins (`Writer.write(verb, operation, keys)`), and the
store takes them in order. A key that the operation finds later is locked here, before the write. If
it is not free, `NeedsKey` is raised and the store repeats the operation with that key among the
first. A sweep asks `rows_locked` and leaves for later what is not free.

A key belongs to a session for good (`sessions.lock_key`). A new session takes the key that its chat
has already, and a move to another chat does not change it.

The tests refuse a write to a session whose key was not named (`tests/harness/named_keys.py`).
"""

from functools import lru_cache
from hashlib import blake2b

from koboshi.domain.ids import SessionId
from koboshi.kernel.decode import first_number, number, numbers
from koboshi.kernel.transaction import Keys, Reading, Row, Transaction, Value


class NeedsKey(Exception):
    """The operation writes to a chat whose key it does not hold, and that is not free now."""

    def __init__(self, key: int) -> None:
        super().__init__(f"key {key} is needed")
        self.key = key


@lru_cache(maxsize=1_024)
def key_named(name: str) -> int:
    """The key of a name: 64 bits with a sign, as databases have them."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), signed=True)


def chat_key(channel: str, chat: str) -> int:
    """The key of a chat that has no session yet."""
    return key_named(f"{channel}\0{chat}")


def people_key(channel: str) -> int:
    """Held by a transaction that gives or takes a right on a channel."""
    return key_named(f"people:{channel}")


def channel_key(channel: str) -> int:
    """Held by a transaction that moves the cursor of a channel."""
    return key_named(f"channel:{channel}")


BUDGET_KEY = key_named("budget")
"""Held by a transaction that counts what is spent."""


def model_key(model: str) -> int:
    """Held by a transaction that benches a model."""
    return key_named(f"model:{model}")


def of_sessions(*session_ids: SessionId) -> Keys:
    return Keys(sessions=session_ids)


def key_for(tx: Reading, channel: str, chat: str) -> int:
    """The key of a new session in a chat: that of the chat's other sessions, if it has any."""
    key = first_number(tx.row("chat_key", channel=channel, chat=chat))
    return chat_key(channel, chat) if key is None else key


def lock(tx: Transaction, key: int) -> None:
    """Hold a key until the commit. Raises NeedsKey."""
    if not tx.try_lock(key):
        raise NeedsKey(key)


def lock_session(tx: Transaction, session_id: SessionId) -> None:
    """Hold the key of a session until the commit. Raises NeedsKey."""
    lock_found(tx, "session_key", session_id=session_id)


def lock_found(tx: Transaction, query: str, **values: Value) -> None:
    """Hold the keys that the named query gives until the commit. Raises NeedsKey."""
    if not tx.uses_keys:
        return
    for key in numbers(tx.rows(query, **values)):
        lock(tx, key)


def rows_locked(tx: Transaction, query: str, key_at: int, **values: Value) -> list[Row]:
    """The rows that the named query gives and whose keys are free, with these held until the
    commit. `key_at` is the column of the key.

    They are read again once the keys are held: another node may have changed them, or done what
    they ask for, between the look and the lock.
    """
    rows = tx.rows(query, **values)
    held = {key for key in numbers([(row[key_at],) for row in rows]) if tx.try_lock(key)}
    if tx.uses_keys and held:
        rows = tx.rows(query, **values)
    return [row for row in rows if number(row[key_at]) in held]
