"""SIGHUP: the configuration as it is now, if it can be used, without losing anything."""

import signal
from pathlib import Path

import pytest

from tests.cli.process import child_of, gateway, is_there, koboshi, until
from tests.harness.rows import read_rows

WRONG = '[gateway]\nbusy = "sometimes"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"


def write(home: Path, text: str) -> None:
    (home / "koboshi.toml").write_text(text)


def test_a_hangup_starts_it_again_with_what_was_written_since(home: Path) -> None:
    with gateway(home) as one:
        message = one.say("ann", "echo before")
        one.wait_state(message, "done")
        write(home, "[gateway]\nmax_turns = 3\n")
        one.signal(signal.SIGHUP)
        one.wait_serving(times=2)

        assert one.events("reload_begun")
        one.wait_state(one.say("ann", "echo after"), "done")
        assert one.stop() == 0
    assert [row["ended_how"] for row in read_rows(home).of("workers")] == ["restart", "stopped"]


def test_a_wrong_configuration_is_told_and_the_old_one_goes_on(home: Path) -> None:
    with gateway(home) as one:
        write(home, WRONG)
        one.signal(signal.SIGHUP)
        (refused,) = until(lambda: one.events("reload_refused"), "it says what is wrong")
        assert "gateway.busy must be one of" in refused["reason"]
        assert "koboshi.toml line 2" in refused["reason"]

        write(home, "")
        assert koboshi("status", "--json", home=home).document["worker"]["worker_id"] == 1
        one.wait_state(one.say("ann", "echo still here"), "done")


def test_under_a_parent_it_ends_and_is_started_by_it(home: Path) -> None:
    """It must not replace itself there: it would lose the line that tells it of its parent's end,
    and stay behind when that is killed."""
    with gateway(home, "--supervise") as parent:
        first = child_of(parent)
        parent.signal(signal.SIGHUP)
        parent.wait_serving(times=2)

        second = child_of(parent)
        assert second != first
        parent.kill()
        until(lambda: not is_there(second), "the gateway ends with its parent")
