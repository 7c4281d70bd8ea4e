"""What an operator is told of the server: by `doctor`, `status` and the metrics."""

from dataclasses import replace
from pathlib import Path

import pytest

from koboshi import __version__
from koboshi.cli.doctor.checks import Severity
from koboshi.cli.doctor.server_checks import CHECKS, ServerView
from koboshi.clock import SystemClock
from koboshi.domain.fingerprint import fingerprint_of
from koboshi.domain.standby import standby_words
from koboshi.ports.server import LivingNode, ServerFacts, ServerRefusal
from koboshi.stores.migration_scripts import newest_version
from koboshi.stores.postgres.examination import examine_server
from koboshi.stores.postgres.store import PostgresStore
from tests.harness.homes import Home
from tests.harness.postgres_backend import Database, PostgresBackend
from tests.harness.proxy import AtCommit, Proxy

SOUND = ServerFacts(
    name="PostgreSQL 15.2",
    round_trip_ms=0.4,
    clock_ahead_ms=3,
    fsync="on",
    synchronous_commit="on",
    standby_names="ANY 1 (b)",
    standbys=1,
    is_standby=False,
    encoding="UTF8",
    connections_left=50,
    idle_timeout="3s",
    is_pooled=False,
    schema=newest_version(),
    schema_known=newest_version(),
)
VIEW = ServerView(server=SOUND, node="a", home="h1", has_web=True, has_token=False)
B = LivingNode(node="b", home="h2", version="0.1", silent_ms=10)


def words_of(view: ServerView, severity: Severity) -> str:
    found = [each for check in CHECKS.values() for each in check(view)]
    return " | ".join(each.words for each in found if each.severity is severity)


def test_a_sound_server_has_no_findings() -> None:
    for severity in (Severity.NOTE, Severity.WARNING, Severity.ERROR):
        assert words_of(VIEW, severity) == ""


@pytest.mark.parametrize(
    "severity, words, changed",
    [
        (Severity.ERROR, "fsync is off", {"fsync": "off"}),
        (Severity.ERROR, "synchronous_commit is off", {"synchronous_commit": "off"}),
        (Severity.ERROR, "takes no writes", {"is_standby": True}),
        (Severity.WARNING, "7.5 ms away", {"round_trip_ms": 7.5}),
        (Severity.WARNING, "behind that of this machine", {"clock_ahead_ms": -60_000}),
        (Severity.WARNING, "a pooler stands between", {"is_pooled": True}),
        (Severity.ERROR, "does not hold", {"idle_timeout": "0"}),
        (Severity.ERROR, "must be UTF8", {"encoding": "LATIN1"}),
        (Severity.ERROR, "were moved", {"rows_are": "koboshi.db"}),
        (Severity.ERROR, "is newer than this program", {"oldest_code": 9_999}),
        (Severity.NOTE, "brings it forward", {"schema": 23}),
        (Severity.NOTE, "there are no tables yet", {"schema": None}),
        (Severity.WARNING, "3 are left", {"connections_left": 3}),
        (Severity.WARNING, "none is connected", {"standbys": 0}),
        (Severity.NOTE, "may lose the newest commits", {"standby_names": ""}),
        (Severity.NOTE, "no standby", {"standby_names": "", "standbys": 0}),
        (Severity.ERROR, "is called a, too", {"nodes": (replace(B, node="a"),)}),
        (Severity.NOTE, "0.1, 0.2", {"nodes": (B, replace(B, version="0.2"))}),
        (Severity.WARNING, "the web token is this home's own", {"nodes": (B,)}),
    ],
)
def test_each_trouble_is_found(severity: Severity, words: str, changed: dict[str, object]) -> None:
    server = replace(SOUND, **changed)  # type: ignore[arg-type]
    assert words in words_of(replace(VIEW, server=server), severity)


@pytest.mark.parametrize(
    "home, severity, words",
    [
        ("h2", Severity.WARNING, "b runs with another configuration than this home has: model"),
        ("h1", Severity.NOTE, "this node runs with another configuration"),
    ],
)
def test_another_configuration_is_found(home: str, severity: Severity, words: str) -> None:
    marks = [fingerprint_of([("model", "name", name)]) for name in ("one", "two")]
    other = replace(B, home=home, version=__version__, fingerprint=marks[1])
    view = replace(VIEW, server=replace(SOUND, nodes=(other,)), fingerprint=marks[0])

    assert words in words_of(view, severity)
    assert "another configuration" not in words_of(replace(view, fingerprint=marks[1]), severity)


def test_the_promise_of_a_standby_depends_on_who_waits_for_it() -> None:
    assert "nothing acknowledged is lost" in standby_words("b", "on", 1)
    assert "unless both" in standby_words("b", "remote_write", 1)
    assert "may lose" in standby_words("b", "local", 1)


async def test_a_server_is_looked_at_and_not_changed(database: Database, tmp_path: Path) -> None:
    empty = Database("koboshi_test_looked_at")
    facts = examine_server(empty.url, SystemClock())
    assert isinstance(facts, ServerFacts)
    assert facts.schema is None
    tables = empty.past.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == []
    empty.close()

    home = Home(backend=PostgresBackend(tmp_path, database=database))
    await home.boot()
    facts = examine_server(database.url, SystemClock())
    assert isinstance(facts, ServerFacts)
    assert (facts.fsync, facts.encoding, facts.schema) == ("off", "UTF8", newest_version())
    assert (facts.is_pooled, facts.idle_timeout) == (False, "3s")
    assert abs(facts.clock_ahead_ms) < 5_000
    assert len(facts.nodes) == 1

    status = await home.store.views.status()
    assert status.server is not None
    assert status.server.name.startswith("PostgreSQL ")
    assert facts.round_trip_ms > 0
    assert "no standby" in status.server.standby
    await home.store.close()


def test_a_server_that_cannot_be_reached_is_a_finding(tmp_path: Path) -> None:
    assert isinstance(examine_server(f"host={tmp_path}", SystemClock()), ServerRefusal)


async def test_lost_connections_and_unknown_commits_are_counted(
    proxied: Home, proxy: Proxy
) -> None:
    store = proxied.store
    assert isinstance(store, PostgresStore)
    before, waits = store.figures, store.figures.lock_waits.count
    proxy.break_commit(AtCommit.AFTER)
    await proxied.say("hello")
    after = store.figures
    assert after.reconnects == before.reconnects + 1
    assert after.unknown_commits["committed"] == before.unknown_commits["committed"] + 1
    assert after.rounds > before.rounds
    assert after.lock_waits.count > waits
    assert after.lease_age_s < 60


async def test_each_node_counts_the_lines_that_it_wrote(database: Database, tmp_path: Path) -> None:
    nodes = []
    for name in ("a", "b"):
        node = Home(backend=PostgresBackend(tmp_path / name, database=database))
        await node.boot()
        nodes.append(node)
    a, b = nodes
    tallied = []
    await a.say("one", chat="x", key="1")
    await b.say("two", chat="y", key="2")
    await b.say("three", chat="z", key="3")
    for node in nodes:
        tally = await node.store.views.tally(node.worker.worker_id, None)
        tallied.append(sum(each.count for each in tally.happened if each.subject == "message"))
        again = await node.store.views.tally(node.worker.worker_id, tally.place)
        assert not again.happened
    assert tallied == [1, 2]
    for node in nodes:
        await node.store.close()
