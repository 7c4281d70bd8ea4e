"""Refuses a write to a session whose key the verb has not named.

SQLite needs no keys, so a verb that forgets one works there. Temporary triggers on the connection
of the writer find it: whatever an operation writes to, its key was given to `Writer.write` or
locked in the transaction before. What is written outside of an operation (the ages that a jump of
the clock moves) is not looked at.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import apsw
import pytest

from koboshi.kernel.decode import number
from koboshi.kernel.transaction import NO_KEYS, Keys, Operation, Transaction
from koboshi.stores.sqlite import writer as writer_module
from koboshi.stores.sqlite.transaction import SqliteTransaction
from koboshi.stores.sqlite.writer import SqliteWriter

Outcome = TypeVar("Outcome")

_OF_SESSION = "(SELECT lock_key FROM sessions WHERE session_id = {row}.session_id)"
_OF_TURN = (
    "(SELECT lock_key FROM sessions WHERE session_id = "
    "(SELECT session_id FROM turns WHERE turn_id = {row}.turn_id))"
)
_OF_PROCESS = (
    "(SELECT lock_key FROM sessions WHERE session_id = "
    "(SELECT session_id FROM processes WHERE process_id = {row}.process_id))"
)
KEY_OF = {
    "sessions": "{row}.lock_key",
    "turns": _OF_SESSION,
    "inbox": _OF_SESSION,
    "steps": _OF_SESSION,
    "outbox": _OF_SESSION,
    "processes": _OF_SESSION,
    "children": _OF_SESSION,
    "agent_sessions": _OF_SESSION,
    "agent_processes": _OF_SESSION,
    "agent_messages": _OF_SESSION,
    "agent_requests": _OF_SESSION,
    "agent_events": _OF_SESSION,
    "calls": _OF_TURN,
    "watchers": _OF_PROCESS,
}
"""How the key of a row is found, by its table."""
NOT_NAMED = "is not named"
_ROWS = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}


class KeyNotNamed(AssertionError):
    """A verb writes to a session whose key it has not named."""


class CheckedTransaction(SqliteTransaction):
    """A transaction whose connection refuses what the operation under way has not named."""

    __slots__ = ("named",)
    uses_keys = True

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self.named: set[int] | None = None
        """The keys that the operation has named; None outside of one."""
        connection.create_scalar_function("key_is_named", self._is_named, 1)
        for table, key_of in KEY_OF.items():
            for event, rows in _ROWS.items():
                asked = " AND ".join(f"key_is_named({key_of.format(row=row)})" for row in rows)
                connection.execute(
                    f"CREATE TEMP TRIGGER named_{table}_{event} BEFORE {event} ON main.{table} "
                    f"WHEN NOT ({asked}) "
                    f"BEGIN SELECT RAISE(ABORT, 'the key of a row of {table} {NOT_NAMED}'); END"
                )

    def _is_named(self, *keys: object) -> int:
        """What belongs to no session has no key."""
        (key,) = keys
        return int(self.named is None or key is None or key in self.named)

    def try_lock(self, key: int) -> bool:
        if self.named is not None:
            self.named.add(key)
        return True

    @contextmanager
    def naming(self, verb: str, keys: Keys) -> Iterator[None]:
        """Inside, an operation runs that has named these keys."""
        asked = [self.row("session_key", session_id=each) for each in keys.sessions]
        of_sessions = {number(row[0]) for row in asked if row is not None}
        self.named = {*keys.chats, *of_sessions}
        try:
            yield
        except apsw.ConstraintError as error:
            if NOT_NAMED in str(error):
                raise KeyNotNamed(f"{verb}: {error}") from error
            raise
        finally:
            self.named = None


def checked(verb: str, operation: Operation[Outcome], keys: Keys) -> Operation[Outcome]:
    """The operation, refused where it writes to what it has not named."""

    def carried_out(tx: Transaction) -> Outcome:
        assert isinstance(tx, CheckedTransaction)
        with tx.naming(verb, keys):
            return operation(tx)

    return carried_out


def refuse_unnamed(patch: pytest.MonkeyPatch) -> None:
    """All stores that are opened from now on refuse a write without its key."""
    write = SqliteWriter.write

    async def written(
        writer: SqliteWriter,
        verb: str,
        operation: Operation[Outcome],
        keys: Keys = NO_KEYS,
    ) -> Outcome:
        return await write(writer, verb, checked(verb, operation, keys), keys)

    patch.setattr(writer_module, "SqliteTransaction", CheckedTransaction)
    patch.setattr(SqliteWriter, "write", written)
