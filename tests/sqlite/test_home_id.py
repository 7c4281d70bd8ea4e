"""The name of a home, and a look at one that no process owns."""

from pathlib import Path

import pytest

from koboshi.clock import SystemClock
from koboshi.stores.home_id import ID_NAME
from koboshi.stores.sqlite.idle_home import idle_home_views
from tests.harness.backends import SqliteBackend
from tests.harness.homes import Home, a_world


def path_of(home: Home) -> Path:
    assert isinstance(home.backend, SqliteBackend)
    return home.backend.path


async def test_rows_tell_the_id_of_their_home(home: Home) -> None:
    """Issue 14, 2: it is the one that stands in the file beside the database."""
    own = (path_of(home) / ID_NAME).read_text().strip()

    assert home.sql("SELECT home FROM workers") == [(own,)]


async def test_a_look_at_an_idle_home_sees_its_workers_as_gone_and_changes_nothing(
    home: Home,
) -> None:
    """Issue 14, 2: what a killed gateway worked on was interrupted, and is not worked on."""
    claim = await home.work_on()
    await home.backend.kill(home.store)
    rows = "SELECT (SELECT count(*) FROM journal), ended_ms FROM workers"
    before = home.sql(rows)

    place = path_of(home)
    with idle_home_views(place, world=a_world(), clock=SystemClock(), who="a test") as views:
        seen = await views.explain(claim.turn_id)
    assert seen is not None
    assert seen.turn.stands == "interrupted: the gateway died over it"
    assert home.sql(rows) == before
    await home.open()


@pytest.mark.parametrize("content", [None, "", "no id", "\0" * 40])
async def test_the_id_of_a_home_stays_and_is_made_anew_where_it_is_none(
    home: Home, content: str | None
) -> None:
    """Issue 14, 2: with another id the home is still the owner of all that its database knows."""
    file: Path = path_of(home) / ID_NAME
    first = file.read_text()
    await home.reopen(crash=False)
    assert file.read_text() == first
    await home.store.close()
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    await home.boot()

    assert file.read_text() not in (first, content)
    assert file.stat().st_mode & 0o777 == 0o600
    homes = home.sql("SELECT DISTINCT home FROM workers")
    assert homes == [(file.read_text().strip(),)]


async def test_the_next_open_ends_the_workers_of_every_home(home: Home) -> None:
    """Issue 14, 2: what the database in a home has of another home was brought there."""
    home.sql(
        "INSERT INTO workers (worker_id, host, pid, birth, version, started_ms, heartbeat_ms, "
        "node, home) VALUES (77, 'b', 1, 'x/1', '0.1', 1, 1, 'b', 'elsewhere')"
    )
    await home.reopen()

    (end,) = home.sql("SELECT ended_how FROM workers WHERE worker_id = 77")
    assert end == ("killed",)
