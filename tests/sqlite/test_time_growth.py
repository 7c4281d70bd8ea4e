"""A hundred thousand schedules: what a look at what is due costs, and what it does not."""

import json
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns

import apsw
import pytest

from koboshi.kernel.queries import QUERIES
from koboshi.stores.sqlite.file import open_writer
from tests.harness.many_schedules import COUNT, FAR_MS, FILL

LOOKS = 300


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    opened = open_writer(tmp_path / "koboshi.db")
    opened.execute(
        "INSERT INTO sessions (channel, chat, thread, created_ms, changed_ms) "
        "VALUES ('web:main', 'ann', '', 1, 1)"
    )
    yield opened
    opened.close()


def cost_of(connection: apsw.Connection, query: str, **values: object) -> int:
    """The quickest of many looks, in nanoseconds."""
    text, best = QUERIES[query], 10**12
    for _ in range(LOOKS):
        begun = perf_counter_ns()
        connection.execute(text, values).fetchall()
        best = min(best, perf_counter_ns() - begun)
    return best


def test_a_look_at_what_is_due_costs_no_more_with_a_hundred_thousand_armed_schedules(
    connection: apsw.Connection,
) -> None:
    """Must show: one due of 100,000 costs at most three index look-ups; a look that finds nothing,
    which is all that an idle gateway does, costs the same with them as without."""
    channels = json.dumps(["web:main"])
    before = cost_of(connection, "schedules_next_due", channels=channels)
    connection.execute(FILL.format(count=COUNT, far=FAR_MS))
    assert connection.execute("SELECT count(*) FROM schedules").get == COUNT
    after = cost_of(connection, "schedules_next_due", channels=channels)
    nothing = cost_of(connection, "schedules_due", now=1, channels=channels, limit=64)
    connection.execute("UPDATE schedules SET due_ms = 5 WHERE schedule_id = 77777")
    one_due = cost_of(connection, "schedules_due", now=5, channels=channels, limit=64)
    by_key = cost_of(connection, "schedule_by_id", schedule_id=50_000)
    rechecks = cost_of(connection, "schedules_to_reckon", limit=1)
    print(f"ns: empty {before}, armed {after}, none due {nothing}, one due {one_due}, key {by_key}")
    assert one_due <= 3 * by_key
    assert after <= 3 * by_key
    assert nothing <= 3 * by_key
    assert rechecks <= 3 * by_key
    assert after <= 3 * before
