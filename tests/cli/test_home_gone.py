"""A home that is removed or replaced under a running gateway: it leaves, and says why."""

import http.client
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.home_rows import beats, outbox
from tests.cli.paced import OFTEN, SELDOM
from tests.cli.process import Gateway, gateway, koboshi, until
from tests.harness.rows import read_rows

STORAGE_FAILED = 74


def remove(home: Path) -> None:
    shutil.rmtree(home)


def move(home: Path) -> None:
    home.rename(home.with_name("elsewhere"))


def move_and_make_anew(home: Path) -> None:
    move(home)
    shutil.copytree(home.with_name("elsewhere"), home, ignore=shutil.ignore_patterns("*.sock"))


def replace_database(home: Path) -> None:
    copy = home / "copy.db"
    shutil.copyfile(home / "koboshi.db", copy)
    copy.rename(home / "koboshi.db")


def remove_log(home: Path) -> None:
    (home / "koboshi.db-wal").unlink()


def remove_lock(home: Path) -> None:
    (home / "koboshi.lock").unlink()


HARMS = [remove, move, move_and_make_anew, replace_database, remove_log, remove_lock]


def leaves(one: Gateway) -> None:
    assert one.wait_end() == STORAGE_FAILED, one.err
    (failed,) = one.events("store_failed")
    last = one.err.strip().splitlines()[-1]
    for words in (str(failed["error"]), last):
        assert "while it was in use" in words, one.err
        assert str(one.home) in words
    assert not one.events("gateway_broke"), one.err


@pytest.mark.parametrize("harm", HARMS)
def test_an_idle_gateway_leaves_within_a_heartbeat(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """Issue 12, A8: no one writes to it; its own heartbeat notices."""
    home = tmp_path / "home"
    with gateway(home, command=OFTEN) as one:
        one.wait_state(one.say("ann", "echo one"), "done")
        harm(home)

        leaves(one)


@pytest.mark.parametrize("harm", HARMS)
def test_nothing_is_acknowledged_from_then_on(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """Issue 12, A8: the very next message is not taken, whatever the heartbeat knows by then."""
    home = tmp_path / "home"
    with gateway(home, command=SELDOM) as one:
        one.wait_state(one.say("ann", "echo one"), "done")
        until(lambda: {state for state, _ in outbox(home)} == {"delivered"}, "it is at rest")
        token = (home / "web-token").read_text().strip()
        harm(home)

        assert not is_taken(one, token, "echo two")
        leaves(one)


def is_taken(one: Gateway, token: str, text: str) -> bool:
    """Whether a message is acknowledged."""
    host, port = one.wait_serving()
    connection = http.client.HTTPConnection(host, port, timeout=30)
    headers = {
        "Authorization": f"Bearer {token}",
        "Idempotency-Key": "two",
        "Content-Type": "application/json",
    }
    try:
        connection.request(
            "POST", "/api/v1/sessions/ann/messages", json.dumps({"text": text}), headers
        )
        return connection.getresponse().status == 202
    except (http.client.HTTPException, OSError):
        return False
    finally:
        connection.close()


def test_of_two_gateways_on_one_home_the_first_leaves(tmp_path: Path) -> None:
    """Issue 12, A8: the lock was removed, and another gateway took the home. What the first is
    told is not acknowledged; what the second is told stays, and its socket, too."""
    home = tmp_path / "home"
    with gateway(home, command=SELDOM) as first:
        first.wait_state(first.say("ann", "echo one"), "done")
        until(lambda: {state for state, _ in outbox(home)} == {"delivered"}, "it is at rest")
        token = (home / "web-token").read_text().strip()
        remove_lock(home)
        with gateway(home, command=OFTEN) as second:
            message = second.say("ann", "echo from the second")
            second.wait_state(message, "done")
            assert not is_taken(first, token, "echo two")
            leaves(first)
            assert second.asked(ask="status")["worker"]["pid"] == second.pid
            second.wait_state(second.say("ann", "echo again"), "done")
            assert second.stop() == 0
    rows = read_rows(home)
    assert not rows.damage
    assert [json.loads(row["body"])["text"] for row in rows.inbox] == [
        "echo one",
        "echo from the second",
        "echo again",
    ]


def test_what_takes_its_place_is_left_alone(tmp_path: Path) -> None:
    """Issue 12, A8: a gateway that leaves does not touch the log of the database that stands in
    the place of its own."""
    home = tmp_path / "home"
    with gateway(home, command=SELDOM) as first:
        first.wait_state(first.say("ann", "echo one"), "done")
        token = (home / "web-token").read_text().strip()
        move(home)
        with gateway(home, command=OFTEN) as second:
            second.wait_state(second.say("bob", "echo two"), "done")
            assert not is_taken(first, token, "echo lost")
            leaves(first)
            second.wait_state(second.say("bob", "echo three"), "done")
            second.kill()
    texts = [json.loads(row["body"])["text"] for row in read_rows(home).inbox]
    assert texts == ["echo two", "echo three"]


def test_a_home_behind_a_link_is_at_home(tmp_path: Path) -> None:
    """Issue 12, A8: however the path gets there, the files are the same."""
    place, home = tmp_path / "place", tmp_path / "home"
    place.mkdir(mode=0o700)
    home.symlink_to(place)
    with gateway(home, command=OFTEN) as one:
        one.wait_state(one.say("ann", "echo one"), "done")
        before = beats(home)
        until(lambda: beats(home) > before, "a heartbeat")
        other = place.with_name("other")
        place.rename(other)
        other.rename(place)
        one.wait_state(one.say("ann", "echo two"), "done")
        assert one.stop() == 0


def test_the_next_start_makes_its_own_decision(tmp_path: Path) -> None:
    """Issue 12, A8: a parent starts it again, on whatever the path names then."""
    home = tmp_path / "home"
    with gateway(home, "--supervise", command=OFTEN) as one:
        one.wait_state(one.say("ann", "echo one"), "done")
        move(home)
        one.wait_serving(times=2)
        one.wait_state(one.say("ann", "echo two"), "done")
        assert koboshi("status", "--json", home=home).document["sessions"] == 1
        assert one.stop() == 0
    assert len(read_rows(home).inbox) == 1
