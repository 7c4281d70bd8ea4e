"""How PostgreSQL answers what is asked often: by an index, however much is stored."""

import pytest

from koboshi.kernel.queries import QUERIES
from koboshi.stores.postgres.schema import table_names
from tests.harness.homes import Home
from tests.harness.postgres_backend import PostgresBackend

SMALL = frozenset(
    {
        "accounts",
        "browsers",
        "cursors",
        "holds",
        "login_codes",
        "model_benches",
        "pairings",
        "people",
        "quiet",
        "search_place",
        "send_ids",
        "workers",
    }
)
"""Tables that hold a handful of rows."""
WHOLE = frozenset(
    {"rows_by_table", "view_processes", "goals_counted", "schedules_counted", "minutes_place"}
)
"""What looks through tables on purpose: they are counted, or hold a bounded number."""
RARE = (
    "erase",
    "erased",
    "goals_erase",
    "retention",
    "tally",
    "sessions_with",
    "turns_with",
    "keys_of_channel",
)
"""What is asked when a person wants to be forgotten, and once in a while in the background."""

FILL = """
SET session_replication_role = replica;
INSERT INTO sessions (channel, chat, thread, created_ms, changed_ms, lock_key)
    SELECT 'web:main', 'chat-' || n, '', 1, 1, n FROM generate_series(1, 2000) AS n;
INSERT INTO turns (session_id, generation, state, event, person, anchor, first_seq, opened_ms,
                   progressed_ms, changed_ms, closed_ms)
    SELECT 1 + n % 2000, 1, 'done', 'settled', 'ann', '', n, n, n, n, n
    FROM generate_series(1, 6000) AS n;
INSERT INTO inbox (session_id, generation, kind, source, external_id, sender, body, received_ms,
                   changed_ms, state, turn_id)
    SELECT 1 + n % 2000, 1, 'message', 'web:main', 'key-' || n, 'ann', '{}', n, n, 'attached', n
    FROM generate_series(1, 6000) AS n;
INSERT INTO steps (seq, session_id, turn_id, epoch, kind, cause, body, at_ms)
    SELECT n, 1 + n % 2000, 1 + n % 6000, 1, 'result', 'x', '{}', n
    FROM generate_series(1, 12000) AS n;
INSERT INTO calls (turn_id, call_id, place, tool, arguments, effect, need, provider_id, args_hash)
    SELECT n, 'c' || n, 1, 'fetch', '{}', 'none', 'nobody', '', ''
    FROM generate_series(1, 6000) AS n;
INSERT INTO outbox (session_id, turn_id, cause, part, parts, text, anchor, state, created_ms,
                    changed_ms, settled_ms)
    SELECT 1 + n % 2000, n, 'step:' || n, 1, 1, 'x', '', 'delivered', n, n, n
    FROM generate_series(1, 6000) AS n;
INSERT INTO journal (at_ms, subject, number, event, session_id, turn_id)
    SELECT n, 'turn', n, 'opened', 1 + n % 2000, n FROM generate_series(1, 12000) AS n;
INSERT INTO processes (session_id, generation, turn_id, call_id, foreground, command, workdir,
                       state, started_ms, ended_ms)
    SELECT 1 + n % 2000, 1, n, 'c' || n, 0, 'true', '/', 'exited', n, n
    FROM generate_series(1, 3000) AS n;
INSERT INTO watchers (process_id, kind, argument, state)
    SELECT n, 'exit', '', 'fired' FROM generate_series(1, 3000) AS n;
SET session_replication_role = DEFAULT;
"""


@pytest.fixture
async def backend(home: Home) -> PostgresBackend:
    """A database in which much has happened, and of which the server knows that."""
    assert isinstance(home.backend, PostgresBackend)
    home.sql(FILL)
    home.sql(*(f"ANALYZE {each}" for each in table_names()))
    return home.backend


async def test_nothing_that_is_asked_often_looks_through_a_whole_table(
    backend: PostgresBackend,
) -> None:
    asked = [name for name in QUERIES if name not in WHOLE and not name.startswith(RARE)]
    scanned = {name: backend.tables_scanned(name) - SMALL for name in asked}

    assert {name: tables for name, tables in scanned.items() if tables} == {}
    for name in ("turns_due", "turns_next_due"):
        plan = backend.plan_of(name)
        assert "turns_alive" in plan, plan
        assert "Sort" not in plan, plan
    # The look finds what it looks for.
    assert backend.tables_scanned("erase_lines") == {"journal"}
