"""Who is taken for alive, and how long a worker may trust itself."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.domain.ids import WorkerId
from koboshi.domain.worker import Breaker, EndedHow, Worker, breaker_of, is_alive, trusted_until

WORKER = Worker(
    worker_id=WorkerId(1),
    host="here",
    pid=100,
    birth="a:5",
    version="1",
    started_ms=0,
    heartbeat_ms=100_000,
    is_draining=False,
    ended_ms=None,
    ended_how=None,
)
TTL_MS = 15_000


@pytest.mark.parametrize("silent_ms", [0, TTL_MS - 1, TTL_MS])
def test_a_worker_is_alive_as_long_as_its_heartbeat_is_young(silent_ms: int) -> None:
    assert is_alive(WORKER, now_ms=WORKER.heartbeat_ms + silent_ms, ttl_ms=TTL_MS)


def test_a_worker_whose_heartbeat_is_too_old_is_dead() -> None:
    assert not is_alive(WORKER, now_ms=WORKER.heartbeat_ms + TTL_MS + 1, ttl_ms=TTL_MS)


@pytest.mark.parametrize("how", EndedHow)
def test_a_worker_that_said_goodbye_is_dead_at_once(how: EndedHow) -> None:
    ended = replace(WORKER, ended_ms=WORKER.heartbeat_ms, ended_how=how)

    assert not is_alive(ended, now_ms=WORKER.heartbeat_ms, ttl_ms=TTL_MS)


def test_a_worker_that_drains_is_alive() -> None:
    draining = replace(WORKER, is_draining=True)

    assert is_alive(draining, now_ms=WORKER.heartbeat_ms, ttl_ms=TTL_MS)


def test_a_clock_that_went_back_kills_nobody() -> None:
    """S169."""
    assert is_alive(WORKER, now_ms=0, ttl_ms=TTL_MS)


def test_a_heartbeat_is_trusted_for_its_time_to_live_less_the_margin() -> None:
    assert trusted_until(100, ttl_s=15, margin_s=5) == 110


@given(
    beat_started=st.integers(0, 10**6),
    sent_after=st.integers(0, 60),
    ttl_s=st.integers(1, 60),
    margin_s=st.integers(1, 10),
)
def test_a_worker_stops_trusting_itself_before_others_take_it_for_dead(
    beat_started: int, sent_after: int, ttl_s: int, margin_s: int
) -> None:
    """S87: the heartbeat is stored some time after it was begun, never before."""
    stored_s = beat_started + sent_after
    trusted_s = trusted_until(beat_started, ttl_s=ttl_s, margin_s=margin_s)
    last = replace(WORKER, heartbeat_ms=stored_s * 1_000)

    assert is_alive(last, now_ms=int(trusted_s * 1_000), ttl_ms=ttl_s * 1_000)


MINUTE_MS = 60_000
NOW_MS = 10_000 * MINUTE_MS


@pytest.mark.parametrize(
    "minutes_ago, breaker",
    [
        ((), Breaker.CLOSED),
        ((0, 1), Breaker.CLOSED),
        ((0, 1, 2), Breaker.HALF),
        ((9, 10, 11, 12), Breaker.HALF),
        ((0, 1, 2, 3, 4), Breaker.OPEN),
        ((10, 11, 12, 13, 14), Breaker.CLOSED),
        ((0, 11, 12, 13, 14), Breaker.CLOSED),
    ],
)
def test_boots_that_found_a_dead_turn_open_the_breaker(
    minutes_ago: tuple[int, ...], breaker: Breaker
) -> None:
    """S73: three in ten minutes, then five; ten quiet minutes close it."""
    unclean_ms = [NOW_MS - minutes * MINUTE_MS for minutes in minutes_ago]
    assert breaker_of(unclean_ms, NOW_MS)[0] is breaker


def test_a_clock_that_went_back_does_not_keep_the_breaker_open() -> None:
    """S75, S169: boots of a time that is still to come say nothing about now. The breaker must not
    hold a healthy gateway back until that time has come."""
    tomorrow_ms = NOW_MS + 24 * 60 * MINUTE_MS
    ahead = [tomorrow_ms - minutes * MINUTE_MS for minutes in range(5)]
    assert breaker_of(ahead, NOW_MS) == (Breaker.CLOSED, 0)
    assert breaker_of([NOW_MS, *ahead[:4]], NOW_MS) == (Breaker.CLOSED, 0)


def test_the_breaker_never_holds_longer_than_ten_minutes() -> None:
    """S75."""
    for newest in range(11):
        breaker, until_ms = breaker_of([NOW_MS - newest * MINUTE_MS] * 5, NOW_MS)
        assert (breaker is Breaker.CLOSED) == (newest == 10)
        assert until_ms <= NOW_MS + 10 * MINUTE_MS
