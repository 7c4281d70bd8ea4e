"""One connection to the server, and rounds on it.

A round sends any number of statements at once, ends with one synchronisation, and reads all
answers: one round trip. The first statement that fails makes the server skip the others of its
round. Statements of the kernel are prepared when a connection first sends them.

A connection that breaks, or is silent for longer than it may be, is `Lost`: what was sent in the
round may have been carried out or not.
"""

import select
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self, TypeAlias

from psycopg import OperationalError, pq

from koboshi.kernel.transaction import Row, Value
from koboshi.ports.clock import Clock
from koboshi.stores.postgres.translate import Statement

_INTEGERS = frozenset({20, 21, 23, 26, 1700})
"""The types of numbers, by their ids in the server; sums of numbers are `numeric`."""
_BOOLEAN = 16
_ENDED_SESSION = ("57P", "25P03", "08")
"""Errors after which the server has closed the connection."""
_STANDBY_GIVEN_UP = "01000"
_WAITS_FOR = {
    pq.PollingStatus.READING: select.POLLIN,
    pq.PollingStatus.WRITING: select.POLLOUT,
}
_DONE = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)

CONNECT_SECONDS_MAX = 10.0

SETTINGS = (
    # A node that stands still inside a batch holds its keys for no longer.
    "SET idle_in_transaction_session_timeout = '3s'",
    "SET statement_timeout = '5s'",
    "SET lock_timeout = '4s'",
    # Plans are made once, and do not depend on how full the tables were then.
    "SET plan_cache_mode = force_generic_plan",
    "SET enable_seqscan = off",
    "SET jit = off",
    "SET client_min_messages = warning",
)


class Lost(Exception):
    """The connection is gone, or silent for too long."""


class ServerError(Exception):
    """The server refused a statement."""

    def __init__(self, state: str, words: str) -> None:
        super().__init__(f"{words} ({state})")
        self.state = state


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A statement to be sent: one of the kernel by its name, or a text of this store."""

    query: str
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class WireAnswer:
    rows: list[Row]
    touched: int
    tag: bytes
    """What the server says that it did."""


NOTHING: Mapping[str, Value] = {}
BEGIN, COMMIT, ROLLBACK = (WireRequest(each, NOTHING) for each in ("BEGIN", "COMMIT", "ROLLBACK"))
Sent: TypeAlias = "tuple[WireRequest, bool]"


class Wire:
    """A connection, used by one thread."""

    def __init__(
        self, connection: pq.abc.PGconn, statements: Mapping[str, Statement], clock: Clock
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._statements = statements
        self._prepared: set[str] = set()
        self.rounds = 0
        self.is_in_doubt = False
        """The server has warned that a commit may not be where it must be."""
        connection.notice_handler = self._note

    @classmethod
    def connect(cls, url: str, statements: Mapping[str, Statement], clock: Clock) -> Self:
        """Raises Lost where the server cannot be reached, or does not let us in."""
        connection = pq.PGconn.connect_start(url.encode())
        wire = cls(connection, statements, clock)
        with ExitStack() as undo:
            undo.callback(connection.finish)
            try:
                wire._get_through(clock.monotonic() + CONNECT_SECONDS_MAX)
                connection.nonblocking = 1
                connection.enter_pipeline_mode()
                requests = [WireRequest(each, NOTHING) for each in SETTINGS]
                wire.round(requests, within_s=CONNECT_SECONDS_MAX)
            except (OperationalError, ServerError) as error:
                raise Lost(str(error)) from error
            undo.pop_all()
        return wire

    @property
    def server_version(self) -> int:
        return self._connection.server_version

    @property
    def backend_pid(self) -> int:
        return self._connection.backend_pid

    @property
    def is_idle(self) -> bool:
        """Whether the connection is there and has no transaction."""
        return self._connection.transaction_status == pq.TransactionStatus.IDLE

    def close(self) -> None:
        self._connection.finish()

    def round(
        self,
        requests: Iterable[WireRequest],
        *,
        within_s: float,
        on_sent: Callable[[], None] = lambda: None,
    ) -> list[WireAnswer]:
        """The answers to all requests. Raises ServerError for the first that failed, and Lost.
        `on_sent` is called when all of them are on their way."""
        try:
            sent = [part for each in requests for part in self._send(each)]
            self._connection.pipeline_sync()
            self.rounds += 1
            limit = self._clock.monotonic() + within_s
            self._flush(limit)
            on_sent()
            return self._receive(sent, limit)
        except OperationalError as error:
            raise Lost(str(error)) from error

    def one(
        self, query: str, values: Mapping[str, Value] = NOTHING, *, within_s: float
    ) -> WireAnswer:
        return self.round([WireRequest(query, values)], within_s=within_s)[0]

    def notifications(self) -> list[str]:
        """What other connections have told since the last look. Raises Lost."""
        told = []
        try:
            self._connection.consume_input()
        except OperationalError as error:
            raise Lost(str(error)) from error
        while (found := self._connection.notifies()) is not None:
            told.append(found.extra.decode())
        return told

    def _send(self, request: WireRequest) -> list[Sent]:
        statement = self._statements.get(request.query)
        if statement is None:
            self._connection.send_query_params(request.query.encode(), None)
            return [(request, True)]
        sent: list[Sent] = []
        name = request.query.encode()
        if request.query not in self._prepared:
            self._connection.send_prepare(name, statement.text.encode())
            # Taken back where the server has skipped it.
            self._prepared.add(request.query)
            sent.append((request, False))
        values = [_encoded(request.values[each]) for each in statement.names]
        self._connection.send_query_prepared(name, values)
        sent.append((request, True))
        return sent

    def _receive(self, sent: list[Sent], limit: float) -> list[WireAnswer]:
        answers: list[WireAnswer] = []
        failure: ServerError | None = None
        for request, is_asked in sent:
            result = self._next_result(limit)
            assert result is not None, "an answer is missing"
            if result.status not in _DONE:
                if not is_asked:
                    self._prepared.discard(request.query)
                if result.status != pq.ExecStatus.PIPELINE_ABORTED:
                    failure = failure or _failure(result)
            elif is_asked:
                answers.append(_answer(result))
            while self._next_result(limit) is not None:
                """Only the end of the answer is left."""
        ended = self._next_result(limit)
        assert ended is not None
        assert ended.status == pq.ExecStatus.PIPELINE_SYNC, "the end of the round is missing"
        if failure is not None:
            raise failure
        return answers

    def _flush(self, limit: float) -> None:
        """Send all of it. What comes back meanwhile is read, or both sides would wait."""
        while self._connection.flush():
            self._wait(select.POLLIN | select.POLLOUT, limit)
            self._connection.consume_input()

    def _next_result(self, limit: float) -> "pq.abc.PGresult | None":
        connection = self._connection
        while connection.is_busy():
            self._wait(select.POLLIN, limit)
            connection.consume_input()
        result = connection.get_result()
        if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
            state = _state(result)
            if state.startswith(_ENDED_SESSION) or connection.status == pq.ConnStatus.BAD:
                raise Lost(result.get_error_message().strip())
        return result

    def _get_through(self, limit: float) -> None:
        """Connect without standing in the way of other threads, as a call that waits in libpq
        would. Raises Lost."""
        connection, standing = self._connection, pq.PollingStatus.WRITING
        while connection.status != pq.ConnStatus.BAD and standing in _WAITS_FOR:
            self._wait(_WAITS_FOR[standing], limit)
            standing = pq.PollingStatus(connection.connect_poll())
        if standing != pq.PollingStatus.OK or connection.status != pq.ConnStatus.OK:
            raise Lost(connection.get_error_message().strip())

    def _wait(self, events: int, limit: float) -> None:
        poll = select.poll()
        poll.register(self._connection.socket, events)
        if not poll.poll(max(0.0, limit - self._clock.monotonic()) * 1_000):
            raise Lost("the server is silent")

    def _note(self, result: "pq.abc.PGresult") -> None:
        self.is_in_doubt |= _state(result) == _STANDBY_GIVEN_UP


def _state(result: "pq.abc.PGresult") -> str:
    return (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()


def _failure(result: "pq.abc.PGresult") -> ServerError:
    words = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
    return ServerError(_state(result), words.decode(errors="replace"))


def _encoded(value: Value) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return storable(value).encode()
    return b"%d" % value


def storable(text: str) -> str:
    """The text without zeros, which the server takes in no text. In JSON they are written out, and
    stay. What takes their place is as long, so that places in the text stay where they are."""
    return text.replace("\0", "\ufffd")


def _answer(result: "pq.abc.PGresult") -> WireAnswer:
    columns = [result.ftype(place) for place in range(result.nfields)]
    rows: list[Row] = [
        tuple(_decoded(result.get_value(row, place), kind) for place, kind in enumerate(columns))
        for row in range(result.ntuples)
    ]
    return WireAnswer(rows, result.command_tuples or 0, result.command_status or b"")


def _decoded(value: bytes | None, kind: int) -> Value:
    if value is None:
        return None
    if kind in _INTEGERS:
        return int(value)
    if kind == _BOOLEAN:
        return int(value == b"t")
    return value.decode()
