"""`koboshi status` in words for people, from what the owner of the home answers."""

from datetime import UTC

import pytest

from koboshi import __version__
from koboshi.cli.inspect import render_status
from koboshi.cli.options import CommandFailure

NOW_MS = 1_800_000_000_000
STATES = ["queued", "running", "waiting", "suspended", "answered"]


def worker(number: int, **changes: object) -> dict[str, object]:
    """A boot of ten minutes ago."""
    return {
        "worker_id": number,
        "host": "h",
        "pid": 100 + number,
        "birth": "b",
        "version": __version__,
        "started_ms": NOW_MS - 600_000,
        "heartbeat_ms": NOW_MS - 1_000,
        "is_draining": False,
        "ended_ms": None,
        "ended_how": None,
        **changes,
    }


def rendered(**changes: object) -> list[str]:
    answer = {
        "ok": True,
        "home": "/h",
        "is_running": True,
        "trouble": None,
        "worker": worker(2),
        "previous": None,
        "turns": dict.fromkeys(STATES, 0),
        "inbox_waiting": 0,
        "outbox_unsettled": 0,
        "sessions": 0,
        "sqlite": "3",
        **changes,
    }
    return render_status(answer, NOW_MS, UTC).splitlines()


def test_the_headline_says_since_when_and_how_long() -> None:
    expected = f"koboshi {__version__} is running as pid 102, since 2027-01-15 07:50:00 (10 min)"

    assert rendered()[0] == expected


def test_a_gateway_that_stops_is_said_to() -> None:
    assert " is stopping as pid 102, " in rendered(worker=worker(2, is_draining=True))[0]


def test_a_gateway_of_another_version_is_pointed_out() -> None:
    """Issue 13, A6: one that is too old to notice by itself that its files have changed."""
    words = f"restart    koboshi 0.0.9 runs, and this is {__version__}: `koboshi restart`"

    assert words in rendered(worker=worker(2, version="0.0.9"))
    assert not any(line.startswith("restart") for line in rendered())


def test_a_gateway_that_wants_a_restart_says_why() -> None:
    """Issue 13, A6."""
    words = "koboshi 1 runs, and 2 is installed"

    assert f"restart    {words}: `koboshi restart`" in rendered(restart=words)


def test_what_is_open_and_owed_is_counted() -> None:
    turns = {"queued": 1, "running": 2, "waiting": 0, "suspended": 3, "answered": 1}

    lines = rendered(turns=turns, inbox_waiting=1, outbox_unsettled=1)

    assert (
        "turns      1 in the queue, 2 being worked on, 3 set aside, "
        "1 answered, and the answer is on its way"
    ) in lines
    assert "waiting    1 message" in lines
    assert "to send    1 delivery" in lines


def test_turns_are_counted_by_where_they_stand() -> None:
    """Issue 13, B8: red before, what the boot breaker held back was counted as running."""
    stands = {"queued": 0, "running": 1, "held-back": 2, "interrupted": 0}

    lines = rendered(turns={"queued": 0, "running": 3}, stands=stands)

    words = "1 being worked on, 2 held back: the gateway keeps dying"
    assert f"turns      {words}" in lines


def test_trouble_is_told_and_cannot_command_the_terminal() -> None:
    assert rendered(trouble="full\x1b[2J")[-1] == "trouble    full\\x1b[2J"
    assert not any(line.startswith("trouble") for line in rendered())


def test_a_gateway_that_cannot_write_any_more_is_in_trouble() -> None:
    silent = worker(2, heartbeat_ms=NOW_MS - 40_000)
    words = "trouble    nothing could be written for 40 s; the disk may be stuck"

    assert rendered(worker=silent)[-1] == words
    assert words not in rendered(worker=silent, is_running=False)


@pytest.mark.parametrize(
    "how,words",
    [
        ("stopped", "was stopped as asked"),
        ("leftovers", "was stopped as asked and set its unfinished turns down"),
        ("restart", "ended to start again"),
    ],
)
def test_how_the_previous_boot_ended(how: str, words: str) -> None:
    previous = worker(1, ended_ms=NOW_MS - 700_000, ended_how=how)

    assert rendered(previous=previous)[2] == f"before     boot 1 {words} at 2027-01-15 07:48:20"


def test_a_boot_that_no_one_buried_was_killed() -> None:
    lines = rendered(is_running=False)

    assert lines[0] == "koboshi is not running"
    assert lines[2] == (
        "last       boot 2 was killed; its last sign of life was at 2027-01-15 07:59:59"
    )


def test_an_answer_of_another_version_is_no_traceback() -> None:
    with pytest.raises(CommandFailure, match="another version"):
        rendered(turns="many")
