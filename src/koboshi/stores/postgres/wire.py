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
from typing import NamedTuple, Self, TypeAlias

from psycopg import OperationalError, pq

from koboshi.kernel.transaction import Row, Value
from koboshi.ports.clock import Clock
from koboshi.stores.postgres.translate import Statement

_ENDED_SESSION = ("57P", "25P03", "08")
"""Errors after which the server has closed the connection."""
_STATEMENT_STATES = ("42P05", "26000")
"""A prepared statement is there that should not be, or is not there that should."""
_STANDBY_GIVEN_UP = "01000"
_WAITS_FOR = {
    pq.PollingStatus.READING: select.POLLIN,
    pq.PollingStatus.WRITING: select.POLLOUT,
}
_COMMAND, _ROWS = int(pq.ExecStatus.COMMAND_OK), int(pq.ExecStatus.TUPLES_OK)
_DONE = frozenset({_COMMAND, _ROWS})
_FAILED, _SKIPPED = int(pq.ExecStatus.FATAL_ERROR), int(pq.ExecStatus.PIPELINE_ABORTED)

CONNECT_SECONDS_MAX = 10.0

STILL_MS_MAX, STILL_MS_MIN = 3_000, 1_000
"""A node that stands still inside a batch holds its keys for no longer; less for a short lease."""

SETTINGS = (
    "SET statement_timeout = '5s'",
    "SET lock_timeout = '4s'",
    # Plans are made once, and do not depend on how full the tables were then.
    "SET plan_cache_mode = force_generic_plan",
    "SET enable_seqscan = off",
    "SET jit = off",
    "compression_set",
    "SET client_min_messages = warning",
)


class Lost(Exception):
    """The connection is gone, or silent for too long."""


class Pooled(Lost):
    """The connection is not ours alone: it knows statements that we did not prepare, or does not
    know those that we did."""

    def __init__(self, error: "ServerError") -> None:
        super().__init__(
            f"a pooler in transaction mode stands between ({error}): name the server itself in "
            "store.url; a gateway has four connections and needs no pooler"
        )


class ServerError(Exception):
    """The server refused a statement."""

    def __init__(self, state: str, words: str) -> None:
        super().__init__(f"{words} ({state})")
        self.state = state

    @property
    def is_pooled(self) -> bool:
        """Whether another client has used the connection meanwhile."""
        return self.state in _STATEMENT_STATES


# Tuples: a turn has sixty of each, and a frozen class takes three times as long to make.
class WireRequest(NamedTuple):
    """A statement to be sent: one of the kernel by its name, or a text of this store."""

    query: str
    values: Mapping[str, Value]


class WireAnswer(NamedTuple):
    rows: list[Row]
    touched: int
    tag: bytes
    """What the server says that it did; told for a text alone."""


NOTHING: Mapping[str, Value] = {}
BEGIN, COMMIT, ROLLBACK = (WireRequest(each, NOTHING) for each in ("BEGIN", "COMMIT", "ROLLBACK"))
Sent: TypeAlias = tuple[str, bool]
"""What was sent, and whether it is the statement itself, not only its preparation."""
Decoder: TypeAlias = Callable[[bytes], Value]


class Wire:
    """A connection, used by one thread."""

    def __init__(
        self,
        connection: pq.abc.PGconn,
        statements: Mapping[str, Statement],
        clock: Clock,
        pace: float = 1.0,
    ) -> None:
        """`pace` shortens all waits, where a lease is shorter than usual."""
        self._connection = connection
        self._pace = pace
        self._clock = clock
        self._statements = statements
        self._prepared: dict[str, bytes] = {}
        self._decoders: dict[str, tuple[tuple[int, Decoder], ...]] = {}
        """How each column of the answer to a prepared statement is read."""
        self.rounds = 0
        self.is_in_doubt = False
        """The server has warned that a commit may not be where it must be."""
        connection.notice_handler = self._note

    @classmethod
    def connect(
        cls, url: str, statements: Mapping[str, Statement], clock: Clock, pace: float = 1.0
    ) -> Self:
        """Raises Lost where the server cannot be reached, or does not let us in."""
        connection = pq.PGconn.connect_start(url.encode())
        wire = cls(connection, statements, clock, pace)
        with ExitStack() as undo:
            undo.callback(connection.finish)
            try:
                wire._get_through(clock.monotonic() + CONNECT_SECONDS_MAX * pace)
                connection.nonblocking = 1
                connection.enter_pipeline_mode()
                still_ms = max(STILL_MS_MIN, round(STILL_MS_MAX * pace))
                still = f"SET idle_in_transaction_session_timeout = {still_ms}"
                requests = [WireRequest(each, NOTHING) for each in (still, *SETTINGS)]
                wire.round(requests, within_s=CONNECT_SECONDS_MAX)
            except ServerError as error:
                raise (Pooled(error) if error.is_pooled else Lost(str(error))) from error
            except OperationalError as error:
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
            sent = self._send(requests)
            self._connection.pipeline_sync()
            self.rounds += 1
            limit = self._clock.monotonic() + within_s * self._pace
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

    def wait_for(self, other: int, seconds: float) -> None:
        """Return when something has come, here or at another descriptor, or after the time."""
        poll = select.poll()
        poll.register(self._connection.socket, select.POLLIN)
        poll.register(other, select.POLLIN)
        poll.poll(seconds * 1_000)

    def _send(self, requests: Iterable[WireRequest]) -> list[Sent]:
        connection, statements = self._connection, self._statements
        prepared, execute = self._prepared, self._connection.send_query_prepared
        sent: list[Sent] = []
        for request in requests:
            query, values = request
            statement = statements.get(query)
            if statement is None:
                connection.send_query_params(query.encode(), None)
                sent.append((query, True))
                continue
            name = prepared.get(query)
            if name is None:
                # Taken back where the server has skipped it.
                name = prepared[query] = query.encode()
                connection.send_prepare(name, statement.text.encode())
                sent.append((query, False))
            execute(name, [_encoded(values[each]) for each in statement.names])
            sent.append((query, True))
        return sent

    def _receive(self, sent: list[Sent], limit: float) -> list[WireAnswer]:
        answers: list[WireAnswer] = []
        failure: ServerError | None = None
        get_result = self._connection.get_result
        for query, is_asked in sent:
            result = self._next_result(limit)
            assert result is not None, "an answer is missing"
            status = result.status
            if status in _DONE:
                if is_asked:
                    answers.append(self._answer(query, result, has_rows=status == _ROWS))
            else:
                if not is_asked:
                    self._prepared.pop(query, None)
                if status != _SKIPPED:
                    failure = failure or _failure(result)
            # The end of an answer is there with it: no wait.
            while get_result() is not None:
                """Only the end of the answer is left."""
        ended = self._next_result(limit)
        assert ended is not None
        assert ended.status == pq.ExecStatus.PIPELINE_SYNC, "the end of the round is missing"
        if failure is not None:
            raise failure
        return answers

    def _answer(self, query: str, result: "pq.abc.PGresult", *, has_rows: bool) -> WireAnswer:
        if not has_rows:
            tag = b"" if query in self._prepared else result.command_status or b""
            return WireAnswer([], result.command_tuples or 0, tag)
        rows: list[Row] = []
        if count := result.ntuples:
            decoders = self._decoders.get(query) or self._look_at_columns(query, result)
            get_value = result.get_value
            for row in range(count):
                found = [(get_value(row, place), decode) for place, decode in decoders]
                rows.append(
                    tuple([None if each is None else decode(each) for each, decode in found])
                )
        return WireAnswer(rows, count, b"")

    def _look_at_columns(
        self, query: str, result: "pq.abc.PGresult"
    ) -> tuple[tuple[int, Decoder], ...]:
        kinds = map(result.ftype, range(result.nfields))
        decoders = tuple(enumerate(_DECODERS.get(kind, bytes.decode) for kind in kinds))
        if query in self._prepared:
            self._decoders[query] = decoders
        return decoders

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
        if result is not None and result.status == _FAILED:
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
        return storable(value).encode() if "\0" in value else value.encode()
    return b"%d" % value


def _truth(value: bytes) -> int:
    return int(value == b"t")


_INTEGERS, _BOOLEAN = (20, 21, 23, 26, 1700), 16
"""The types of numbers, by their ids in the server; sums of numbers are `numeric`."""
_DECODERS: Mapping[int, Decoder] = {**dict.fromkeys(_INTEGERS, int), _BOOLEAN: _truth}


def storable(text: str) -> str:
    """The text without zeros, which the server takes in no text. In JSON they are written out, and
    stay. What takes their place is as long, so that places in the text stay where they are."""
    return text.replace("\0", "\ufffd")
