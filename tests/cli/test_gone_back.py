"""A database that went back in time alone: noticed, told, and nothing owed is sent by itself."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from koboshi.stores.faults import VARIABLE
from tests.cli.home_rows import beats, outbox
from tests.cli.paced import OFTEN
from tests.cli.process import Ended, Gateway, gateway, koboshi, starting, until

DATABASE = ("koboshi.db", "koboshi.db-wal")
WENT_BACK = "the database went back"


def wait_beats(home: Path, count: int = 2) -> None:
    """Wait for so many further heartbeats: with the second, whatever the first was to leave
    behind is there."""
    for _ in range(count):
        before = beats(home)
        until(lambda seen=before: beats(home) > seen, "a heartbeat")  # type: ignore[misc]


def keep_database(home: Path, folder: Path) -> None:
    """A snapshot of the database alone."""
    folder.mkdir()
    for name in DATABASE:
        if (home / name).exists():
            shutil.copyfile(home / name, folder / name)


def put_back(home: Path, folder: Path) -> None:
    for path in home.glob("koboshi.db*"):
        path.unlink()
    for path in folder.iterdir():
        shutil.copyfile(path, home / path.name)


def with_an_owed_answer(home: Path) -> None:
    with starting(home, command=OFTEN, **{VARIABLE: "outbox.claim:before"}) as one:
        one.say("ann", "echo the answer")
        assert one.wait_end() == -signal.SIGKILL


def gone_back(tmp_path: Path) -> Path:
    """A home whose database was put back to where the first answer was still owed."""
    home = tmp_path / "home"
    with_an_owed_answer(home)
    keep_database(home, tmp_path / "snapshot")
    with gateway(home, command=OFTEN) as one:
        one.wait_state(one.say("ann", "echo another"), "done")
        until(lambda: outbox(home)[0][0] == "delivered", "the first answer arrived")
        wait_beats(home)
        one.kill()
    put_back(home, tmp_path / "snapshot")
    return home


def told(home: Path) -> tuple[Ended, Ended]:
    return koboshi("status", home=home), koboshi("doctor", home=home)


def page_says(one: Gateway) -> str:
    troubles: list[dict[str, str]] = one.asked(ask="troubles")["troubles"]
    return "\n".join(each["words"] for each in troubles)


def test_nothing_owed_is_sent_by_itself_and_the_operator_is_told(tmp_path: Path) -> None:
    """Issue 12, A7: the log, the status, the doctor and the page say what is gone, until what is
    held was released; the one who writes meanwhile is answered as usual."""
    home = gone_back(tmp_path)

    with gateway(home, command=OFTEN) as one:
        one.wait_state(one.say("ann", "echo a third"), "done")
        assert outbox(home)[0] == ("held", 0), "it was sent by itself"
        (warning,) = [each["warning"] for each in one.events("startup_warning")]
        status, doctor = told(home)
        for words in (warning, status.out, doctor.out, page_says(one)):
            assert WENT_BACK in words
            assert "journal line" in words
        assert "1 held" in status.out
        assert one.asked(ask="status")["trouble"] is None, "it is ready all the same"
        assert koboshi("outbox", "release", "--all", "--json", home=home).document["released"] == 1
        until(lambda: outbox(home)[0][0] == "delivered", "it is delivered")
        status, doctor = told(home)
        for words in (status.out, doctor.out, page_says(one)):
            assert WENT_BACK not in words
    assert outbox(home)[0] == ("delivered", 1), "it says that it may be a duplicate"


def lose_log(home: Path) -> None:
    (home / "koboshi.db-wal").unlink()


def cut_log(home: Path) -> None:
    log = home / "koboshi.db-wal"
    os.truncate(log, log.stat().st_size // 2)


def lose_all(home: Path) -> None:
    for path in home.glob("koboshi.db*"):
        path.unlink()


@pytest.mark.parametrize("harm", [lose_log, cut_log, lose_all])
def test_a_lost_log_is_noticed(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """Issue 12, A7: the log of the database is gone or cut short, or all of it is."""
    home = tmp_path / "home"
    with gateway(home, command=OFTEN) as one:
        one.wait_state(one.say("ann", "echo one"), "done")
        one.stop()
    with gateway(home, command=OFTEN) as one:
        for number in range(3):
            one.wait_state(one.say("ann", f"echo {number}"), "done")
        wait_beats(home)
        one.kill()
    harm(home)

    with gateway(home, command=OFTEN) as one:
        assert WENT_BACK in koboshi("status", home=home).out
        (warning,) = one.events("startup_warning")
        assert WENT_BACK in warning["warning"]
        one.wait_state(one.say("ann", "echo again"), "done")
        wait_beats(home)
        one.kill()
    with gateway(home, command=OFTEN) as one:
        assert [each["warning"] for each in one.events("startup_warning")] == [warning["warning"]]
        assert koboshi("outbox", "release", "--all", home=home).code == 0
        assert WENT_BACK not in koboshi("status", home=home).out
        one.kill()
    with gateway(home, command=OFTEN) as one:
        assert not one.events("startup_warning"), "it is settled"


@pytest.mark.crash
@pytest.mark.parametrize("point", ["witness.hold:before", "witness.hold:after"])
def test_a_start_that_is_killed_over_it_lets_nothing_out(tmp_path: Path, point: str) -> None:
    """Issue 12, A7: killed before it is held, the next start notices again; killed after, it is
    held. It is told in either case, and once."""
    home = gone_back(tmp_path)
    with starting(home, command=OFTEN, **{VARIABLE: point}) as one:
        assert one.wait_end() == -signal.SIGKILL
    if point.endswith("before"):
        with starting(home, command=OFTEN, **{VARIABLE: point}) as one:
            assert one.wait_end() == -signal.SIGKILL, "it has noticed again"

    with gateway(home, command=OFTEN) as one:
        one.wait_state(one.say("ann", "echo a third"), "done")
        assert outbox(home)[0] == ("held", 0)
        (warning,) = [each["warning"] for each in one.events("startup_warning")]
        assert WENT_BACK in warning
        assert page_says(one).count(WENT_BACK) == 1


def test_a_home_that_was_copied_whole_is_taken_as_it_is(tmp_path: Path) -> None:
    """Issue 12, A7: witness and database are in step; and so they are after any kill."""
    home, copy = tmp_path / "home", tmp_path / "copy"
    with_an_owed_answer(home)
    with gateway(home, command=OFTEN) as one:
        until(lambda: outbox(home)[0][0] == "delivered", "the first answer arrived")
        wait_beats(home)
        one.kill()
    shutil.copytree(home, copy, ignore=shutil.ignore_patterns("*.sock"))

    for place in (home, copy):
        with gateway(place, command=OFTEN) as one:
            assert not one.events("startup_warning")
            assert WENT_BACK not in koboshi("status", home=place).out


def test_a_restore_is_no_surprise(tmp_path: Path) -> None:
    """Issue 12, A7: the one who restored a backup knows that the database went back."""
    home, file = tmp_path / "home", tmp_path / "backup.db"
    with_an_owed_answer(home)
    assert koboshi("backup", "create", "--to", str(file), home=home).code == 0
    with gateway(home, command=OFTEN) as one:
        one.wait_state(one.say("ann", "echo another"), "done")
        wait_beats(home)
        one.kill()
    assert koboshi("restore", str(file), home=home).code == 0

    with gateway(home, command=OFTEN) as one:
        assert not one.events("startup_warning")
        assert WENT_BACK not in koboshi("status", home=home).out


def test_a_whole_home_from_elsewhere_is_started_with_its_outbox_held(tmp_path: Path) -> None:
    """Issue 12, A7: only the operator can know that all of it is old. It holds for that start: a
    newer delivery is sent, also by a gateway that the same parent had to start again."""
    home = tmp_path / "home"
    with_an_owed_answer(home)

    died = {VARIABLE: "outbox.claim:before:2"}
    with gateway(home, "--hold-outbox", "--supervise", command=OFTEN, **died) as one:
        one.wait_state(one.say("ann", "echo another"), "done")
        one.say("ann", "echo a third")
        one.wait_serving(times=2)
        until(lambda: [state for state, _ in outbox(home)][2:] == ["delivered"], "it is sent")
        assert outbox(home) == [("held", 0), ("delivered", 0), ("delivered", 0)]
        assert "1 held" in koboshi("status", home=home).out
        warnings = [each["warning"] for each in one.events("startup_warning")]
        assert warnings == ["1 held: `koboshi outbox release` sends what is held"] * 2
        koboshi("outbox", "release", "d1", home=home)
        until(lambda: outbox(home)[0] == ("delivered", 1), "it is sent, and says what it may be")
