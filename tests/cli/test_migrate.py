"""`koboshi migrate`: the home of another gateway moves in, whole or not at all, and once."""

import fcntl
import json
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from koboshi.domain.ids import ChannelName
from koboshi.domain.memory import Scope, ScopeKind
from koboshi.tools.elsewhere import TalksElsewhere
from tests.cli.process import koboshi, starting, until
from tests.harness.moving import STEPS, migrate, remains, remembered, rows
from tests.harness.other_homes import hermes_home, lease_of, openclaw_home, print_of

HOMES: dict[str, Callable[[Path], Path]] = {"hermes": hermes_home, "openclaw": openclaw_home}
CHANNEL, PAGE = ChannelName("telegram:main"), ChannelName("web:main")
OWNERS = {"hermes": "telegram:1001", "openclaw": "telegram:3001"}


def heard(
    talks: TalksElsewhere,
    name: str,
    channel: ChannelName = CHANNEL,
    kind: ScopeKind = ScopeKind.PERSON,
) -> list[str]:
    """What is found of what was said before, newest first."""
    scope = Scope(channel=channel, kind=kind, name=name)
    return [each.text for each in talks.find(scope, "heron", 9)]


def test_a_plan_changes_nothing_and_shows_no_secret(tmp_path: Path) -> None:
    theirs, home = hermes_home(tmp_path / "theirs"), tmp_path / "home"
    before = print_of(theirs)

    done = migrate("hermes", theirs, home)

    assert done.code == 0, done.err
    assert done.document["moved"] is None
    assert not (home / "koboshi.db").exists()
    assert print_of(theirs) == before
    assert "AAfake" not in done.out
    assert "sk-or-fake" not in done.out
    stays = {each["what"]: each["why"] for each in done.document["stays"]}
    assert stays["telegram @ann"] == "it is no stable id of a person"
    assert "signal" in stays
    assert stays["conversations: 2 messages in groups, and of other people"]


@pytest.mark.parametrize("source", HOMES)
def test_a_home_moves_in_once(tmp_path: Path, source: str) -> None:
    theirs, home = HOMES[source](tmp_path / "theirs"), tmp_path / "home"
    before = print_of(theirs)

    done = migrate(source, theirs, home, "--apply", "--owner", OWNERS[source])

    assert done.code == 0, done.out + done.err
    found = remains(home)
    assert print_of(theirs) == before
    token = home / "tokens" / "telegram-main-token"
    assert "AAfake" in token.read_text()
    secret = [token, home / "environment", home / "koboshi.toml"]
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in secret)
    config = tomllib.loads((home / "koboshi.toml").read_text())
    assert config["channels"]["telegram"]["main"]["token_file"] == str(token)
    assert config["mcp"]["files"]["command"] == "npx"
    assert not (home / "memory").exists(), "the files of a memory are written by the gateway"
    owner = OWNERS[source].partition(":")[2]
    whose = {
        (channel, person) for channel, person, _, text, _ in remembered(home) if "kiri" in text
    }
    assert whose == {("telegram:main", owner), ("web:main", "")}
    assert "Boil" in (home / "skills" / "tea" / "SKILL.md").read_text()
    assert not (home / "skills" / "tea" / "out").exists(), "a link that leads elsewhere"
    assert not (home / "incoming").exists()
    talks = TalksElsewhere(home=home)
    assert heard(talks, owner) == ["A heron, noted.", "my heron lives at the lake"]
    other = {"hermes": "1002", "openclaw": "3002"}[source]
    assert len(heard(talks, other)) == len(heard(talks, "", PAGE)) == 1
    assert heard(talks, "9999") == heard(talks, owner, kind=ScopeKind.CHAT) == []
    states = {state for _, _, _, state, _ in found["schedules"]}  # type: ignore[attr-defined]
    assert states == {"paused"}
    roles = {person: role for _, person, _, role in found["people"]}  # type: ignore[attr-defined]
    assert roles.pop(owner) == "owner"
    assert set(roles.values()) == {"member"}
    times = {each["name"]: each["next_ms"] for each in done.document["moved"]["schedules"]}
    assert len(times["morning"]) == 3
    keys = {"ANTHROPIC_API_KEY": "x", "OPENROUTER_API_KEY": "x"}
    checked = koboshi("config", "check", home=home, **keys)
    assert checked.code == 0, checked.err

    again = migrate(source, theirs, home, "--apply")

    assert again.code == 0
    assert again.document["moved"]["is_new"] is False
    assert remains(home) == found


def test_a_schedule_whose_time_is_over_is_told(tmp_path: Path) -> None:
    theirs, home = hermes_home(tmp_path / "theirs"), tmp_path / "home"
    done = migrate("hermes", theirs, home, "--apply")
    assert [each["name"] for each in done.document["moved"]["refused"]] == ["past"]


def test_what_is_there_stays(tmp_path: Path) -> None:
    """A configuration and an environment of our own are never written over."""
    theirs, home = hermes_home(tmp_path / "theirs"), tmp_path / "home"
    home.mkdir()
    own = {"koboshi.toml": "[gateway]\n", "environment": "A=b\n"}
    for name, text in own.items():
        (home / name).write_text(text)

    done = migrate("hermes", theirs, home, "--apply")

    assert done.code == 0, done.out
    assert {name: (home / name).read_text() for name in own} == own
    assert "telegram" in (home / "koboshi.toml.from-hermes").read_text()
    assert "sk-or-fake" in (home / "environment.from-hermes").read_text()


def test_what_does_not_fit_into_a_memory_is_told(tmp_path: Path) -> None:
    theirs, home = hermes_home(tmp_path / "theirs"), tmp_path / "home"
    (theirs / "memories" / "MEMORY.md").write_text("\n§\n".join(each * 900 for each in "abc"))
    (theirs / "memories" / "USER.md").write_bytes(b"\xff\xfe")

    plan = migrate("hermes", theirs, home, "--owner", "telegram:1001")
    stays = {each["what"]: each["why"] for each in plan.document["stays"]}
    assert any(what.startswith("MEMORY.md: «ccc") for what in stays)
    assert str(theirs / "memories" / "USER.md") in stays

    done = migrate("hermes", theirs, home, "--apply", "--owner", "telegram:1001")
    assert done.document["moved"]["remembered"] == [
        {"whose": "telegram:main/1001", "entries": 2},
        {"whose": "web:main/its owner", "entries": 2},
    ]
    assert len(done.document["moved"]["not_remembered"]) == 2
    assert len(remembered(home)) == 4


def test_without_an_owner_only_the_page_has_the_memory(tmp_path: Path) -> None:
    theirs, home = hermes_home(tmp_path / "theirs"), tmp_path / "home"
    done = migrate("hermes", theirs, home, "--apply")
    assert {(channel, person) for channel, person, *_ in remembered(home)} == {("web:main", "")}
    assert "the memory on other channels" in {each["what"] for each in done.document["stays"]}

    named = migrate("hermes", theirs, home, "--apply", "--owner", "telegram:1001")

    assert (named.document["moved"]["is_new"], named.document["moved"]["is_owned_now"]) == (
        False,
        True,
    )
    whose = {(channel, person) for channel, person, *_ in remembered(home)}
    assert whose == {("telegram:main", "1001"), ("web:main", "")}
    found = remains(home)
    again = migrate("hermes", theirs, home, "--apply", "--owner", "telegram:1001")
    assert again.document["moved"]["is_owned_now"] is False
    assert remains(home) == found


def test_a_person_whose_right_was_taken_away_is_not_let_in_again(tmp_path: Path) -> None:
    theirs, home = hermes_home(tmp_path / "theirs"), tmp_path / "home"
    assert migrate("hermes", theirs, home, "--apply").code == 0
    assert koboshi("pairing", "revoke", "telegram:main", "2002", home=home).code == 0
    (theirs / "SOUL.md").write_text("You are another.\n")

    assert migrate("hermes", theirs, home, "--apply").document["moved"]["is_new"] is True

    revoked = rows(home, "SELECT revoked_ms IS NOT NULL FROM people WHERE person = '2002'")
    assert revoked == [(1,)]


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_each_step_nothing_or_all_has_moved(tmp_path: Path, step: str) -> None:
    theirs, whole, home = hermes_home(tmp_path / "theirs"), tmp_path / "one" / "h", tmp_path / "h"
    assert migrate("hermes", theirs, whole, "--apply").code == 0

    died = migrate("hermes", theirs, home, "--apply", KOBOSHI_CRASH_AT=step)
    assert died.code == -9
    done = migrate("hermes", theirs, home, "--apply")

    assert done.code == 0, done.out + done.err
    is_committed = step not in ("migrate.staged:after", "imports.commit:before")
    assert done.document["moved"]["is_new"] is not is_committed
    expected = json.loads(json.dumps(remains(whole)).replace(str(whole), str(home)))
    assert json.loads(json.dumps(remains(home))) == expected


@pytest.mark.crash
@pytest.mark.parametrize("step", ["migrate.staged:after", "imports.commit:after"])
def test_a_start_finishes_it_or_removes_what_was_staged(tmp_path: Path, step: str) -> None:
    theirs, home = hermes_home(tmp_path / "theirs"), tmp_path / "home"
    (theirs / ".env").write_text("SIGNAL_ACCOUNT=+100\n")  # no channel that would be called
    (theirs / "config.yaml").write_text("_config_version: 33\n")
    assert migrate("hermes", theirs, home, "--apply", KOBOSHI_CRASH_AT=step).code == -9
    assert (home / "incoming").exists()

    with starting(home, "--port", "0") as gateway:
        gateway.wait_serving()
        until(lambda: not (home / "incoming").exists(), "nothing is staged")
        is_committed = step == "imports.commit:after"
        gateway.wait_state(gateway.say("me", "echo hello"), "done")
        shown = [text for (text,) in rows(home, "SELECT text FROM shown_texts")]
        assert ("The server is called kiri" in str(shown)) == is_committed

    assert (home / "koboshi.toml").exists() == is_committed


def test_it_refuses_while_the_gateway_of_hermes_runs(tmp_path: Path) -> None:
    theirs, home = hermes_home(tmp_path / "theirs"), tmp_path / "home"
    with open(theirs / "gateway.lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = migrate("hermes", theirs, home, "--apply")
    assert done.code == 1
    assert "runs in" in done.document["error"]["message"]
    assert migrate("hermes", theirs, home).code == 0


def test_it_refuses_while_the_gateway_of_openclaw_runs(tmp_path: Path) -> None:
    theirs, home = openclaw_home(tmp_path / "theirs"), tmp_path / "home"
    program = [sys.executable, "-c", "input()", "openclaw", "gateway"]
    with subprocess.Popen(program, stdin=subprocess.PIPE) as running:
        lease_of(theirs, running.pid)
        done = migrate("openclaw", theirs, home)
        running.kill()
    assert done.code == 1
    assert "runs in" in done.document["error"]["message"]
    assert migrate("openclaw", theirs, home).code == 0, "a lease of a dead one is nothing"


@pytest.mark.parametrize(
    "name, text",
    [
        ("config.yaml", "model: [unclosed"),
        ("config.yaml", "!!python/object/apply:os.system ['true']"),
        ("cron/jobs.json", "{"),
        (".env", "TELEGRAM_BOT_TOKEN=has spaces in it\n"),
    ],
)
def test_hostile_files_are_refused_in_words(tmp_path: Path, name: str, text: str) -> None:
    theirs, home = hermes_home(tmp_path / "theirs"), tmp_path / "home"
    (theirs / name).write_text(text)
    done = migrate("hermes", theirs, home, "--apply")
    assert done.code in (0, 1), done.err
    assert "Traceback" not in done.err
    assert not (home / "incoming").exists()
