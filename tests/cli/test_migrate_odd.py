"""Homes of other gateways that were edited by hand, or are half broken: what can move in does, and
the rest is told in words."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from koboshi.app.moving_in.found import NotMovable, OtherHome
from koboshi.app.moving_in.hermes import read_hermes
from koboshi.app.moving_in.moving import move_in
from koboshi.app.moving_in.openclaw import read_openclaw
from koboshi.app.moving_in.staging import baggage_of
from koboshi.app.moving_in.talks import LOCAL, take_hermes_talks
from koboshi.config import Config, prepare_home
from koboshi.domain.talk_elsewhere import FILE_BYTES_MAX, SAID_CHARS_MAX, SaidElsewhere, lines_of
from koboshi.tools.skills import SkillFolder
from tests.harness.moving import rows
from tests.harness.other_homes import hermes_home, job, openclaw_home

DAILY: dict[str, object] = {"kind": "cron", "expr": "0 9 * * *"}


@pytest.fixture
def hermes(tmp_path: Path) -> Path:
    return hermes_home(tmp_path / "theirs")


@pytest.fixture
def openclaw(tmp_path: Path) -> Path:
    return openclaw_home(tmp_path / "theirs")


async def moved(found: OtherHome, home: Path) -> None:
    config = Config(home=home)
    found.name_owner(found.people[0])
    baggage = baggage_of(found, config)
    prepare_home(home)
    await move_in(config, baggage)


def stays(found: OtherHome) -> dict[str, str]:
    return dict(found.left)


@pytest.mark.parametrize(
    "text", ["when: 2024-13-45\n", "[" * 3_000, f"count: {'9' * 5_000}\n", "a: b: c\n"]
)
def test_what_is_no_yaml_is_refused_in_words(hermes: Path, text: str) -> None:
    (hermes / "config.yaml").write_text(text)
    with pytest.raises(NotMovable, match=r"config\.yaml is not YAML"):
        read_hermes(hermes)


async def test_servers_of_odd_names_move_in_by_names_of_ours(hermes: Path, tmp_path: Path) -> None:
    names = ["A b", "a-b", "a_b", "___", "1", "~", "é", "x" * 200, "-_-q", "my_own", "x-__-y"]
    listed = "".join(f"  {json.dumps(name)}: {{command: x}}\n" for name in names)
    (hermes / "config.yaml").write_text(f"mcp_servers:\n{listed}  7: {{url: 'http://x.test'}}\n")
    found = read_hermes(hermes)

    await moved(found, tmp_path / "home")  # the configuration that they make is checked

    assert len(found.servers) == len(names) + 1
    assert [each.name for each in found.servers][:3] == ["a-b", "a-b-2", "a-b-3"]


async def test_skills_of_odd_names_are_found_here(hermes: Path, tmp_path: Path) -> None:
    names = ["My Skill", "naïve", "-x", ".hidden", "y" * 100, "a\nb", "tea time!"]
    for name in names:
        (hermes / "skills" / name).mkdir()
        (hermes / "skills" / name / "SKILL.md").write_text("Do it.\n")
    found = read_hermes(hermes)

    await moved(found, tmp_path / "home")

    known = SkillFolder(folder=tmp_path / "home" / "skills").all()
    assert len(known) == len(names) + 1
    assert {"My-Skill", "x", "hidden", "a-b", "tea"} <= {each.name for each in known}


async def test_each_schedule_moves_in_once_and_odd_ones_are_told(
    hermes: Path, tmp_path: Path
) -> None:
    jobs = [
        1,
        job("z", "one", "telegram:1001", DAILY),
        job("z", "two", "telegram:1001", DAILY),
        job("", "three", "telegram:1001", DAILY),
        job("", "four", "telegram:1001", DAILY),
        job("y", "topic", "telegram:-1002:45", DAILY),
        job("x", "back", "telegram:1001", {"kind": "interval", "minutes": -5}),
        job("w", "far", "telegram:1001", {"kind": "interval", "minutes": 10**30}),
        job("v", "bad", "telegram:1001", {"kind": "cron", "expr": "nonsense\n"}),
        job("u", "half \ud800", "telegram:1001", DAILY),
    ]
    (hermes / "cron" / "jobs.json").write_text(json.dumps({"jobs": jobs}))

    await moved(read_hermes(hermes), tmp_path / "home")

    made = rows(tmp_path / "home", "SELECT name FROM schedules ORDER BY schedule_id")
    assert [name for (name,) in made] == ["one", "two", "three", "four", "topic", "half ?"]
    places = rows(tmp_path / "home", "SELECT chat, thread FROM sessions ORDER BY 1")
    assert places == [("-1002", "45"), ("1001", "")]


@pytest.mark.parametrize("text", ["nonsense", "{}", "[]", "1"])
def test_a_pid_that_is_none_keeps_no_home_away(hermes: Path, text: str) -> None:
    (hermes / "gateway.pid").write_text(text)
    read_hermes(hermes)


def test_a_pid_without_anything_around_it_is_one(
    hermes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("koboshi.app.moving_in.hermes.is_alive", lambda pid, _: pid == os.getpid())
    (hermes / "gateway.pid").write_text(f"{os.getpid()}\n")
    with pytest.raises(NotMovable, match="runs in"):
        read_hermes(hermes)


@pytest.mark.parametrize("stored", [None, "{", "x", "[]", "5"])
def test_rows_that_are_nonsense_are_left_and_the_rest_moves(
    openclaw: Path, stored: str | None
) -> None:
    state = apsw.Connection(str(openclaw / "state" / "openclaw.sqlite"))
    state.execute("INSERT INTO cron_jobs VALUES ('', 'odd', ?)", (stored,))
    state.execute("INSERT INTO state_leases VALUES ('gateway-owner', 'g', ?)", (stored,))
    state.execute("UPDATE config_machine_state SET value_json = ?", (stored,))
    state.close()

    found = read_openclaw(openclaw)

    assert any(each.order.name == "morning" for each in found.schedules)
    assert any(what.startswith("schedule") for what in stays(found))


def test_a_configuration_with_comments_is_read(openclaw: Path) -> None:
    """OpenClaw takes JSON5, and people write it."""
    (openclaw / "openclaw.json").write_text("""\
// my gateway
{
\t/* the bot // of
\t   ours */
\tchannels: {
\t\ttelegram: { botToken: '777:AAfake-claw-token', allowFrom: ["3001",], },
\t},
\tmodels: {providers:{mine:{baseUrl:"http://there.test:8080/v1"}}}, // an address
\tagents: { defaults: { model: "mine/small \\"x\\" // no comment" } },
}
""")
    found = read_openclaw(openclaw)

    assert found.channels[0].secrets == {"token": "777:AAfake-claw-token"}
    assert [each.person for each in found.people] == ["3001", "3002"]
    assert found.model is not None
    assert (found.model.name, found.model.base_url) == (
        'openai:small "x" // no comment',
        "http://there.test:8080/v1",
    )


@pytest.mark.parametrize("text", ["{", "// only words", "{a: 'b}", "[" * 3_000])
def test_a_configuration_that_is_none_is_refused_in_words(openclaw: Path, text: str) -> None:
    (openclaw / "openclaw.json").write_text(text)
    with pytest.raises(NotMovable, match=r"openclaw\.json is not"):
        read_openclaw(openclaw)


def tilde(folder: Path) -> str:
    (folder.parent / "user").mkdir()
    shutil.move(folder / "workspace", folder.parent / "user" / "claw")
    return "~/claw"


def as_it_is(folder: Path) -> str:
    return str(folder / "workspace")


@pytest.mark.parametrize("place", [tilde, as_it_is])
def test_the_workspace_is_found_as_openclaw_finds_it(
    openclaw: Path, monkeypatch: pytest.MonkeyPatch, place: Callable[[Path], str]
) -> None:
    monkeypatch.setenv("HOME", str(openclaw.parent / "user"))
    tree = json.loads((openclaw / "openclaw.json").read_text())
    tree["agents"]["defaults"]["workspace"] = place(openclaw)
    (openclaw / "openclaw.json").write_text(json.dumps(tree))

    found = read_openclaw(openclaw)

    assert [words for _, words in found.memory] == ["The server is called kiri"]
    assert [target for _, target in found.copies] == ["skills/tea"]


def test_conversations_that_cannot_be_read_stay_and_the_newest_of_too_many_come(
    tmp_path: Path,
) -> None:
    (tmp_path / "state.db").write_bytes(b"no database" * 500)
    found = OtherHome(source="hermes", folder=tmp_path)
    take_hermes_talks(found)
    assert [what for what, _ in found.left] == [f"conversations in {tmp_path / 'state.db'}"]

    for number in range(2_500):
        text = f"{number} " + "x" * (SAID_CHARS_MAX - 10)
        at_ms = 1_780_000_000_000 - number
        said = SaidElsewhere(gateway="Hermes", at_ms=at_ms, is_persons=True, text=text)
        for _ in range(2 if number < 9 else 1):
            found.hear(LOCAL, said)
    kept = found.talks[LOCAL]
    assert [each.text.split()[0] for each in kept] == [str(each) for each in range(len(kept))]
    assert len(lines_of(kept).encode()) <= FILE_BYTES_MAX
    found.leave_talks()
    assert found.left[-1][0] == f"conversations: the {2_500 - len(kept)} oldest messages"
