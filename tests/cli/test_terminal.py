"""What a person at a terminal gets: tables, completion, and no colours where none are wanted."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from koboshi.cli.tables import tone_of
from tests.cli.process import KOBOSHI, ended, environment, gateway, koboshi

NASTY = "echo \x1b[31m[bold]red[/bold]"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("terminal") / "home"
    with gateway(home) as one:
        one.wait_state(one.say("ann", NASTY), "done")
        one.stop()
    return home


def at_a_terminal(*arguments: str, home: Path, **more: str) -> str:
    ours, theirs = pty.openpty()
    variables = {**environment(home, **more), "TERM": "xterm", "COLUMNS": "160"}
    process = subprocess.Popen([KOBOSHI, *arguments], env=variables, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        said += piece
    os.close(ours)
    assert process.wait(60) == 0, said
    return said.decode()


@pytest.mark.parametrize(
    "name, title",
    [("sessions", "at work"), ("turns", "request"), ("inbox", "arrived"), ("outbox", "when")],
)
def test_a_list_is_a_table_at_a_terminal_and_lines_elsewhere(
    home: Path, name: str, title: str
) -> None:
    table = at_a_terminal(name, "list", home=home)
    lines = koboshi(name, "list", home=home).out

    assert title in table
    assert "─" in table
    assert "─" not in lines
    assert title not in lines.splitlines()[0].split()


def test_what_people_write_is_neither_obeyed_nor_taken_for_markup(home: Path) -> None:
    table = at_a_terminal("inbox", "list", home=home)

    assert "\x1b[31m" not in table
    assert "\\x1b[31m[bold]red[/bold]" in table


def test_no_colour_means_none(home: Path) -> None:
    coloured = at_a_terminal("turns", "list", home=home)
    plain = at_a_terminal("turns", "list", home=home, NO_COLOR="1")

    assert "\x1b[" in coloured
    assert "\x1b[3" not in plain


@pytest.mark.parametrize(
    "state, tone",
    [
        ("exited 0", "green"),
        ("exited 2", "red"),
        ("done", "green"),
        ("failed", "red"),
        ("being worked on", "cyan"),
        ("waiting for an answer", "yellow"),
        ("held back: the gateway keeps dying", "yellow"),
        ("", ""),
        ("of a plug-in", ""),
    ],
)
def test_a_state_has_the_colour_of_how_well_it_is(state: str, tone: str) -> None:
    assert tone_of(state) == tone


def test_only_the_state_is_coloured(home: Path) -> None:
    assert "\x1b[32mdone" in at_a_terminal("turns", "list", home=home)


def test_a_backup_shows_how_far_it_is(home: Path, tmp_path: Path) -> None:
    said = at_a_terminal("backup", "create", "--to", str(tmp_path / "a.db"), home=home)

    assert "copying" in said or "checking" in said
    assert f"made      {tmp_path / 'a.db'}" in said


def test_a_doctor_shows_what_it_is_at(home: Path) -> None:
    said = at_a_terminal("doctor", "--fix", home=home)

    assert "looking" in said
    assert "ok       sqlite: " in said


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_shell_gets_its_script(shell: str) -> None:
    told = koboshi("completion", shell)

    assert told.code == 0, told.err
    assert "_KOBOSHI_COMPLETE" in told.out


def test_commands_are_completed() -> None:
    def completed(*words: str) -> list[str]:
        asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        told = ended([KOBOSHI], environment(None, _KOBOSHI_COMPLETE="bash_complete", **asked))
        return [line.partition(",")[2] for line in told.out.splitlines()]

    assert completed("koboshi", "re") == ["restart", "restore"]
    assert "--version" in completed("koboshi", "--v")
    # Red before: a group that lists by itself had nothing to offer.
    assert completed("koboshi", "turns", "sh") == ["show"]
