"""When a schedule is due: three kinds, three zones, both nights in which clocks change."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from koboshi.domain.due import (
    NotATime,
    check_expression,
    first_after,
    moment_of,
    passed,
    period_ms,
)
from koboshi.domain.schedule import ScheduleKind

VIENNA, NEW_YORK, LORD_HOWE = (
    ZoneInfo(name) for name in ("Europe/Vienna", "America/New_York", "Australia/Lord_Howe")
)
AT, EVERY, CRON = ScheduleKind.AT, ScheduleKind.EVERY, ScheduleKind.CRON
DAY_MS = 86_400_000


def ms(text: str, zone: ZoneInfo) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1_000)


def local(at_ms: int | None, zone: ZoneInfo) -> str:
    assert at_ms is not None
    return datetime.fromtimestamp(at_ms / 1_000, tz=zone).strftime("%d %H:%M %z")


# The night, a local time that is repeated or missing in it, and when it happens.
BACK = [
    (VIENNA, "2026-10-25", "30 2 * * *", "25 02:30 +0200"),
    (NEW_YORK, "2026-11-01", "30 1 * * *", "01 01:30 -0400"),
    (LORD_HOWE, "2026-04-05", "45 1 * * *", "05 01:45 +1100"),
]
FORWARD = [
    (VIENNA, "2026-03-29", "30 2 * * *", "29 03:00 +0200"),
    (NEW_YORK, "2026-03-08", "30 2 * * *", "08 03:00 -0400"),
    (LORD_HOWE, "2026-10-04", "15 2 * * *", "04 02:30 +1100"),
]


@pytest.mark.parametrize("zone, day, expression, when", [*BACK, *FORWARD])
def test_a_fixed_local_time_happens_once_in_each_night_in_which_clocks_change(
    zone: ZoneInfo, day: str, expression: str, when: str
) -> None:
    """Must show: both clock-change nights in Vienna, New York and Lord Howe."""
    noon = ms(f"{day}T12:00", zone)
    night = noon - DAY_MS
    found = []
    at: int | None = night
    while at is not None and at < noon:
        at = first_after(CRON, expression, zone, at)
        if at is not None and at < noon:
            found.append(local(at, zone))
    assert found == [when]


@pytest.mark.parametrize("zone, day, expression, when", [*BACK, *FORWARD])
def test_wherever_one_looks_from_in_that_night_it_is_due_once(
    zone: ZoneInfo, day: str, expression: str, when: str
) -> None:
    """Also from within the hour that is repeated, where local times go back."""
    noon = ms(f"{day}T12:00", zone)
    once = first_after(CRON, expression, zone, noon - DAY_MS)
    assert once is not None
    assert local(once, zone) == when
    for look in range(noon - 15 * 3_600_000, noon, 5 * 60_000):
        following = first_after(CRON, expression, zone, look)
        assert following is not None
        assert following > look
        assert following == once if look < once else following > noon
        newest = passed(CRON, expression, zone, once - 0, max(look, once))
        assert (newest.newest_ms, newest.others) == (once, 0)


@pytest.mark.parametrize("zone, day, expression, when", [*BACK, *FORWARD])
def test_an_at_by_the_clock_happens_at_the_same_moment(
    zone: ZoneInfo, day: str, expression: str, when: str
) -> None:
    minute, hour, *_ = expression.split()
    assert local(moment_of(f"{day}T{int(hour):02}:{int(minute):02}", zone), zone) == when


def test_an_at_with_an_offset_does_not_care_about_zones() -> None:
    text = "2026-10-25T02:30:05+00:00"
    assert moment_of(text, VIENNA) == moment_of(text, LORD_HOWE)


def test_every_is_a_grid_from_its_anchor() -> None:
    assert first_after(EVERY, "60", UTC, 1_000, anchor_ms=500) == 60_500
    assert first_after(EVERY, "60", UTC, 60_500, anchor_ms=500) == 120_500
    assert first_after(EVERY, "60", UTC, 60_499, anchor_ms=500) == 60_500
    assert first_after(EVERY, "60", UTC, 0, anchor_ms=500) == 500


@pytest.mark.parametrize("away", [0, 1, 299_000, 6 * 3_600_000, 3 * DAY_MS])
@pytest.mark.parametrize("expression", ["* * * * *", "0 7 * * *", "0 7 * * 1-5", "*/15 8-17 * * *"])
def test_what_passed_is_what_counting_one_by_one_finds(expression: str, away: int) -> None:
    due = first_after(CRON, expression, VIENNA, ms("2026-11-18T05:00", VIENNA))
    assert due is not None
    now, counted, at = due + away, 0, due
    while (following := first_after(CRON, expression, VIENNA, at)) is not None and following <= now:
        counted, at = counted + 1, following
    found = passed(CRON, expression, VIENNA, due, now)
    assert found.newest_ms == at
    assert found.others == counted


@pytest.mark.parametrize("zone, day, expression, when", [*BACK, *FORWARD])
@pytest.mark.parametrize("often", ["", "*/7 * * * *", "* 1-3 * * *", "5 */2 * * *"])
def test_what_passed_over_a_night_in_which_clocks_change_is_counted_one_by_one(
    zone: ZoneInfo, day: str, expression: str, when: str, often: str
) -> None:
    noon = ms(f"{day}T12:00", zone)
    due = first_after(CRON, often or expression, zone, noon - 3 * DAY_MS)
    assert due is not None
    times = [due]
    while times[-1] < noon + 2 * DAY_MS:
        following = first_after(CRON, often or expression, zone, times[-1])
        assert following is not None
        times.append(following)
    for now in range(noon - DAY_MS, noon + DAY_MS, 187 * 60_000 + 1):
        until = [each for each in times if each <= now]
        found = passed(CRON, often or expression, zone, due, now)
        assert (found.newest_ms, found.others) == (until[-1], len(until) - 1)


def test_very_many_passed_times_are_all_counted_and_the_newest_is_found() -> None:
    due = ms("2020-01-01T00:00", VIENNA)
    now = ms("2026-11-18T05:00", VIENNA) + 30_000
    found = passed(CRON, "* * * * *", VIENNA, due, now)
    assert (found.newest_ms, found.others) == (now - 30_000, (now - due) // 60_000)
    often = passed(EVERY, "1", UTC, due, now)
    assert (often.newest_ms, often.others) == (now, (now - due) // 1_000)
    dense_then_rare = passed(CRON, "* 7 1 * *", VIENNA, due, now)
    assert local(dense_then_rare.newest_ms, VIENNA) == "01 07:59 +0100"
    assert dense_then_rare.others == (6 * 12 + 11) * 60
    leap_days = passed(CRON, "0 7 29 2 *", VIENNA, ms("2020-02-29T07:00", VIENNA), now)
    assert (leap_days.newest_ms, leap_days.others) == (ms("2024-02-29T07:00", VIENNA), 1)


def test_a_period_is_the_way_to_the_next_due_time() -> None:
    due = first_after(CRON, "0 7 * * 1", VIENNA, ms("2026-11-18T05:00", VIENNA))
    assert due is not None
    assert period_ms(CRON, "0 7 * * 1", VIENNA, due) == 7 * DAY_MS
    assert period_ms(EVERY, "90", UTC, 12_345) == 90_000
    assert period_ms(AT, "2026-11-18T05:00", VIENNA, ms("2026-11-18T05:00", VIENNA)) is None


@pytest.mark.parametrize(
    "kind, expression",
    [
        (AT, "soon"),
        (AT, "99999-01-01"),
        (EVERY, "0"),
        (EVERY, "-5"),
        (EVERY, "1e3"),
        (EVERY, "99999999999"),
        (CRON, "* * * *"),
        (CRON, "* * * * * *"),
        (CRON, "61 * * * *"),
        (CRON, "* * * * FOO"),
        (CRON, "0 0 31 2 *"),
    ],
)
def test_what_is_no_time_is_refused_with_words(kind: ScheduleKind, expression: str) -> None:
    with pytest.raises(NotATime) as refused:
        check_expression(kind, expression, VIENNA)
    assert str(refused.value)


def test_a_time_that_never_comes_has_no_next() -> None:
    assert first_after(CRON, "0 0 30 2 1", UTC, 0) is not None, "a day or a weekday"
    past = datetime(2020, 1, 1, tzinfo=UTC)
    assert first_after(AT, past.isoformat(), UTC, round(past.timestamp() * 1_000)) is None
    later = past + timedelta(days=1)
    assert first_after(AT, later.isoformat(), UTC, round(past.timestamp() * 1_000)) is not None
