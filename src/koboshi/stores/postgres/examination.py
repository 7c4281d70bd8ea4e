"""Looking at a server without changing anything: what `koboshi doctor` asks it."""

from koboshi.kernel.decode import number, text
from koboshi.ports.clock import Clock
from koboshi.ports.server import LivingNode, ServerFacts, ServerRefusal
from koboshi.stores.marks import Mark, MoveState
from koboshi.stores.postgres.migrate import newest_version
from koboshi.stores.postgres.reach import ROUND_SECONDS_MAX
from koboshi.stores.postgres.statements import statements
from koboshi.stores.postgres.wire import Lost, ServerError, Wire

ROUNDS = 5
"""The quickest of some tells how far the server is away."""


def examine_server(url: str, clock: Clock) -> ServerFacts | ServerRefusal:
    try:
        wire = Wire.connect(url, statements(), clock)
    except Lost as error:
        return ServerRefusal(words=f"cannot be reached: {error}")
    try:
        return _examined(wire, clock)
    except (Lost, ServerError) as error:
        return ServerRefusal(words=f"cannot be asked: {error}")
    finally:
        wire.close()


def _examined(wire: Wire, clock: Clock) -> ServerFacts:
    wire.one("server_examination", within_s=ROUND_SECONDS_MAX)
    took = []
    for _ in range(ROUNDS):
        begun, begun_ms = clock.monotonic(), clock.now_ms()
        (row,) = wire.one("server_examination", within_s=ROUND_SECONDS_MAX).rows
        seconds = clock.monotonic() - begun
        took.append((seconds, number(row[10]) - begun_ms - round(seconds * 500), row))
    seconds, ahead_ms, row = min(took, key=lambda each: each[0])
    version, fsync, commit, names, standbys, is_standby, encoding, left, idle, pid, _ = row
    schema, oldest_code, rows_are, nodes = _tables(wire)
    return ServerFacts(
        name=f"PostgreSQL {text(version)}",
        round_trip_ms=seconds * 1_000,
        clock_ahead_ms=ahead_ms,
        fsync=text(fsync),
        synchronous_commit=text(commit),
        standby_names=text(names),
        standbys=number(standbys),
        is_standby=bool(is_standby),
        encoding=text(encoding),
        connections_left=number(left),
        idle_timeout=text(idle),
        is_pooled=number(pid) != wire.backend_pid,
        schema=schema,
        schema_known=newest_version(),
        oldest_code=oldest_code,
        rows_are=rows_are,
        nodes=nodes,
    )


def _tables(wire: Wire) -> tuple[int | None, int, str, tuple[LivingNode, ...]]:
    """The version of the tables, the oldest program, where the rows are, and who is alive."""

    def asked(query: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in wire.one(query, within_s=ROUND_SECONDS_MAX).rows]

    if not asked("schema_exists")[0][0]:
        return None, 0, "", ()
    ((version, oldest_code, _),) = asked("schema_read")
    found = asked("move_state") if asked("moves_exist")[0][0] else []
    mark = Mark.of_row(found[0]) if found else None
    nodes = tuple(
        LivingNode(
            node=text(node),
            home=text(home),
            version=text(code),
            silent_ms=number(silent),
            fingerprint=text(fingerprint),
        )
        for node, home, code, silent, fingerprint in asked("nodes_alive")
    )
    rows_are = "" if mark is None or mark.state is MoveState.LIVE else mark.place
    return number(version), number(oldest_code), rows_are, nodes
