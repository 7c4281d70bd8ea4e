"""The command line that was promised: each command by its name, its help, `--json`, and its exit
codes. A name is taken away only after a release that warns."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from koboshi.cli.main import main
from tests.cli.process import KOBOSHI, environment


@dataclass(frozen=True)
class Promise:
    arguments: str = ""
    """What it takes beside options."""
    options: str = "--home --config"
    has_json: bool = True
    asks_owner: bool = True
    """Whether it asks the owner of the home, and says so where there is none yet."""


ROWS = "--home --config --limit --before"
PROMISED = {
    "run": Promise(options="--home --config --supervise", has_json=False, asks_owner=False),
    "init": Promise(has_json=False, asks_owner=False),
    "chat": Promise(has_json=False, asks_owner=False),
    "status": Promise(),
    "sessions list": Promise(options=ROWS),
    "sessions show": Promise("s1"),
    "turns list": Promise(options=ROWS),
    "turns show": Promise("t1"),
    "inbox list": Promise(options=ROWS),
    "inbox show": Promise("m1"),
    "outbox list": Promise(options=ROWS),
    "outbox show": Promise("d1"),
    "processes list": Promise(),
    "processes show": Promise("p1"),
    "explain": Promise("t1"),
    "trace": Promise("some-platform-id"),
    "turns resume": Promise("t1"),
    "turns drop": Promise("t1"),
    "inbox retry": Promise("m1"),
    "inbox drop": Promise("m1"),
    "outbox retry": Promise("d1"),
    "outbox drop": Promise("d1"),
    "outbox release": Promise("d1"),
    "processes log": Promise("p1"),
    "processes kill": Promise("p1"),
    "pairing list": Promise(),
    "pairing approve": Promise("ABCD-EFGH"),
    "pairing deny": Promise("ABCD-EFGH"),
    "doctor": Promise(options="--home --config --fix", asks_owner=False),
    "logs": Promise(has_json=False, asks_owner=False),
    "backup create": Promise(),
    "backup verify": Promise("nowhere.db", options="", asks_owner=False),
    "backup list": Promise(asks_owner=False),
    "restore": Promise("nowhere.db", asks_owner=False),
    "drain": Promise(),
    "stop": Promise(),
    "restart": Promise(),
    "service install": Promise(has_json=False, asks_owner=False),
    "service uninstall": Promise(has_json=False, asks_owner=False),
    "service show": Promise(has_json=False, asks_owner=False),
    "torture": Promise(options="--home", asks_owner=False),
    "config check": Promise(asks_owner=False),
    "config show": Promise(asks_owner=False),
    "version": Promise(options="", asks_owner=False),
}


def found(name: str) -> click.Command:
    context, command = click.Context(main, info_name="koboshi"), main
    for word in name.split():
        assert isinstance(command, click.Group)
        got = command.get_command(context, word)
        assert got is not None, f"there is no `koboshi {name}`"
        command = got  # type: ignore[assignment]
    return command


def ran(*arguments: str, **variables: str | None) -> Result:
    """In this process: a start of its own for each of them would take a minute."""
    return CliRunner().invoke(main, arguments, env=variables)


@pytest.mark.parametrize("name", PROMISED)
def test_each_is_there_with_the_options_that_were_promised(name: str) -> None:
    options = {opt for each in found(name).params for opt in each.opts}
    promise = PROMISED[name]

    assert {*promise.options.split()} <= options
    assert ("--json" in options) or not promise.has_json


@pytest.mark.parametrize("name", PROMISED)
@pytest.mark.parametrize("asked", ["--help", "-h"])
def test_each_says_what_it_does(name: str, asked: str) -> None:
    told = ran(*name.split(), asked)

    assert told.exit_code == 0
    assert told.output.startswith(f"Usage: main {name}")
    words = " ".join((found(name).help or "").split("\n\n")[0].split())
    assert words in " ".join(told.output.split())
    assert words.endswith(".")


@pytest.mark.parametrize("name", [name for name, each in PROMISED.items() if each.asks_owner])
def test_where_no_gateway_ran_yet_that_is_said(name: str, tmp_path: Path) -> None:
    promise = PROMISED[name]
    home = ["--home", str(tmp_path / "home")]

    told = ran(*name.split(), *promise.arguments.split(), *home, "--json")

    assert told.exit_code == 1, told.output
    assert '"type": "no-home"' in told.stdout
    assert "has run in" in told.stdout
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", [name for name, each in PROMISED.items() if each.asks_owner])
def test_a_wrong_configuration_is_told_and_ends_with_78(name: str, tmp_path: Path) -> None:
    arguments = (*name.split(), *PROMISED[name].arguments.split())
    home = ("--home", str(tmp_path / "home"))

    told = ran(*arguments, *home, KOBOSHI__GATEWAY__BUSY="nonsense")

    assert told.exit_code == 78
    assert "gateway.busy must be one of" in told.stderr
    assert told.stdout == ""


@pytest.mark.parametrize("name", ["sessions", "turns", "inbox", "outbox", "processes", "pairing"])
def test_a_command_that_is_not_there_is_told_with_the_nearest(name: str) -> None:
    told = ran(name, "lst")

    assert told.exit_code == 2
    assert 'there is no command "lst"; did you mean "list"?' in told.stderr


def test_an_option_that_is_not_there_is_told_with_the_nearest() -> None:
    told = ran("status", "--jsn")

    assert told.exit_code == 2
    assert "--json" in told.stderr


# ── completion, in a shell ──────────────────────────────────────────────────────────────────────

BASH = """
eval "$(koboshi completion bash)"
complete -p koboshi
complete_words() {
    COMPREPLY=() COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _koboshi_completion koboshi
    echo "${COMPREPLY[@]}"
}
complete_words koboshi ba
complete_words koboshi backup ve
complete_words koboshi status --js
"""
ZSH = """
autoload -U compinit && compinit -u -D
eval "$(koboshi completion zsh)"
print ${_comps[koboshi]}
"""
FISH = 'koboshi completion fish | source; complete -C"koboshi ba"; complete -C"koboshi backup ve"'


def in_shell(shell: str, program: str, tmp_path: Path, *options: str) -> list[str]:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed here")
    variables = environment(tmp_path)
    variables["PATH"] = f"{Path(KOBOSHI).parent}:{variables['PATH']}"
    told = subprocess.run(
        [found, *options, "-c", program],
        env={**variables, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    named, *completed = in_shell("bash", BASH, tmp_path, "--norc")

    assert "_koboshi_completion" in named
    assert completed == ["backup", "verify", "--json"]


def test_zsh_completes(tmp_path: Path) -> None:
    assert in_shell("zsh", ZSH, tmp_path, "-f") == ["_koboshi_completion"]


def test_fish_completes_commands(tmp_path: Path) -> None:
    names = [line.split("\t")[0] for line in in_shell("fish", FISH, tmp_path, "--no-config")]

    assert names == ["backup", "verify"]
