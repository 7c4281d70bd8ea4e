"""Times as people write them."""

from zoneinfo import ZoneInfo

import pytest

from koboshi.domain.due import NotATime, first_after
from koboshi.domain.schedule import ScheduleKind
from koboshi.domain.when import read_when

VIENNA = ZoneInfo("Europe/Vienna")
NOW_MS = 1_794_956_400_000  # Wednesday, 18 November 2026, 00:00 in Vienna
AT, EVERY, CRON = ScheduleKind.AT, ScheduleKind.EVERY, ScheduleKind.CRON


@pytest.mark.parametrize(
    "text, kind, expression, rest",
    [
        ("in 2 hours tea", AT, "2026-11-18T01:00:00+00:00", "tea"),
        ("in 1 minute tea", AT, "2026-11-17T23:01:00+00:00", "tea"),
        ("in 1h 30m look", AT, "2026-11-18T00:30:00+00:00", "look"),
        ("in an hour call mum", AT, "2026-11-18T00:00:00+00:00", "call mum"),
        ("in 3 days 2 hours x", AT, "2026-11-21T01:00:00+00:00", "x"),
        ("in 2 days at 9:00 call mum", AT, "2026-11-20T09:00", "call mum"),
        ("in a week 9am call mum", AT, "2026-11-25T09:00", "call mum"),
        ("in 2 hours at 9:00 what?", None, "", ""),
        ("in 2 days at the office", AT, "2026-11-19T23:00:00+00:00", "at the office"),
        ("Friday 9:00 the report", AT, "2026-11-20T09:00", "the report"),
        ("on friday 9am the report", AT, "2026-11-20T09:00", "the report"),
        ("wed 9:00 today still", AT, "2026-11-18T09:00", "today still"),
        ("wednesday 0:00 a week from now", AT, "2026-11-25T00:00", "a week from now"),
        ("tomorrow 12 pm lunch", AT, "2026-11-19T12:00", "lunch"),
        ("today at 12am x", None, "", ""),
        ("On Wednesday 0:00 a week from now", AT, "2026-11-25T00:00", "a week from now"),
        ("at 9 wake up", AT, "2026-11-18T09:00", "wake up"),
        ("At 9 wake up", AT, "2026-11-18T09:00", "wake up"),
        ("9:30 coffee", AT, "2026-11-18T09:30", "coffee"),
        ("2026-12-24 18:00 bells", AT, "2026-12-24T18:00", "bells"),
        ("2026-12-24T18:00 bells", AT, "2026-12-24T18:00", "bells"),
        ("every 30 minutes look", EVERY, "1800", "look"),
        ("every hour look", EVERY, "3600", "look"),
        ("every 2 days look", EVERY, "172800", "look"),
        ("every 2 days at 7:00 water", None, "", ""),
        ("every week at 9:00 water", None, "", ""),
        ("every second day water", None, "", ""),
        ("every second monday at 9:00 water", None, "", ""),
        ("every second look", EVERY, "1", "look"),
        ("every weekday at 7 send me the news", CRON, "0 7 * * 1-5", "send me the news"),
        ("every day at 7:05 x", CRON, "5 7 * * *", "x"),
        ("every sunday 9:00 x", CRON, "0 9 * * 0", "x"),
        ("cron */5 8-17 * * MON-FRI x y", CRON, "*/5 8-17 * * MON-FRI", "x y"),
        ("tea", None, "", ""),
        ("in tea", None, "", ""),
        ("in 5 fortnights x", None, "", ""),
        ("5 eggs", None, "", ""),
        ("25:00 x", None, "", ""),
        ("2026-02-31 9:00 x", None, "", ""),
        ("2020-01-01 9:00 x", None, "", ""),
        ("every monday x", None, "", ""),
        ("every banana x", None, "", ""),
        ("cron 61 * * * * x", None, "", ""),
        ("cron * * * x", None, "", ""),
        ("in 9999 weeks x", None, "", ""),
        ("13pm x", None, "", ""),
        ("", None, "", ""),
    ],
)
def test_a_time_is_read_or_refused_with_words(
    text: str, kind: ScheduleKind | None, expression: str, rest: str
) -> None:
    if kind is None:
        with pytest.raises(NotATime) as refused:
            read_when(text, NOW_MS, VIENNA)
        assert str(refused.value)
        return
    found = read_when(text, NOW_MS, VIENNA)
    assert (found.kind, found.expression, found.rest) == (kind, expression, rest)


@pytest.mark.parametrize("zone", ["UTC", "Australia/Lord_Howe", "America/New_York"])
@pytest.mark.parametrize("day", ["0001-01-01", "1969-07-20", "9998-12-31", "9999-12-31"])
def test_the_ends_of_the_calendar_are_refused_in_words_and_break_nothing(
    day: str, zone: str
) -> None:
    """A command that broke its transaction would come again with every update of a platform."""
    for hour in ("00:00", "23:59"):
        text = f"{day} {hour} tea"
        if day.startswith("9998"):
            when = read_when(text, NOW_MS, ZoneInfo(zone))
            assert first_after(when.kind, when.expression, ZoneInfo(zone), NOW_MS) is not None
        else:
            with pytest.raises(NotATime, match="too far away"):
                read_when(text, NOW_MS, ZoneInfo(zone))
