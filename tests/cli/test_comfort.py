"""What makes the command line pleasant: lists without a command, any id, a live view, a dry run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.process import Gateway, gateway, koboshi


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway(tmp_path_factory.mktemp("comfort") / "home") as made:
        made.wait_state(made.say("ann", "run echo hello"), "done")
        made.wait_state(made.say("ann", "ask me which way: left or right"), "waiting")
        yield made


LISTED = "turns inbox outbox sessions browsers rules cron goals memory backup".split()


@pytest.mark.parametrize("name", LISTED)
def test_a_group_without_a_command_lists(one: Gateway, name: str) -> None:
    bare, listed = (
        koboshi(name, "--json", home=one.home),
        koboshi(name, "list", "--json", home=one.home),
    )
    assert bare.document["ok"] is True
    assert bare.document == listed.document
    assert koboshi(name, home=one.home).code == 0


@pytest.mark.parametrize("what", ["m1", "t1", "d1", "p1", "s1"])
def test_trace_takes_any_id(one: Gateway, what: str) -> None:
    told = koboshi("trace", what, home=one.home)
    assert told.code == 0, told.err
    assert ("which way" if what == "s1" else "run echo hello") in told.out


def test_top_shows_turns_and_rates_once(one: Gateway) -> None:
    told = koboshi("top", "--once", home=one.home)
    assert told.code == 0, told.err
    for words in ("up ", "waiting for an answer", "last hour:", "t2", "web:main ann"):
        assert words in told.out
    # What there is none of is not counted out.
    assert "turns: 1 waiting for people" in told.out
    assert "held back" not in told.out


def test_install_can_only_say_what_it_would_do(one: Gateway, tmp_path: Path) -> None:
    folder = tmp_path / "units"
    told = koboshi(
        "service",
        "install",
        "--user",
        "--kind",
        "systemd",
        "--dry-run",
        home=one.home,
        XDG_CONFIG_HOME=str(folder),
    )
    assert told.code == 0, told.err
    assert "would be written:" in told.out
    assert "[Service]" in told.out
    assert "would run: systemctl" in told.out
    assert not folder.exists()
