"""Issue 14, point 3: what is not in the table of a machine changes no row of the database.

A database of version 1 has rows in every state. Each statement that sets a state is carried out for
each of them, whatever its state.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import apsw
import pytest

from koboshi.domain.errors import IllegalTransition
from koboshi.kernel.deliveries import hold_outbox
from koboshi.kernel.moves import MOVES, move, move_from, move_one
from koboshi.kernel.queries import QUERIES
from koboshi.kernel.transaction import Value
from koboshi.stores.sqlite.file import open_writer
from koboshi.stores.sqlite.transaction import SqliteTransaction
from tests.harness.golden import lay_out_every_state
from tests.harness.state_tables import TABLE_OF, TABLES

KEYS = {
    "turns": "turn_id",
    "inbox": "entry_id",
    "outbox": "delivery_id",
    "processes": "process_id",
    "watchers": "watcher_id",
    "schedules": "schedule_id",
    "goals": "goal_id",
    "children": "child_id",
}
# What a statement is told beside the row that it is for.
TOLD: dict[str, Value] = {
    "now": 1_900_000_000_000,
    "reason": "a reason",
    "worker_id": 1,
    "epoch": 0,
    "ended_ms": 1_900_000_000_000,
}
SAME = {"old_offset": "log_offset", "old_reports": "reports"}


def add_timed(connection: apsw.Connection) -> None:
    """Schedules and goals in every state: version 1 had none."""
    for number, state in enumerate(TABLES["schedules"], start=1):
        due = "1" if state == "armed" else "NULL"
        connection.execute(
            "INSERT INTO schedules (session_id, person, name, kind, expression, zone, prompt, "
            "command, place, late, overlap, quiet, state, due_ms, created_by, created_ms, "
            f"changed_ms) VALUES (1, 'ann', 'n', 'every', '60', '', 'p', '', 'here', 'skip', "
            f"'skip', 0, '{state}', {due}, 'k{number}', 1, 1)"
        )
    sessions = connection.execute("SELECT session_id FROM sessions").fetchall()
    for number, state in enumerate(TABLES["goals"], start=1):
        if number > len(sessions):
            connection.execute(
                "INSERT INTO sessions (channel, chat, thread, created_ms, changed_ms) "
                f"VALUES ('web:main', 'goal-{number}', '', 1, 1)"
            )
            sessions.append((connection.last_insert_rowid(),))
        wait = "1" if state == "waiting" else "NULL"
        connection.execute(
            "INSERT INTO goals (session_id, generation, person, text, state, steps_max, "
            "tokens_max, wait_until_ms, created_by, created_ms, changed_ms) VALUES "
            f"({sessions[number - 1][0]}, 1, 'ann', 't', '{state}', 20, 1, {wait}, 'k{number}', "
            "1, 1)"
        )


def add_children(connection: apsw.Connection) -> None:
    """A child in every state, too."""
    ((turn_id,),) = connection.execute("SELECT min(turn_id) FROM turns").fetchall()
    for number, state in enumerate(TABLES["children"], start=1):
        begun = "NULL, NULL" if state == "waiting" else f"{number}, 1"
        ended = "'answered', 1" if state == "ended" else "NULL, NULL"
        connection.execute(
            "INSERT INTO children (session_id, generation, turn_id, call_id, person, name, task, "
            "depth, state, own_session, begun_ms, how, ended_ms, made_ms) VALUES "
            f"(1, 1, {turn_id}, '{number}.0', 'ann', 'n', 't', 1, '{state}', {begun}, {ended}, 1)"
        )


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    lay_out_every_state(tmp_path)
    opened = open_writer(tmp_path / "koboshi.db")
    add_timed(opened)
    add_children(opened)
    yield opened
    opened.close()


def rows_of(connection: apsw.Connection, table: str) -> list[dict[str, Any]]:
    cursor = connection.execute(f"SELECT * FROM {table}")
    rows = cursor.fetchall()
    names = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})").fetchall()]
    return [dict(zip(names, row, strict=True)) for row in rows]


def states_of(connection: apsw.Connection, table: str) -> dict[int, str]:
    return {row[KEYS[table]]: row["state"] for row in rows_of(connection, table)}


def values_for(query: str, row: dict[str, Any]) -> dict[str, Value]:
    """What the statement wants to know, taken from the row where the row knows it."""
    wanted = set(re.findall(r":(\w+)", QUERIES[query])) - {"after", "event", "before"}
    known = {name: row.get(SAME.get(name, name), 0) for name in wanted}
    told = {name: TOLD[name] for name in wanted & set(TOLD) if name not in ("epoch", "worker_id")}
    if query in ("delivery_send", "turn_claim"):
        told["worker_id"] = 1
    return {**known, **told}


def a_row_in(connection: apsw.Connection, table: str, state: str) -> dict[str, Any]:
    if (table, state) == ("outbox", "draft"):
        row = a_row_in(connection, table, "owed")
        connection.execute(
            "UPDATE outbox SET state = 'draft' WHERE delivery_id = ?", (row["delivery_id"],)
        )
    return next(row for row in rows_of(connection, table) if row["state"] == state)


def carry_out(tx: SqliteTransaction, query: str, event: StrEnum, row: dict[str, Any]) -> None:
    values = values_for(query, row)
    if "RETURNING" in QUERIES[query]:
        move_one(tx, query, event, **values)
    elif MOVES[query].is_of_one_state:
        state_type = type(next(iter(MOVES[query].machine.begins)))
        move_from(tx, query, event, state_type(row["state"]), **values)
    else:
        move(tx, query, event, **values)


@pytest.mark.parametrize("query", MOVES)
def test_a_statement_moves_rows_only_as_the_table_says(
    connection: apsw.Connection, query: str
) -> None:
    known = MOVES[query]
    table = TABLE_OF[known.machine.name]
    tx = SqliteTransaction(connection)
    for state in TABLES[table]:
        row = a_row_in(connection, table, state)
        before = states_of(connection, table)
        for event in sorted(known.events):
            connection.execute("SAVEPOINT tried")
            try:
                carry_out(tx, query, event, row)
            except IllegalTransition:
                assert known.is_of_one_state
                assert (state, event) not in known.machine.transitions
                assert states_of(connection, table) == before
            except apsw.ConstraintError:
                # The way is there; the schema wants more to be said with it.
                assert (state, event) in known.machine.transitions
            after = states_of(connection, table)
            for number, was in before.items():
                if after[number] != was:
                    assert after[number] == known.machine.transitions[was, event]
            connection.execute("ROLLBACK TO tried")
            connection.execute("RELEASE tried")


def test_a_statement_stands_for_no_event_but_its_own(connection: apsw.Connection) -> None:
    tx = SqliteTransaction(connection)
    for query, known in MOVES.items():
        table = TABLE_OF[known.machine.name]
        before = states_of(connection, table)
        others = {event for _state, event in known.machine.transitions} - known.events
        for event in others:
            with pytest.raises(ValueError, match=f"{query} does not stand for {event}"):
                move(tx, query, event)
        assert states_of(connection, table) == before


def test_holding_the_outbox_holds_what_is_owed_or_under_way_and_nothing_else(
    connection: apsw.Connection,
) -> None:
    before = states_of(connection, "outbox")
    hold_outbox(SqliteTransaction(connection), "held for a test")

    after = states_of(connection, "outbox")
    for number, was in before.items():
        assert after[number] == ("held" if was in ("owed", "sending", "held") else was)
    reasons = {row["reason"] for row in rows_of(connection, "outbox") if row["state"] == "held"}
    assert reasons == {"held for a test"}
