"""What ended the gateway, and the exit code that follows from it."""

import fcntl
import threading
from pathlib import Path

import pytest

from koboshi.cli import shutdown
from koboshi.cli.holders import LOCK_NAME
from koboshi.cli.run import ending_of, has_bug, is_serviced
from koboshi.config import Config
from koboshi.domain.errors import ChannelUnusable, HomeHeld, StoreFailed, StoreRefused

HOME = Path("/a/home")


def test_errors_that_a_person_mends_end_it_with_78() -> None:
    for error in (HomeHeld("held"), StoreRefused("foreign"), ChannelUnusable("port")):
        assert ending_of(error, HOME, is_serviced=False) == (78, str(error))


def test_only_a_held_home_is_worth_a_restart_by_a_service_manager() -> None:
    assert ending_of(HomeHeld("held"), HOME, is_serviced=True) == (75, "held")
    assert ending_of(StoreRefused("foreign"), HOME, is_serviced=True) == (78, "foreign")


def test_a_failed_store_counts_before_everything_that_came_with_it() -> None:
    group = ExceptionGroup(
        "", [ValueError("a bug"), ExceptionGroup("", [StoreFailed("gone")]), ChannelUnusable("x")]
    )

    assert ending_of(group, HOME, is_serviced=False) == (74, "gone; start me again")
    assert has_bug(group, HOME), "and what came with it is not lost"


def test_a_bug_counts_before_a_wrong_set_up() -> None:
    group = ExceptionGroup("", [ChannelUnusable("port"), ValueError("a bug")])

    assert ending_of(group, HOME, is_serviced=False) is None


@pytest.mark.parametrize(
    "error,code",
    [
        (PermissionError(13, "Permission denied", "/a/home/koboshi.lock"), 78),
        (IsADirectoryError(21, "Is a directory", "/a/home/web-token"), 78),
        (OSError(28, "No space left on device", "/a/home/web-token"), 74),
        (OSError(5, "Input/output error", "/a/home/koboshi.lock"), 74),
    ],
)
def test_a_file_of_the_home_that_fails_is_named(error: OSError, code: int) -> None:
    ending = ending_of(error, HOME, is_serviced=False)

    assert ending is not None
    assert ending[0] == code
    assert error.filename in ending[1]


def test_a_file_elsewhere_that_fails_is_a_bug() -> None:
    error = PermissionError(13, "Permission denied", "/elsewhere")

    assert ending_of(error, HOME, is_serviced=False) is None
    assert ending_of(ConnectionResetError(), HOME, is_serviced=False) is None


def test_without_a_variable_there_is_no_service_manager() -> None:
    assert not is_serviced({})


def test_a_stop_is_over_when_the_home_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`koboshi stop` returned when the gateway answered no more; a restore right after it met a
    home that was still held."""
    looks, is_looking, events = iter(range(1_000_000)), threading.Event(), list[str]()

    def no_answer(config: Config) -> None:
        if next(looks) == 2:
            is_looking.set()

    def wait() -> None:
        shutdown._wait(Config(home=tmp_path), "stop", 1)
        events.append("it has stopped")

    monkeypatch.setattr(shutdown, "_boot", no_answer)
    monkeypatch.setattr(shutdown, "LOOK_SECONDS", 0.001)
    with (tmp_path / LOCK_NAME).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=wait)
        waiting.start()
        is_looking.wait(10)
        events.append("it gives its home back")
    waiting.join()

    assert events == ["it gives its home back", "it has stopped"]
