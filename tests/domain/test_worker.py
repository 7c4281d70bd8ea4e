"""How many deaths make the boot breaker open."""

import pytest

from koboshi.domain.worker import Breaker, breaker_of

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
