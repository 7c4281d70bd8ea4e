"""Times as people write them → an expression of a schedule. Pure; no model is needed.

`in 2 hours`, `at 9:00`, `tomorrow 9:00`, `Friday 9:00`, `2026-11-20 09:00`, `every 30 minutes`,
`every day at 7:00`, `every weekday at 7:00`, `cron 0 7 * * 1-5`.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from koboshi.domain.due import NotATime, check_expression, existing
from koboshi.domain.schedule import ScheduleKind

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("w", "week", "weeks"), "w"),
}
_SPAN = re.compile(r"(?:(\d{1,6}|an?|one)\s*)?([a-z]+)(?=\s|$)\s*", re.IGNORECASE)
_CLOCK = re.compile(r"(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*(am|pm)?(?=\s|$)\s*", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:T|\s+|$)")
_WORD = re.compile(r"([a-z]+)(?=\s|$)\s*", re.IGNORECASE)
_FIELD = re.compile(r"[0-9*/,\-A-Za-z#]+")
HELP = (
    "Say when: `in 2 hours`, `tomorrow 9:00`, `Friday 9:00`, `2026-11-20 09:00`, "
    "`every 30 minutes`, `every day at 7:00`, `every weekday at 7:00`, or `cron 0 7 * * 1-5`."
)


class NotUnderstood(NotATime):
    """The words begin with no time of these forms. A model may understand them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A time as a schedule has it, and the words that stood behind it."""

    kind: ScheduleKind
    expression: str
    rest: str
    is_local: bool
    """Whether it depends on the zone of the person."""


def read_when(text: str, now_ms: int, zone: tzinfo) -> When:
    """The time that the text begins with. Raises NotATime with words for the person."""
    words = text.strip()
    first, _, rest = words.partition(" ")
    match first.casefold():
        case "in":
            return _in(rest.strip(), now_ms, zone)
        case "every":
            return _every(rest.strip())
        case "cron":
            return _cron(rest.strip())
        case _:
            return _at(words, datetime.fromtimestamp(now_ms / 1_000, tz=zone), zone)


def is_understood(text: str) -> bool:
    """Whether the text begins with a time of these forms, be it a wrong one."""
    try:
        read_when(text, 0, UTC)
    except NotUnderstood:
        return False
    except NotATime:
        return True
    return True


def _in(text: str, now_ms: int, zone: tzinfo) -> When:
    seconds, rest = _span(text)
    clock = _clock(rest)
    if clock is not None:
        return _in_days(seconds, rest, clock, datetime.fromtimestamp(now_ms / 1_000, tz=zone))
    moment = datetime.fromtimestamp(now_ms // 1_000 + seconds, tz=UTC)
    return When(kind=ScheduleKind.AT, expression=moment.isoformat(), rest=rest, is_local=False)


def _in_days(seconds: int, text: str, clock: re.Match[str], now: datetime) -> When:
    """`in 2 days at 9:00`: a time of day goes with whole days only."""
    days, beside = divmod(seconds, _SECONDS["d"])
    if beside:
        raise NotUnderstood(HELP)
    hour, minute = _hour(clock)
    day = now.replace(tzinfo=None, hour=hour, minute=minute, second=0, microsecond=0, fold=0)
    expression = (day + timedelta(days=days)).isoformat(timespec="minutes")
    rest = text[clock.end() :].strip()
    return When(kind=ScheduleKind.AT, expression=expression, rest=rest, is_local=True)


def _clock(text: str, place: int = 0) -> re.Match[str] | None:
    """A time of day that is certainly one: a lone number may be of the words behind it."""
    found = _CLOCK.match(text, place)
    if found is None:
        return None
    is_said = ":" in found[0] or found[3] or found[0].casefold().startswith("at")
    return found if is_said else None


def _span(text: str) -> tuple[int, str]:
    """Seconds, and the words behind them: `2 hours`, `1h`, `an hour`, `1 hour 30 minutes`."""
    seconds, place = 0, 0
    while (found := _SPAN.match(text, place)) is not None:
        count, unit = found[1], _UNITS.get(found[2].casefold())
        if unit is None or (count is None and seconds):
            break
        number = int(count) if count and count.isdigit() else 1
        seconds += number * _SECONDS[unit]
        place = found.end()
        if count is None:
            break
    if not seconds:
        raise NotUnderstood(HELP)
    if seconds > 366 * 86_400:
        raise NotATime("That is more than a year: name the day, as in 2027-12-24 09:00.")
    return seconds, text[place:].strip()


def _every(text: str) -> When:
    word = _WORD.match(text)
    named = "" if word is None else word[1].casefold()
    days = _cron_days(named)
    if word is not None and days is not None:
        clock = _CLOCK.match(text, word.end())
        if clock is not None:
            hour, minute = _hour(clock)
            expression = f"{minute} {hour} * * {days}"
            return When(
                kind=ScheduleKind.CRON,
                expression=expression,
                rest=text[clock.end() :].strip(),
                is_local=True,
            )
        if named not in ("day", "days"):
            raise NotATime(f"Say at what time, as in `every {named} at 7:00`.")
    seconds, rest = _span(text)
    second = _WORD.match(rest) if named == "second" else None
    is_every_other = second is not None and _is_span(second[1].casefold())
    if is_every_other or _clock(rest) is not None:
        raise NotUnderstood(HELP)  # what is said here is no span, or more than one
    return When(kind=ScheduleKind.EVERY, expression=str(seconds), rest=rest, is_local=False)


def _is_span(word: str) -> bool:
    return word in _UNITS or _cron_days(word) is not None


def _cron_days(word: str) -> str | None:
    known = {"day": "*", "days": "*", "weekday": "1-5", "weekdays": "1-5", "weekend": "0,6"}
    if word in known:
        return known[word]
    number = _weekday(word)
    return None if number is None else str((number + 1) % 7)


def _weekday(word: str) -> int | None:
    """Monday is 0. Three letters are enough."""
    found = [number for number, day in enumerate(_DAYS) if len(word) > 2 and day.startswith(word)]
    return found[0] if found else None


def _cron(text: str) -> When:
    fields = text.split(maxsplit=5)
    if len(fields) < 5 or not all(_FIELD.fullmatch(field) for field in fields[:5]):
        raise NotATime("A cron expression has five fields: minute hour day month weekday.")
    expression = " ".join(fields[:5])
    check_expression(ScheduleKind.CRON, expression, UTC)
    rest = fields[5].strip() if len(fields) > 5 else ""
    return When(kind=ScheduleKind.CRON, expression=expression, rest=rest, is_local=True)


def _at(text: str, now: datetime, zone: tzinfo) -> When:
    day, place = _day(text, now)
    clock = _clock(text, place) if day is None else _CLOCK.match(text, place)
    if clock is None:
        raise NotUnderstood(HELP)
    hour, minute = _hour(clock)
    if day is not None and not 1970 < day.year < 9999:
        raise NotATime("That year is too far away.")
    start = now.replace(tzinfo=None) if day is None else day
    local = start.replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)
    is_past = existing(local, zone) <= now
    if is_past and (day is None or _is_weekday_of(text, now)):
        local += timedelta(days=1 if day is None else 7)
    elif is_past:
        raise NotATime("That time is over. " + HELP)
    expression = local.isoformat(timespec="minutes")
    rest = text[clock.end() :].strip()
    return When(kind=ScheduleKind.AT, expression=expression, rest=rest, is_local=True)


def _is_weekday_of(text: str, now: datetime) -> bool:
    """Whether it names the day of the week that it is: then the next one is meant."""
    word = _WORD.match(text, _place_of_day(text))
    return word is not None and _weekday(word[1].casefold()) == now.weekday()


def _place_of_day(text: str) -> int:
    return len("on ") if text[:3].casefold() == "on " else 0


def _day(text: str, now: datetime) -> tuple[datetime | None, int]:
    """The day that the text begins with, and where it ends; None if it names none."""
    today = now.replace(tzinfo=None)
    begin = _place_of_day(text)
    date = _DATE.match(text, begin)
    if date is not None:
        try:
            return datetime(int(date[1]), int(date[2]), int(date[3])), date.end()
        except ValueError:
            raise NotATime(f"There is no day {date[0].strip()}.") from None
    word = _WORD.match(text, begin)
    named = "" if word is None else word[1].casefold()
    if word is None or named == "at":
        return None, begin
    if named == "today":
        return today, word.end()
    if named == "tomorrow":
        return today + timedelta(days=1), word.end()
    weekday = _weekday(named)
    if weekday is None:
        raise NotUnderstood(HELP)
    return today + timedelta(days=(weekday - today.weekday()) % 7), word.end()


def _hour(clock: re.Match[str]) -> tuple[int, int]:
    hour, minute = int(clock[1]), int(clock[2] or 0)
    half = (clock[3] or "").casefold()
    if half and not 1 <= hour <= 12:
        raise NotATime(f"There is no {clock[0].strip()}.")
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59:
        raise NotATime(f"There is no time {clock[0].strip()}.")
    return hour, minute
