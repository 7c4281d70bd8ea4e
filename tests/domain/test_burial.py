"""Who may be buried, and by whom."""

from koboshi.domain.burial import LifeSign, Sighting, dead_among, first_beat, looked_again
from koboshi.domain.ids import WorkerId

LEASE_S = 15.0
ONE = WorkerId(1)


def a_sign(batch: int = 1, heartbeat_ms: int = 0) -> LifeSign:
    return LifeSign(worker_id=ONE, node="b", heartbeat_ms=heartbeat_ms, batch=batch)


def seen(*looks: tuple[float, LifeSign]) -> dict[WorkerId, Sighting]:
    known: dict[WorkerId, Sighting] = {}
    for now_s, sign in looks:
        known = looked_again(known, [sign], now_s)
    return known


def test_a_row_that_does_not_change_for_a_lease_is_of_a_dead_worker() -> None:
    known = seen((0, a_sign()), (1, a_sign()), (14, a_sign()))

    assert dead_among(known, 14.9, LEASE_S) == ()
    assert dead_among(known, 15, LEASE_S) == (a_sign(),)


def test_any_change_of_the_row_is_a_sign_of_life() -> None:
    """Also one that goes back: the clock of the server was set."""
    for sign in (a_sign(batch=2), a_sign(heartbeat_ms=5), a_sign(heartbeat_ms=-5)):
        assert dead_among(seen((0, a_sign()), (14, sign)), 20, LEASE_S) == ()


def test_a_worker_that_ended_is_forgotten() -> None:
    assert looked_again(seen((0, a_sign())), [], 1) == {}


def test_only_who_has_beaten_for_a_lease_may_bury() -> None:
    beats = first_beat(1_000, 0.0)
    for second in (5, 10, 15):
        assert not beats.may_bury(second - 1, LEASE_S)
        beats = beats.after_beat(1_000 + second * 1_000, second, LEASE_S)

    assert beats.may_bury(15, LEASE_S)
    assert not beats.may_bury(23, LEASE_S), "its own last beat is too old"


def test_after_a_gap_the_count_begins_anew() -> None:
    """The server was away, or this machine slept: no row has changed meanwhile."""
    beats = first_beat(0, 0.0).after_beat(5_000, 5, LEASE_S).after_beat(60_000, 60, LEASE_S)

    assert not beats.may_bury(60, LEASE_S)
    assert beats.begun_s == 60


def test_after_a_step_of_the_servers_clock_the_count_begins_anew() -> None:
    beats = first_beat(0, 0.0).after_beat(5_000, 5, LEASE_S).after_beat(40_000, 10, LEASE_S)

    assert beats.begun_s == 10
