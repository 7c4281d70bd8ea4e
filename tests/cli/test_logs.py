"""`koboshi logs`: the log where there is one, and where it went where there is none."""

from pathlib import Path

import pytest

from koboshi.cli.logs import Elsewhere, Journal, LogFile, command_for, source_of
from tests.cli.process import gateway, koboshi


def test_the_file_that_a_gateway_logs_to_is_shown(tmp_path: Path) -> None:
    with gateway(tmp_path / "home") as one:
        one.wait_state(one.say("ann", "echo hello"), "done")
        shown = koboshi("logs", "-n", "5000", home=one.home)
        last = koboshi("logs", "-n", "1", home=one.home)

    assert shown.code == 0, shown.err
    assert '"event": "gateway_started"' in shown.out
    assert len(last.out.splitlines()) == 1


def test_without_a_gateway_it_says_how_to_have_a_log(tmp_path: Path) -> None:
    told = koboshi("logs", home=tmp_path)

    assert told.code == 1
    assert "koboshi service install" in told.err


@pytest.mark.parametrize(
    "stderr, units, found",
    [
        (None, [True], Journal(True)),
        ("socket:[123]", [False, True], Journal(False)),
    ],
)
def test_where_systemd_runs_it_the_journal_has_it(
    stderr: str | None, units: list[bool], found: Journal
) -> None:
    assert source_of(stderr, units, 1) == found


@pytest.mark.parametrize(
    "stderr, words", [("/dev/pts/3", "a terminal"), ("pipe:[9]", "a pipe"), (None, "cannot be")]
)
def test_what_only_another_person_has_is_said(stderr: str | None, words: str) -> None:
    source = source_of(stderr, [], 7)

    assert isinstance(source, Elsewhere)
    assert words in source.words
    assert "pid 7" in source.words


def test_the_programs_are_asked_for_what_is_wanted() -> None:
    assert command_for(Journal(True), 9, follow=True) == [
        *("journalctl", "--user", "--unit", "koboshi.service", "--lines", "9", "--follow")
    ]
    assert command_for(LogFile(Path("-x")), 9, follow=False) == ["tail", "-n", "9", "--", "-x"]
