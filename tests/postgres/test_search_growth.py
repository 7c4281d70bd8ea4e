"""Issue 19: the newest hits cost the same, however many messages there are, on PostgreSQL, too."""

import time

import psycopg

from koboshi.kernel.search import LOOKED_AT
from koboshi.stores.postgres.statements import statements
from tests.harness.homes import Home
from tests.harness.postgres_backend import PostgresBackend

HITS = 20
FEW, MANY = 1_000, 100_000
TRIES = 40
SLACK_S = 0.000_5
"""Below this a clock and a busy machine tell nothing."""
ASKED = ("'pear1':*", "'p':*", "'w3':*", "'word9':*", "'pear1' & 'w3':*")
FILL = """
INSERT INTO search_words (seq, words)
    SELECT n, to_tsvector('simple', 'pear' || (n % 2) || ' word' || n || ' w' || (n % 10))
    FROM generate_series({first}, {last}) AS n;
ANALYZE search_words
"""
FIND = statements()["search_find"]


def seconds(past: "psycopg.Connection[tuple[object, ...]]", words: str) -> float:
    """The shortest of some runs, prepared as the store prepares it."""
    past.execute(f"PREPARE found AS {FIND.text}".encode())
    best = float("inf")
    try:
        for _ in range(TRIES):
            began = time.perf_counter()
            asked = f"EXECUTE found($q${words}$q$, {HITS * LOOKED_AT})"
            rows = past.execute(asked.encode()).fetchall()
            best = min(best, time.perf_counter() - began)
            assert len(rows) == HITS * LOOKED_AT
    finally:
        past.execute("DEALLOCATE found")
    return best


async def test_the_newest_hits_cost_the_same_among_a_hundred_times_as_many(home: Home) -> None:
    assert isinstance(home.backend, PostgresBackend)
    assert FIND.names == ("words", "limit")
    past = home.backend.database.past
    threshold, past.prepare_threshold = past.prepare_threshold, None
    try:
        home.sql(*FILL.format(first=1, last=FEW).split(";"))
        few = {words: seconds(past, words) for words in ASKED}
        home.sql(*FILL.format(first=FEW + 1, last=MANY).split(";"))
        many = {words: seconds(past, words) for words in ASKED}
        past.execute("SET enable_indexscan = off; SET enable_bitmapscan = off")
        sorted_all = seconds(past, ASKED[0])
    finally:
        past.prepare_threshold = threshold
        past.execute("RESET enable_indexscan; RESET enable_bitmapscan; TRUNCATE search_words")

    assert {words: many[words] for words in ASKED if many[words] > 3 * few[words] + SLACK_S} == {}
    # The measure can fail: without an index every hit is sorted.
    assert sorted_all > 3 * few[ASKED[0]] + SLACK_S
