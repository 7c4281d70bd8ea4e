"""Issue 15, must show: the home of an earlier version, with its people and its configuration."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from koboshi.boundary.probe import probe
from tests.cli.process import gateway, koboshi, until
from tests.harness.golden import lay_out_every_state
from tests.harness.ports import free_port
from tests.harness.rows import glance

TOKEN = "1:" + "a" * 35
OWNER, PAIRED, REVOKED = "100", "555", "556"
CONFIGURATION = """
[channels.web.main]
port = 0

[channels.telegram.main]
token_env = "BOT_TOKEN"
allow = [{owner}]
api_base = "http://127.0.0.1:{port}"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Of the first version: an owner in `allow`, a person who was let in by a code, and one whose
    right was taken away."""
    home = tmp_path / "home"
    lay_out_every_state(home)
    home.chmod(0o700)
    with closing(sqlite3.connect(home / "koboshi.db")) as database, database:
        database.executemany(
            "INSERT INTO people VALUES ('telegram:main', ?, 'Pat', 38, 1793000060000, ?)",
            [(PAIRED, None), (REVOKED, 1793000060000)],
        )
    text = CONFIGURATION.format(owner=OWNER, port=free_port())
    (home / "koboshi.toml").write_text(text)
    (home / "koboshi.toml").chmod(0o600)
    return home


def told_of_roles(home: Path) -> list[tuple[object, object]]:
    """Who was told of the new roles, and how often, by chat."""
    rows = glance(home)
    chats = {row["session_id"]: row["chat"] for row in rows.of("sessions")}
    told = [row for row in rows.of("outbox") if str(row["cause"]).startswith("roles:")]
    return [(chats[row["session_id"]], row["text"]) for row in told]


def test_an_upgraded_home_keeps_its_people_and_says_what_holds(home: Path) -> None:
    name = str(probe().best)
    with gateway(home, BOT_TOKEN=TOKEN) as one:
        one.wait_serving()
        event = "boundary_missing" if name == "none" else "boundary_holds"
        (said,) = until(lambda: one.events(event), "what holds")
        people = koboshi("people", "list", "--json", home=home, BOT_TOKEN=TOKEN).document
        status = koboshi("status", home=home, BOT_TOKEN=TOKEN).out
    first = told_of_roles(home)
    with gateway(home, BOT_TOKEN=TOKEN) as again:
        again.wait_serving()
    second = told_of_roles(home)

    found = {(each["channel"], each["person"]): each["role"] for each in people["people"]}
    assert found[("telegram:main", PAIRED)] == "member"
    assert ("telegram:main", REVOKED) not in found
    assert "telegram:main" not in people["without_owner"], "`allow` names owners"
    ((chat, words),) = first
    assert chat == OWNER
    assert f"telegram:main {PAIRED}" in str(words)
    assert "members now" in str(words)
    assert second == first, "told once"
    assert ("held by" in str(said["boundary"])) is (name != "none")
    assert name == "none" or name in status.lower()
