"""How SQLite answers what people look at: by an index, however many sessions there are."""

import re
from importlib.resources import files

import apsw
import pytest

from koboshi.kernel.queries import QUERIES
from koboshi.stores.sqlite.plain_checks import plain_checks

MAY_SCAN: dict[str, set[str]] = {
    # What has no index of its own: a bounded number of kept processes.
    "view_processes": {"SCAN processes"},
    # One row each, found by going from one name to the next.
    "view_entry_by_external_id": {"SCAN sources", "SCAN named"},
    "view_sessions_named": {"SCAN c", "SCAN channels"},
    # Indexes of what is open; they hold nothing else.
    "view_turns_open": {"SCAN turns USING INDEX turns_alive"},
    "view_entries_open": {"SCAN inbox USING INDEX inbox_waiting"},
    "view_deliveries_open": {"SCAN outbox USING INDEX outbox_unsettled"},
}
WRITES_OF_A_TURN = (
    "entry_insert",
    "turn_insert",
    "turn_claim",
    "turn_progress",
    "turn_move",
    "turn_settle",
    "step_insert",
    "call_insert",
    "call_start_settled",
    "call_finish",
    "delivery_insert",
    "delivery_send",
    "delivery_settle",
)
VIEWS = [name for name in QUERIES if name.startswith("view_")]


@pytest.fixture(scope="module")
def connection() -> apsw.Connection:
    made = apsw.Connection(":memory:")
    schema = (files("koboshi.kernel") / "schema.sql").read_text(encoding="utf-8")
    made.execute(plain_checks(schema))
    return made


@pytest.mark.parametrize("query", VIEWS)
def test_no_view_looks_through_a_whole_table(connection: apsw.Connection, query: str) -> None:
    nothing = dict.fromkeys(re.findall(r":(\w+)", QUERIES[query]))
    plan = connection.execute(f"EXPLAIN QUERY PLAN {QUERIES[query]}", nothing).fetchall()

    details = {str(row[3]) for row in plan}
    scanned = {each for each in details if each.startswith("SCAN ") and each != "SCAN CONSTANT ROW"}
    assert scanned <= MAY_SCAN.get(query, set()), details


@pytest.mark.parametrize("name", ["turns_due", "turns_next_due", "waits_cap_turns"])
def test_looking_for_what_is_due_reads_only_that(connection: apsw.Connection, name: str) -> None:
    """S165: one range of the index that knows what is not closed; no row of any other turn is
    read, and nothing is sorted."""
    values: dict[str, int | str] = {"now": 1, "limit": 1, "recovered": 0, "latest": 1}
    values |= {"worker_id": 1, "node": "a", "home": "b", "late_ms": 1}
    plan = [
        str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {QUERIES[name]}", values)
    ]

    assert "turns_alive (state=? AND <expr>=?" in plan[0], plan
    # Of the boots, only those that live are in this index.
    steps = [step for step in plan if not step.endswith("INDEX workers_not_ended")]
    assert not any("SCAN" in step or "TEMP" in step for step in steps), plan


@pytest.mark.parametrize("name", WRITES_OF_A_TURN)
def test_a_write_of_a_turn_makes_no_table_in_memory(connection: apsw.Connection, name: str) -> None:
    """Neither for its constraints nor in a trigger: one of these costs more than the row."""
    nothing = dict.fromkeys(re.findall(r":(\w+)", QUERIES[name]))
    steps = connection.execute(f"EXPLAIN {QUERIES[name]}", nothing).fetchall()

    assert not [step for step in steps if step[1] == "OpenEphemeral"]
