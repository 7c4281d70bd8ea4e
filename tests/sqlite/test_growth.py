"""Issue 13, A4: what forgetting costs the writer, and by how much a file grows for all that."""

import apsw
import pytest

from koboshi.kernel.retention import LOOKED_AT
from koboshi.runtime import retention as forgetting_module
from koboshi.stores.sqlite.file import DATABASE_NAME
from koboshi.stores.sqlite.store import SqliteStore
from tests.harness.backends import SqliteBackend
from tests.harness.homes import Home
from tests.harness.past import forget, later, talk

PAGE_BYTES = 8_192


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting_module, "PAUSE_SECONDS", 0.0)


async def test_deleting_holds_up_no_commit(home: Home) -> None:
    """Issue 13, A4: batches are small, and traffic goes first."""
    await talk(home, 60)
    await later(home, 91)
    assert isinstance(home.store, SqliteStore)
    retention = home.store.retention
    boot = await retention.begin(home.worker.worker_id)
    assert len((await retention.lines(0, home.clock.now_ms(), boot)).ids) <= LOOKED_AT
    assert len((await retention.deliveries(0, home.clock.now_ms())).ids) <= LOOKED_AT
    before = home.store.commits
    lines, _ = await forget(home)
    batches = home.store.commits - before
    assert lines > 500
    assert batches >= lines // LOOKED_AT


async def work_long(home: Home, count: int) -> None:
    """Turns that work for an hour, with one line of progress in each minute, and then answer: most
    of what they store is forgotten some day."""
    for number in range(count):
        claim = await home.work_on(f"question {number}")
        for minute in range(60):
            words = f"Still working on it, for {minute} min. I am waiting for: make test"
            await home.store.turns.tell_progress(claim, minute, words)
            await home.deliver()
        await home.answer(claim, f"answer {number}")
        await home.deliver()


@pytest.mark.slow
@pytest.mark.slow
async def test_the_same_traffic_once_more_grows_the_file_by_a_tenth_at_most(home: Home) -> None:
    """Issue 13, A4: measured over the whole file, after retention and without VACUUM, where little
    of the traffic is kept for good."""
    await work_long(home, 12)
    first = await size(home)
    await later(home, 91)
    await forget(home)
    assert (await size(home))["file"] == first["file"], "nothing shrinks: the room is used again"
    await work_long(home, 12)
    second = await size(home)
    assert second["file"] <= first["file"] * 1.1, (first, second)


async def test_what_is_kept_for_good_is_all_that_a_file_grows_by(home: Home) -> None:
    """Issue 13, A4: measured. Transcripts, turns, calls and keys of messages stay for ever, about
    a kilobyte for a question with a call; beside them the file grows by a tenth at most."""
    await talk(home, 300)
    first = await size(home)
    await later(home, 91)
    await forget(home)
    assert (await size(home))["free"] > 0
    await talk(home, 300)
    second = await size(home)
    swept = [pages["journal"] + pages["outbox"] for pages in (first, second)]
    assert swept[1] <= swept[0] * 1.1, (first, second)
    kept = second["kept"] - first["kept"]
    assert kept * PAGE_BYTES / 300 < 1_500, (first, second)
    assert second["file"] - kept <= first["file"] * 1.1, (first, second)


async def size(home: Home) -> dict[str, int]:
    """Pages of the file: all, free ones, those of tables that are swept, and of all others."""
    await home.reopen(crash=False)
    assert isinstance(home.backend, SqliteBackend)
    connection = apsw.Connection(str(home.backend.path / DATABASE_NAME))
    pages: dict[str, int] = {}
    for name, table in connection.execute("SELECT name, tbl_name FROM sqlite_schema").fetchall():
        query = "SELECT count(*) FROM dbstat WHERE name = ?"
        count = connection.execute(query, (name,)).get
        assert isinstance(count, int)
        key = str(table) if table in ("journal", "outbox") else "kept"
        pages[key] = pages.get(key, 0) + count
    pages["file"] = connection.pragma("page_count")
    pages["free"] = connection.pragma("freelist_count")
    connection.close()
    return pages
