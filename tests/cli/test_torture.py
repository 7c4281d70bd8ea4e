"""`koboshi torture`: it kills, it counts, it sees what is wrong, and leaves nothing behind."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from koboshi.boundary.probe import probe
from tests.cli.process import KOBOSHI, Ended, environment, is_there, koboshi, until
from tests.harness import nursery

WITHIN_S = 90.0

DONE = "SELECT entry_id FROM inbox JOIN turns USING (turn_id) WHERE turns.state = 'done'"


@dataclass(frozen=True, slots=True)
class Place:
    """A person's machine: a home that is theirs, and a folder for what is temporary."""

    home: Path
    temporary: Path

    def torture(self, *arguments: str) -> Ended:
        """Run one to its end. It is forked: the second that a command takes to load is spared."""
        out, err = self.home.with_name("out"), self.home.with_name("err")
        for file in (out, err):
            file.unlink(missing_ok=True)
        env = environment(self.home, TMPDIR=str(self.temporary))
        process = nursery.start("koboshi", ["torture", *arguments], env, out, err)
        code = process.wait(WITHIN_S)
        return Ended(code, out.read_text(), err.read_text())

    @contextmanager
    def torturing(self, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
        """One that goes on in the background; it is gone after the block."""
        process = subprocess.Popen(
            [KOBOSHI, "torture", *arguments],
            env=environment(self.home, TMPDIR=str(self.temporary)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def databases(self) -> list[Path]:
        """Those of the throw-away homes."""
        return sorted(self.temporary.rglob("home/koboshi.db"))

    def processes(self) -> list[int]:
        """All that live and have to do with the throw-away homes."""
        mark = str(self.temporary).encode()
        numbers = [each for each in Path("/proc").iterdir() if each.name.isdigit()]
        return [
            int(each.name) for each in numbers if _names(each, mark) and is_there(int(each.name))
        ]


def _names(process: Path, mark: bytes) -> bool:
    try:
        return mark in (process / "cmdline").read_bytes()
    except OSError:
        return False


@pytest.fixture
def place(tmp_path: Path) -> Place:
    home, temporary = tmp_path / "mine", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    (home / "koboshi.toml").write_text("this is no configuration")
    return Place(home, temporary)


def test_a_short_torture_is_clean_and_leaves_nothing(place: Place) -> None:
    """Also where the home of the user is broken: it is not looked at, and not touched."""
    told = place.torture("--lives", "4", "--seed", "3", "--homes", "1", "--json")

    assert told.code == 0, told.out + told.err
    said = told.document
    assert (said["ok"], said["complete"], said["seed"], said["lives"]) == (True, True, 3, 4)
    assert (said["lost"], said["doubled"], said["ran_twice"]) == (0, 0, 0)
    assert said["violations"] == []
    assert sum(said["kills_by_place"].values()) == said["kills"]
    assert said["messages"] >= said["answers"] > 0
    assert said["platform_messages"] >= said["platform_answers"] > 0
    assert set(said) >= {"platform_mishaps", "platform_copies_labelled", "rights_taken"}
    assert said["kept"] is None
    assert set(said["commands_inside"]) == {probe().best}, "its commands run inside the boundary"
    assert told.err == ""
    assert [each.name for each in place.home.iterdir()] == ["koboshi.toml"]
    assert list(place.temporary.iterdir()) == []
    assert place.processes() == []


def test_the_tally_is_told_in_lines(place: Place) -> None:
    told = place.torture("--lives", "3", "--seed", "4", "--at", "random", "--homes", "1", "--keep")

    assert told.code == 0, told.out + told.err
    lines = [re.split(" {2,}", line.strip(), maxsplit=1) for line in told.out.splitlines()]
    values = {line[0]: line[1] for line in lines if len(line) == 2}
    asked_for = ("lives", "kills by place", "at random", "lost", "doubled", "commands run twice")
    assert [values[name] for name in asked_for] == ["3", "3", "3", "0", "0", "0"]
    assert int(values["messages"].split()[0]) >= int(values["answers"].split()[0])
    assert " answered or told, " in values["on the bot platform"]
    assert int(values["rights taken away"]) <= 3
    assert values["repeat it"] == "koboshi torture --lives 3 --at random --homes 1 --seed 4"
    (kept,) = place.temporary.iterdir()
    assert f"The homes are kept in {kept}" in told.out
    assert place.databases() == [kept / "1" / "home" / "koboshi.db"]


def test_minutes_end_it_too(place: Place) -> None:
    told = place.torture("--minutes", "0.02", "--homes", "1", "--json")

    assert told.code == 0, told.out + told.err
    assert told.document["complete"] is True
    assert told.document["lives"] >= 1


@pytest.mark.parametrize(
    "statement,faults",
    [
        # The one who had not heard that it was taken posts it again, and is answered twice.
        ("DELETE FROM inbox WHERE entry_id = :entry", {"lost", "doubled"}),
        (
            "INSERT INTO outbox (session_id, turn_id, cause, part, parts, text, anchor, state, "
            "created_ms, changed_ms) SELECT session_id, turn_id, 'step:' || (9000000 + part), 1, "
            "1, text, anchor, 'owed', created_ms, changed_ms FROM outbox "
            "WHERE turn_id = (SELECT turn_id FROM inbox WHERE entry_id = :entry) AND part = 1 "
            "AND cause LIKE 'step:%' LIMIT 1",
            {"doubled"},
        ),
    ],
    ids=["a stored message vanishes", "an answer is owed once more"],
)
def test_a_planted_fault_is_seen(place: Place, statement: str, faults: set[str]) -> None:
    """A person meddles with the database of the throw-away gateway while it is tortured."""
    with place.torturing("--lives", "4", "--homes", "1", "--seed", "5", "--json") as process:
        until(lambda: meddle(place, statement), "something is answered", within_s=WITHIN_S)
        out, err = process.communicate(timeout=WITHIN_S)

    said = json.loads(out)
    assert process.returncode == 1, err
    assert said["ok"] is False
    assert faults & {each["fault"] for each in said["violations"]}
    assert said["seed"] == 5
    assert Path(said["kept"], "1", "home", "koboshi.db").exists()


def meddle(place: Place, statement: str) -> bool:
    """Change a row about a message that was answered; False while there is none. It is another
    process that has the database open, so nothing of its locks is ours to lose."""
    for path in place.databases():
        connection = apsw.Connection(str(path))
        try:
            connection.set_busy_timeout(5_000)
            if not connection.table_exists("main", "inbox"):
                return False
            found = connection.execute(f"{DONE} AND kind = 'message' LIMIT 1").fetchone()
            if found is not None:
                connection.execute(statement, {"entry": found[0]})
                return connection.changes() == 1
        except apsw.BusyError:
            return False
        finally:
            connection.close()
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_early_in_order(place: Place, number: signal.Signals) -> None:
    with place.torturing("--lives", "5000", "--seed", "6", "--homes", "2") as process:
        until(place.databases, "it has begun", within_s=WITHIN_S)
        process.send_signal(number)
        out, err = process.communicate(timeout=WITHIN_S)

    assert process.returncode == 0, err
    assert "It was ended early" in out
    assert "koboshi torture --lives 5000 --homes 2" in out
    assert "Traceback" not in err
    assert place.processes() == []
    assert list(place.temporary.iterdir()) == []


def test_no_gateway_outlives_a_torture_that_is_killed(place: Place) -> None:
    with place.torturing("--lives", "5000", "--homes", "2") as process:
        until(place.databases, "it has begun", within_s=WITHIN_S)
        process.kill()
        process.communicate()

    until(lambda: not place.processes(), "everything is gone", within_s=WITHIN_S)


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--lives", "0"], "0 is not in the range"),
        (["--lives", "many"], "'many' is not a valid integer"),
        (["--minutes", "-1"], "-1.0 is not in the range"),
        (["--minutes", "nan"], "nan is not in the range"),
        (["--seed", "x"], "'x' is not a valid integer"),
        (["--homes", "0"], "0 is not in the range"),
        (["--at", "noon"], "'noon' is not one of"),
    ],
)
def test_a_bad_value_is_named(place: Place, arguments: list[str], words: str) -> None:
    told = place.torture(*arguments)

    assert told.code == 2
    assert words in told.err
    assert list(place.temporary.iterdir()) == []


def test_the_home_of_a_gateway_is_never_tortured(place: Place) -> None:
    for where in (place.home, place.home / "inside"):
        told = place.torture("--home", str(where))

        assert told.code == 78
        assert "which is never tortured" in told.err
    assert [each.name for each in place.home.iterdir()] == ["koboshi.toml"]


def test_a_temporary_folder_inside_the_home_is_not_used(place: Place) -> None:
    told = koboshi("torture", home=place.home, TMPDIR=str(place.home))

    assert told.code == 78
    assert "which is never tortured" in told.err


def test_a_folder_with_something_in_it_is_refused(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "letter").touch()

    told = place.torture("--home", str(folder), "--json")

    assert told.code == 78
    assert told.document["error"]["type"] == "home"
    assert "is not empty" in told.document["error"]["message"]
    assert os.listdir(folder) == ["letter"]
