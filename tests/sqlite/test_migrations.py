"""Databases of earlier versions: all that is in them is still there, in the newest schema."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from koboshi.domain.errors import StoreRefused
from koboshi.domain.outbox import DeliveryState
from koboshi.domain.process import ProcessState
from koboshi.domain.turn import TurnState
from koboshi.stores.migration_scripts import FIRST_VERSION, migration_scripts
from koboshi.stores.sqlite import migrate as migrate_module
from koboshi.stores.sqlite.file import open_writer
from koboshi.stores.sqlite.migrate import newest_version
from tests.harness.golden import GOLDEN, lay_out_every_state
from tests.harness.strace import needs_strace, run_traced
from tests.harness.tally import WANTS_ALL
from tests.harness.victim import open_here

NAME = "koboshi.db"
EVERY = 9 if WANTS_ALL else 40
"""Calls of a migration from one kill to the next."""
ADDED = "ALTER TABLE turns ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';"

WAS_HELD = "settled_ms IS NULL AND not_before_ms >= 4611686018427387904"
HELD_STATE = f"CASE WHEN {WAS_HELD} THEN 'held' ELSE state END"
HELD_TIME = f"CASE WHEN {WAS_HELD} THEN 0 ELSE not_before_ms END"

golden = pytest.mark.parametrize("lay_out", GOLDEN.values(), ids=GOLDEN)


def rows_of(connection: apsw.Connection, table: str, columns: str) -> list[tuple[object, ...]]:
    return connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1").fetchall()


def columns_of(connection: apsw.Connection) -> dict[str, list[str]]:
    """The columns of each table."""
    names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    tables = [str(name) for (name,) in connection.execute(names).fetchall()]
    return {
        table: [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})").fetchall()]
        for table in tables
    }


def schema_of(connection: apsw.Connection) -> dict[str, str]:
    """The text of everything in the schema, without comments, line breaks and needless quotes."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {str(name): _plain(str(text)) for name, text in rows.fetchall()}


def _plain(text: str) -> str:
    text = re.sub(r"--[^\n]*", " ", text)
    text = re.sub(r'^CREATE TABLE "(\w+)"', r"CREATE TABLE \1", text)
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r" ?([(),]) ?", r"\1", text)


def with_script(monkeypatch: pytest.MonkeyPatch, script: str) -> int:
    """As if a newer version had one more script. Returns its number."""
    known = migration_scripts()
    number = newest_version() + 1
    monkeypatch.setattr(migrate_module, "migration_scripts", lambda: known | {number: script})
    return number


def test_the_golden_database_has_every_state(tmp_path: Path) -> None:
    """Otherwise it would prove little. A draft is a state that no version has ever stored, and held
    is one of later versions."""
    lay_out_every_state(tmp_path)
    connection = apsw.Connection(str(tmp_path / NAME))
    assert connection.pragma("user_version") == FIRST_VERSION

    def states(table: str) -> set[str]:
        return {str(state) for (state,) in rows_of(connection, table, "DISTINCT state")}

    assert states("turns") == set(TurnState)
    assert states("outbox") == set(DeliveryState) - {DeliveryState.DRAFT, DeliveryState.HELD}
    assert states("processes") == set(ProcessState)
    assert states("watchers") == {"armed", "fired", "disarmed"}
    assert states("inbox") == {"waiting", "attached", "handled", "dropped", "ignored"}
    connection.close()


@golden
def test_a_migrated_database_has_the_schema_of_a_new_one(
    tmp_path: Path, lay_out: Callable[[Path], None]
) -> None:
    lay_out(tmp_path / "old")
    (tmp_path / "new").mkdir()
    migrated, new = open_writer(tmp_path / "old" / NAME), open_writer(tmp_path / "new" / NAME)

    assert schema_of(migrated) == schema_of(new)
    assert columns_of(migrated) == columns_of(new)
    for pragma in ("user_version", "application_id", "foreign_keys", "legacy_alter_table"):
        assert migrated.pragma(pragma) == new.pragma(pragma), pragma
    migrated.close()
    new.close()


@golden
def test_a_migration_keeps_every_row(tmp_path: Path, lay_out: Callable[[Path], None]) -> None:
    """Every value of every column that both versions have. Held was a time once."""
    lay_out(tmp_path / "home")
    lay_out(tmp_path / "before")
    before = apsw.Connection(str(tmp_path / "before" / NAME))
    migrated = open_writer(tmp_path / "home" / NAME)

    kept = columns_of(migrated)
    for table, columns in columns_of(before).items():
        common = ", ".join(column for column in columns if column in kept[table])
        was = common
        if table == "outbox":
            changed = {"state": HELD_STATE, "not_before_ms": HELD_TIME}
            was = ", ".join(changed.get(column, column) for column in common.split(", "))
        assert rows_of(migrated, table, common) == rows_of(before, table, was), table
    assert migrated.pragma("integrity_check") == "ok"
    assert not migrated.execute("PRAGMA foreign_key_check").fetchall()
    migrated.close()
    before.close()


@golden
def test_what_was_held_by_a_time_that_never_comes_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lay_out: Callable[[Path], None]
) -> None:
    """Issue 14, point 3: a held delivery was once owed at 2**62. What waits for a time,
    and what has ended, stays as it is, and no line of the journal is written."""
    lay_out(tmp_path)
    known = migration_scripts()
    (version,) = (number for number, script in known.items() if "TABLE outbox_held" in script)
    with monkeypatch.context() as earlier:
        older = {number: script for number, script in known.items() if number < version}
        earlier.setattr(migrate_module, "migration_scripts", lambda: older)
        earlier.setattr(migrate_module, "newest_version", lambda: version - 1)
        connection = open_writer(tmp_path / NAME, may_be_idle=True)
    connection.execute(
        "INSERT INTO outbox (session_id, cause, part, parts, text, anchor, state, ambiguous,"
        " not_before_ms, wait_ms, reason, created_ms, changed_ms, settled_ms) VALUES"
        " (1, 'a', 1, 1, '', '', 'owed', 1, 4611686018427387904, 0, 'held: x', 1, 1, NULL),"
        " (1, 'b', 1, 1, '', '', 'owed', 0, 4611686018427387903, 7, 'later', 1, 1, NULL),"
        " (1, 'c', 1, 1, '', '', 'abandoned', 1, 4611686018427387904, 0, 'dropped', 1, 1, 2)"
    )
    columns = ", ".join(columns_of(connection)["outbox"])
    others = f"outbox WHERE NOT ({WAS_HELD})"
    line = ", ".join(columns_of(connection)["journal"])
    before = rows_of(connection, others, columns), rows_of(connection, "journal", line)
    connection.close()

    migrated = open_writer(tmp_path / NAME)
    others = "outbox WHERE state <> 'held'"
    assert (rows_of(migrated, others, columns), rows_of(migrated, "journal", line)) == before
    state = "state, ambiguous, not_before_ms, wait_ms, reason"
    assert rows_of(migrated, "outbox WHERE cause = 'a'", state) == [("held", 1, 0, 0, "held: x")]
    assert migrated.pragma("integrity_check") == "ok"
    assert not migrated.execute("PRAGMA foreign_key_check").fetchall()
    migrated.close()


def test_the_scripts_are_numbered_without_gaps() -> None:
    assert sorted(migration_scripts()) == list(range(FIRST_VERSION + 1, newest_version() + 1))


def test_the_database_is_copied_before_it_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out_every_state(tmp_path)
    number = with_script(monkeypatch, f"{ADDED} DELETE FROM journal;")
    open_writer(tmp_path / NAME).close()

    copy = tmp_path / "backups" / f"before-schema-{number}.db"
    kept = apsw.Connection(str(copy))
    assert kept.pragma("user_version") == FIRST_VERSION
    assert kept.pragma("integrity_check") == "ok"
    assert kept.execute("SELECT count(*) FROM journal").get
    kept.close()
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]
    assert copy.stat().st_mode & 0o777 == 0o600


def test_a_new_database_needs_no_copy(tmp_path: Path) -> None:
    open_writer(tmp_path / NAME).close()
    assert not (tmp_path / "backups").exists()


def test_a_migration_that_would_orphan_rows_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out_every_state(tmp_path)
    with_script(monkeypatch, "DROP TRIGGER closed_turns_never_change; DELETE FROM turns;")
    with pytest.raises(StoreRefused, match="refer to rows that are not there"):
        open_writer(tmp_path / NAME)

    connection = apsw.Connection(str(tmp_path / NAME))
    assert connection.pragma("user_version") == FIRST_VERSION
    assert connection.execute("SELECT count(*) FROM turns").get
    connection.close()


def test_a_script_may_replace_a_table_that_others_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With foreign keys on, dropping it would delete or refuse; with triggers checked, renaming
    would be refused."""
    lay_out_every_state(tmp_path)
    script = (
        "CREATE TABLE next (channel TEXT PRIMARY KEY, token TEXT NOT NULL, more TEXT) STRICT;"
        "INSERT INTO next SELECT channel, token, 'x' FROM cursors;"
        "DROP TABLE cursors; ALTER TABLE next RENAME TO cursors;"
        "CREATE TABLE others (turn_id INTEGER PRIMARY KEY, session_id INTEGER) STRICT;"
        "INSERT INTO others SELECT turn_id, session_id FROM turns;"
        "DROP TABLE turns; ALTER TABLE others RENAME TO turns;"
    )
    with_script(monkeypatch, script)
    connection = open_writer(tmp_path / NAME)
    assert connection.execute("SELECT more FROM cursors").get == "x"
    assert connection.execute("SELECT count(*) FROM steps JOIN turns USING (turn_id)").get
    connection.close()


@golden
async def test_a_migrated_home_is_worked_on(
    tmp_path: Path, lay_out: Callable[[Path], None]
) -> None:
    """Every turn that was open gets a verdict, and new messages are taken."""
    lay_out(tmp_path)
    home = await open_here(tmp_path)
    home.clock.wall_ms = 1_900_000_000_000
    home.worker = await home.store.workers.start("host", 1, "birth", "0.2")
    left = await home.store.turns.unowned(with_suspended=True)
    assert left
    for turn_id in left:
        await home.recover(turn_id)
    await home.say("hello again", chat="a new chat")
    assert await home.claims()
    assert home.failures == []
    await home.store.close()


@needs_strace
def test_a_migration_may_be_killed_anywhere(tmp_path: Path) -> None:
    """The next start finds the old version or the new one, whole, and goes on."""
    if newest_version() == FIRST_VERSION:
        pytest.skip("there is no migration yet")
    lay_out_every_state(tmp_path / "whole")
    whole = run_traced("open", str(tmp_path / "whole"), calls="pwrite64,fdatasync,rename")
    assert whole.said == ["open"], "the victim does not run"
    places = [
        (call, number)
        for call, count in whole.calls.items()
        for number in range(1, count + 1, EVERY)
    ]

    def kill_at(place: tuple[str, int]) -> Path:
        call, number = place
        home = tmp_path / f"{call}-{number}"
        lay_out_every_state(home)
        ended = run_traced("open", str(home), calls=call, inject=f"signal=KILL:when={number}")
        assert ended.is_killed, ended
        return home

    with ThreadPoolExecutor(4) as pool:
        homes = list(pool.map(kill_at, places))
    for path in homes:
        connection = open_writer(path / NAME)
        assert connection.pragma("user_version") == newest_version()
        assert connection.pragma("integrity_check") == "ok"
        assert connection.execute("SELECT count(*) FROM turns").get == 32
        connection.close()
