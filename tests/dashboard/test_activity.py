"""One list of everything that happened, with filters, page by page."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.asked_page import asked, dashboard
from tests.harness.backends import Limits, SqliteBackend
from tests.harness.homes import Home, a_world


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    one = Home(backend=SqliteBackend(tmp_path), world=a_world(), limits=Limits())
    await one.boot()
    for number in range(4):
        await one.answer(await one.work_on(f"request {number}", chat=f"chat-{number % 2}"))
        await one.deliver(f"chat-{number % 2}")
        one.clock.move(60_000)
    yield one
    await one.store.close()


async def listed(home: Home, **query: Any) -> list[str]:
    status, told = await asked(dashboard(home), "activity", **query)
    assert status == 200, told
    return [item["id"] for item in told["items"]]


async def test_all_kinds_stand_in_one_list_newest_first(home: Home) -> None:
    _, told = await asked(dashboard(home), "activity")
    items = told["items"]

    assert {item["kind"] for item in items} == {"turn", "message", "delivery"}
    assert [item["at_ms"] for item in items] == sorted(
        (item["at_ms"] for item in items), reverse=True
    )
    assert told["next"] is None


async def test_pages_follow_each_other_without_a_gap_or_a_repeat(home: Home) -> None:
    whole = await listed(home)
    found: list[str] = []
    place: str | None = ""
    while place is not None:
        _, told = await asked(dashboard(home), "activity", limit=5, before=place)
        found += [item["id"] for item in told["items"]]
        place = told["next"]

    assert sorted(found) == sorted(whole)
    assert len(found) == len(set(found)) == 12


async def test_it_is_filtered_by_kind_state_channel_time_and_text(home: Home) -> None:
    await home.say("still open", chat="chat-0")

    assert await listed(home, kind="turn", state="open") == ["t5"]
    assert await listed(home, kind="turn", text="REQUEST 2") == ["t3"]
    assert await listed(home, channel="telegram:main") == []
    assert await listed(home, kind="message,turn", since=home.clock.now_ms()) == ["m5", "t5"]
    assert await listed(home, kind="turn", state="failed") == []
    assert "chat-1" not in str(await asked(dashboard(home), "activity", text="chat-0"))


async def test_what_is_no_filter_is_refused(home: Home) -> None:
    for query in ({"kind": "boots"}, {"before": "x:1"}, {"before": "turn:x"}):
        status, told = await asked(dashboard(home), "activity", **query)
        assert (status, told["error"]["type"]) == (400, "bad-request")


async def test_settings_say_where_each_value_comes_from(home: Home) -> None:
    board = dashboard(home, settings=lambda: [("model.name", '"x"', "koboshi.toml:3")])
    _, told = await asked(board, "settings")

    assert told["settings"] == [{"key": "model.name", "value": '"x"', "source": "koboshi.toml:3"}]
