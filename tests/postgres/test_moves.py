"""Rows that go from the file in the home to a server, and back: all of them, once."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from koboshi.cli.options import WRONG_SETUP
from koboshi.clock import SystemClock
from koboshi.domain.errors import Buried, HomeHeld, StoreRefused
from koboshi.stores.faults import VARIABLE, CrashPoint
from koboshi.stores.home_id import home_id
from koboshi.stores.lock import lock_now
from koboshi.stores.marks import MoveState
from koboshi.stores.moving.file import mark_of_home
from koboshi.stores.moving.move import Mover
from koboshi.stores.moving.server import connected, mark_of
from koboshi.stores.moving.table_rows import Carried, carried_in_file, carried_in_server
from koboshi.stores.sqlite.file import open_writer
from koboshi.stores.sqlite.ownership import rehome
from tests.harness.golden import lay_out_every_state
from tests.harness.homes import Home
from tests.harness.postgres_backend import Database, PostgresBackend
from tests.harness.process import koboshi
from tests.harness.tally import WANTS_ALL
from tests.harness.victim import open_here

NAME = "koboshi.db"
POINTS = ["move.copy:before", "move.copy:after", "move.mark:after", "move.live:after"]
MORE_POINTS = ["move.mark:before"]
MOVE = (
    "import os, sys; from pathlib import Path; from koboshi.clock import SystemClock; "
    "from koboshi.stores.faults import CrashPoint; from koboshi.stores.moving.move import Mover; "
    "m = Mover(home=Path(sys.argv[1]), url=sys.argv[2], clock=SystemClock(), accepts_loss=True, "
    f"crash_point=CrashPoint(os.environ['{VARIABLE}'])); getattr(m, sys.argv[3])()"
)


@pytest.fixture
def server() -> Iterator[Database]:
    made = Database("koboshi_test_moved")
    yield made
    made.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    lay_out_every_state(tmp_path / "home")
    # A zero in a text, which PostgreSQL stores in none.
    file = apsw.Connection(str(tmp_path / "home" / NAME))
    file.execute("UPDATE cursors SET token = 'a' || char(0) || 'b'")
    file.close()
    file = open_writer(tmp_path / "home" / NAME)
    rehome(file, home_id(tmp_path / "home"))
    file.close()
    return tmp_path / "home"


def mover(home: Path, url: str, crash_at: str = "") -> Mover:
    return Mover(
        home=home,
        url=url,
        clock=SystemClock(),
        crash_point=CrashPoint(crash_at),
        accepts_loss=True,
    )


def killed(home: Path, url: str, direction: str, crash_at: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", MOVE, str(home), url, direction],
        env={**os.environ, VARIABLE: crash_at},
        capture_output=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()


def in_file(home: Path) -> dict[str, Carried]:
    file = open_writer(home / NAME, may_be_idle=True)
    try:
        return dict(carried_in_file(file))
    finally:
        file.close()


def in_server(url: str) -> dict[str, Carried]:
    with connected(url) as server:
        return dict(carried_in_server(server))


def live_ends(home: Path, url: str) -> set[str]:
    here = mark_of_home(home)
    with connected(url) as server:
        there = mark_of(server)
    ends = set()
    if (home / NAME).exists() and (here is None or here.state is MoveState.LIVE):
        ends.add("file")
    if there is not None and there.state is MoveState.LIVE:
        ends.add("server")
    return ends


async def test_rows_that_were_moved_are_worked_on_at_the_server_only(
    home: Path, server: Database
) -> None:
    before = in_file(home)
    done = mover(home, server.url).to_server()

    assert in_server(server.url) == before
    assert done.rows["turns"] == 32
    assert sum(done.rows.values()) > 400
    with pytest.raises(StoreRefused, match=f"were moved to {server.url}"):
        await open_here(home)
    there = Home(backend=PostgresBackend(home, database=server))
    await there.open()
    there.clock.wall_ms = 1_900_000_000_000
    there.worker = await there.store.workers.start("host", 1, "birth", "0.2")
    for turn_id in await there.store.turns.unowned(with_suspended=True):
        await there.recover(turn_id)
    await there.say("hello again", chat="a new chat", key="later")
    assert await there.claims(), "ids go on behind those that came along"
    await there.store.close()


async def test_rows_come_back_to_the_file_with_what_was_added(home: Path, server: Database) -> None:
    mover(home, server.url).to_server()
    there = Home(backend=PostgresBackend(home, database=server))
    await there.boot()
    await there.say("said on the server", chat="a new chat", key="later")
    await there.store.close()
    done = mover(home, server.url).to_file()

    assert done.place == str(home / NAME)
    assert in_file(home) == in_server(server.url)
    back = await open_here(home)
    await back.say("said on the file", chat="a new chat", key="last")
    texts = [str(row["body"]) for row in back.rows().inbox if row["kind"] == "message"]
    assert "said on the server" in texts[-2]
    assert "said on the file" in texts[-1]
    await back.store.close()
    again = Home(backend=PostgresBackend(home / "other", database=server))
    with pytest.raises(StoreRefused, match=f"were moved to {home / NAME}"):
        await again.open()


@pytest.mark.parametrize("point", POINTS + MORE_POINTS * WANTS_ALL)
def test_a_move_that_is_killed_anywhere_is_finished_by_repeating(
    home: Path, server: Database, point: str
) -> None:
    before = in_file(home)
    killed(home, server.url, "to_server", point)
    assert len(live_ends(home, server.url)) <= 1
    mover(home, server.url).to_server()
    assert live_ends(home, server.url) == {"server"}
    assert in_server(server.url) == before
    mover(home, server.url).to_server()
    assert live_ends(home, server.url) == {"server"}, "a third time changes nothing"


@pytest.mark.parametrize("point", POINTS + MORE_POINTS * WANTS_ALL)
def test_a_move_back_that_is_killed_anywhere_is_finished_by_repeating(
    home: Path, server: Database, point: str
) -> None:
    mover(home, server.url).to_server()
    killed(home, server.url, "to_file", point)
    assert len(live_ends(home, server.url)) <= 1
    mover(home, server.url).to_file()
    assert live_ends(home, server.url) == {"file"}
    assert in_file(home) == in_server(server.url)
    mover(home, server.url).to_file()
    assert live_ends(home, server.url) == {"file"}
    mover(home, server.url).to_server()
    assert live_ends(home, server.url) == {"server"}, "and to the same database again"


async def test_a_file_that_is_used_again_before_the_move_is_repeated_is_copied_again(
    home: Path, server: Database
) -> None:
    killed(home, server.url, "to_server", "move.copy:after")
    with pytest.raises(StoreRefused, match="was not finished"):
        await Home(backend=PostgresBackend(home / "other", database=server)).open()
    here = await open_here(home)
    here.worker = await here.store.workers.start("host", 1, "birth", "0.2")
    await here.say("meanwhile", chat="a new chat", key="later")
    await here.store.close()
    mover(home, server.url).to_server()
    assert in_server(server.url) == in_file(home)


async def test_rows_that_count_are_never_overwritten(
    home: Path, server: Database, tmp_path: Path
) -> None:
    theirs = Home(backend=PostgresBackend(tmp_path / "theirs", database=server))
    await theirs.boot()
    await theirs.store.close()
    before = in_server(server.url)
    with pytest.raises(StoreRefused, match="empty database"):
        mover(home, server.url).to_server()
    with pytest.raises(StoreRefused, match="count for themselves"):
        mover(home, server.url).to_file()
    assert in_server(server.url) == before
    assert mark_of_home(home) is None


async def test_a_gateway_elsewhere_keeps_the_rows_at_the_server(
    server: Database, tmp_path: Path
) -> None:
    """Its row has no end, and it has just given a sign of life by the clock of the server."""
    theirs = Home(backend=PostgresBackend(tmp_path / "theirs", database=server))
    await theirs.boot()
    server.past.execute("UPDATE workers SET seen_ms = now_ms() WHERE ended_ms IS NULL")
    (tmp_path / "ours").mkdir()
    with pytest.raises(StoreRefused, match="still work on the database"):
        mover(tmp_path / "ours", server.url).to_file()

    server.past.execute("UPDATE workers SET heartbeat_ms = 1, seen_ms = 1 WHERE ended_ms IS NULL")
    mover(tmp_path / "ours", server.url).to_file()
    with pytest.raises(Buried):
        await theirs.say("too late")
    await theirs.store.close()


def test_a_home_in_use_is_not_moved(home: Path, server: Database) -> None:
    lock = lock_now(home, clock=SystemClock(), who="a test")
    with pytest.raises(HomeHeld, match="a test"):
        mover(home, server.url).to_server()
    lock.release()


def commanded(home: Path, *words: str, url: str = "") -> "subprocess.CompletedProcess[str]":
    env = {name: text for name, text in os.environ.items() if not name.startswith("KOBOSHI")}
    return subprocess.run(
        [koboshi(), *words, "--home", str(home)],
        env={**env, **({"KOBOSHI__STORE__URL": url} if url else {})},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_says_what_to_set_and_the_file_says_where_its_rows_are(
    home: Path, server: Database
) -> None:
    done = commanded(home, "move", "--to", server.address, "--accept-data-loss")
    assert done.returncode == 0, done.stderr
    assert "32 turns" in done.stdout
    assert f'set store.url = "{server.address}"' in done.stdout

    refused = commanded(home, "run")
    assert refused.returncode == WRONG_SETUP
    assert f"were moved to {server.address}" in refused.stderr

    back = commanded(home, "move", "--to", "file", "--accept-data-loss", url=server.address)
    assert back.returncode == 0, back.stderr
    assert live_ends(home, server.url) == {"file"}


def test_an_address_with_a_password_is_refused(home: Path) -> None:
    refused = commanded(home, "move", "--to", "postgresql://me:secret@db/koboshi")
    assert refused.returncode == WRONG_SETUP
    assert "must hold no password" in refused.stderr
    assert "secret" not in refused.stderr
