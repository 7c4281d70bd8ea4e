"""Databases of earlier versions on PostgreSQL: all rows are still there, in the newest schema."""

import gzip
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from psycopg import sql

from koboshi.clock import SystemClock
from koboshi.domain.errors import StoreRefused
from koboshi.stores.migration_scripts import migration_scripts
from koboshi.stores.postgres import changes, migrate
from koboshi.stores.postgres.changes import Untranslatable, change_to, translated
from koboshi.stores.postgres.migrate import FIRST_VERSION, bring_up_to_date, newest_version
from koboshi.stores.postgres.statements import statements
from koboshi.stores.postgres.wire import Wire
from tests.harness.golden import FOLDER
from tests.harness.homes import Home
from tests.harness.postgres_backend import Database, PostgresBackend

GOLDEN = FOLDER / "postgres-23.sql.gz"
"""The dump of a database of the first version, with rows in every state."""
CATALOG = {
    "columns": "SELECT table_name, column_name, data_type, is_nullable, column_default, "
    "collation_name, is_identity FROM information_schema.columns WHERE table_schema = 'public'",
    "constraints": "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) "
    "FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "triggers": "SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) "
    "FROM pg_trigger WHERE NOT tgisinternal",
    "functions": "SELECT proname, pg_get_functiondef(oid) FROM pg_proc "
    "WHERE pronamespace = 'public'::regnamespace",
    "schema": "SELECT version, oldest_code, shape FROM koboshi_schema",
}
"""All that makes up a schema. The order of columns does not matter: they are always named."""


@pytest.fixture
def old() -> Iterator[Database]:
    """A database that the first version has made and filled."""
    made = Database("koboshi_test_old")
    made.past.execute(gzip.decompress(GOLDEN.read_bytes()))
    made.past.execute("SELECT set_config('search_path', 'public', false)")
    yield made
    made.close()


def brought_up(url: str) -> None:
    wire = Wire.connect(url, statements(), SystemClock())
    try:
        bring_up_to_date(wire)
    finally:
        wire.close()


def catalog(database: Database) -> dict[str, list[tuple[object, ...]]]:
    asked = database.past.execute
    return {
        name: sorted(asked(query.encode()).fetchall(), key=str) for name, query in CATALOG.items()
    }


def contents(database: Database) -> dict[str, list[dict[str, object]]]:
    """All rows of all tables but the one that says which version they have."""
    run = database.past.execute
    tables = run("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    found = {}
    for (table,) in tables:
        if table != "koboshi_schema":
            cursor = run(
                sql.SQL("SELECT * FROM {} ORDER BY 1, 2").format(sql.Identifier(str(table)))
            )
            names = [column.name for column in cursor.description or ()]
            found[str(table)] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return found


def with_script(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """As if a newer version had one more script."""
    known = {**migration_scripts(), newest_version() + 1: script}
    for module in (migrate, changes):
        monkeypatch.setattr(module, "migration_scripts", lambda: known)


def test_a_migrated_database_has_the_schema_of_a_new_one(old: Database) -> None:
    new = Database("koboshi_test_new")
    brought_up(old.url)
    brought_up(new.url)
    migrated, fresh = catalog(old), catalog(new)
    new.close()
    for name in CATALOG:
        assert migrated[name] == fresh[name], name


def test_a_migration_keeps_every_row(old: Database) -> None:
    before = contents(old)
    brought_up(old.url)
    after = contents(old)
    assert sum(map(len, before.values())) > 400, "the dump would prove little"
    for table, rows in before.items():
        kept = [{name: row[name] for name in rows[0]} for row in after[table]] if rows else []
        assert kept == rows, table


def test_nodes_that_start_together_change_the_tables_once(old: Database) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(brought_up, [old.url] * 2))
    found = old.past.execute("SELECT version FROM koboshi_schema").fetchall()
    assert found == [(newest_version(),)]


async def test_a_migrated_database_is_worked_on(old: Database, tmp_path: Path) -> None:
    """Every turn that was open gets a verdict, and new messages are taken."""
    home = Home(backend=PostgresBackend(tmp_path / "home", database=old))
    await home.open()
    home.clock.wall_ms = 1_900_000_000_000
    old.past.execute("UPDATE workers SET ended_ms = 1, ended_how = 'killed' WHERE ended_ms IS NULL")
    home.worker = await home.store.workers.start("host", 1, "birth", "0.2")
    left = await home.store.turns.unowned(with_suspended=True)
    assert left
    for turn_id in left:
        await home.recover(turn_id)
    await home.say("hello again", chat="a new chat")
    assert await home.claims()
    assert home.failures == []
    await home.store.close()


def test_a_change_that_fails_leaves_the_database_as_it_was(
    old: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = catalog(old), contents(old)
    with_script(monkeypatch, "UPDATE turns SET no_such_column = 1;")
    with pytest.raises(StoreRefused, match="no_such_column"):
        brought_up(old.url)
    assert (catalog(old), contents(old)) == before


def test_an_older_program_goes_on_until_it_would_do_harm(old: Database) -> None:
    """A node of the version before works on tables that a newer one has changed, unless that says
    that it may not."""
    brought_up(old.url)
    old.past.execute("UPDATE koboshi_schema SET version = version + 1, shape = 'newer'")
    brought_up(old.url)
    old.past.execute("UPDATE koboshi_schema SET oldest_code = version")
    with pytest.raises(StoreRefused, match="newer koboshi"):
        brought_up(old.url)


def test_every_script_leads_on_on_postgresql() -> None:
    """A script that cannot be translated needs one of the same number in postgres/migrations."""
    for version in range(FIRST_VERSION + 1, newest_version() + 1):
        change_to(version)


def test_a_table_that_sqlite_makes_anew_gets_its_new_columns() -> None:
    script = """
    CREATE TABLE cursors_next (
        channel TEXT NOT NULL, -- the old columns
        token   TEXT NOT NULL,
        more    INTEGER REFERENCES workers CHECK (more > 0),
        PRIMARY KEY (channel),
        UNIQUE (token)
    ) STRICT;
    INSERT INTO cursors_next (channel, token) SELECT channel, token FROM cursors ORDER BY channel;
    DROP TABLE cursors;
    ALTER TABLE cursors_next RENAME TO cursors;
    CREATE INDEX cursors_more ON cursors (more) WHERE more > 1;
    CREATE TRIGGER t AFTER INSERT ON cursors BEGIN UPDATE turns SET epoch = 1; END;
    UPDATE cursors SET more = max(1, 2) WHERE token GLOB 'x*';
    """
    found = [*translated(script)]
    assert found.pop(3).startswith("DO $$")
    assert found == [
        'ALTER TABLE cursors ADD COLUMN IF NOT EXISTS channel text COLLATE "C" NOT NULL',
        'ALTER TABLE cursors ADD COLUMN IF NOT EXISTS token text COLLATE "C" NOT NULL',
        "ALTER TABLE cursors ADD COLUMN IF NOT EXISTS more bigint REFERENCES workers",
        "ALTER TABLE cursors ADD UNIQUE (token)",
        "DROP INDEX IF EXISTS cursors_more",
        "CREATE INDEX cursors_more ON cursors (more, channel, account) WHERE more > 1",
        "UPDATE cursors SET more = greatest(1, 2) WHERE token LIKE 'x%'",
    ]


@pytest.mark.parametrize(
    "script",
    [
        "DROP TABLE cursors;",
        "ALTER TABLE cursors RENAME TO others;",
        "UPDATE sessions SET lock_key = chat_key(channel, chat);",
        "CREATE TABLE n (a TEXT) STRICT; INSERT INTO n (a) SELECT upper(a) FROM o;"
        "DROP TABLE o; ALTER TABLE n RENAME TO o;",
        "PRAGMA user_version = 1;",
    ],
)
def test_what_cannot_be_translated_is_refused(script: str) -> None:
    with pytest.raises(Untranslatable):
        [*translated(script)]
