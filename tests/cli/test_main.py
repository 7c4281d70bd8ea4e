"""`koboshi` itself: what it can do, and what it says to a person who mistypes."""

import platform

import click
import pytest

from koboshi import __version__
from koboshi.cli.main import main
from tests.cli.process import koboshi

COMMANDS = "run chat status explain config version".split()


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_names_every_command(arguments: list[str]) -> None:
    told = koboshi(*arguments)

    shown = told.out + told.err
    assert "Traceback" not in shown
    assert all(f"\n  {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize("command", [*COMMANDS, "config check", "config show"])
def test_every_command_explains_itself(command: str) -> None:
    told = koboshi(*command.split(), "--help")

    assert told.code == 0
    assert told.out.startswith("Usage: ")


def test_no_line_of_a_list_of_commands_is_cut_off() -> None:
    """At 80 columns, as most terminals have; click leaves two of them free."""
    cut: list[str] = []

    def look(command: click.Command, path: tuple[str, ...]) -> None:
        if not isinstance(command, click.Group):
            return
        context = click.Context(command, info_name=" ".join(path), terminal_width=78)
        told = command.get_help(context).partition("Commands:")[2]
        cut.extend(f"{path}: {line}" for line in told.splitlines() if line.endswith("..."))
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            look(found, (*path, name))

    look(main, ("koboshi",))
    assert cut == []


@pytest.mark.parametrize("typed,meant", [("statsu", "status"), ("explan", "explain")])
def test_a_mistyped_command_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    told = koboshi(typed)

    assert told.code == 2
    assert f'there is no command "{typed}"; did you mean "{meant}"?' in told.err


def test_a_word_that_is_near_nothing_gets_no_guess() -> None:
    told = koboshi("zzzzzz")

    assert told.code == 2
    assert 'there is no command "zzzzzz"\n' in told.err


def test_version_names_everything_it_runs_on() -> None:
    told = koboshi("version")

    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[0] == f"koboshi {__version__}"
    assert lines[1] == f"Python {platform.python_version()}"
    assert lines[2].startswith("SQLite 3.")
    assert platform.system() in lines[3]


def test_version_for_programs_is_one_document() -> None:
    told = koboshi("version", "--json")

    assert told.code == 0
    assert list(told.document) == ["ok", "koboshi", "python", "sqlite", "apsw", "platform"]
    assert told.document["koboshi"] == __version__


def test_the_version_is_found_where_people_look_first() -> None:
    assert koboshi("--version").out == f"koboshi {__version__}\n"


def test_a_terminal_of_few_letters_is_no_reason_to_fail() -> None:
    told = koboshi("explain", "«»", home=None, PYTHONIOENCODING="ascii", KOBOSHI_HOME="/nowhere/«»")

    assert told.code == 1
    assert "Traceback" not in told.err
