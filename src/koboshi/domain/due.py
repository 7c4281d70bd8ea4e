"""When a schedule is due. Pure: moment and zone are passed in.

Local times are those of Debian's cron: a fixed one happens once in the night in which the clocks go
back, and at the first minute that exists in the night in which they go forward.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from cronsim import CronSim, CronSimError

from koboshi.domain.schedule import ScheduleKind

SECOND_MS = 1_000
MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
EVERY_SECONDS_MAX = 366 * 86_400
_WINDOWS_MS = (HOUR_MS, 26 * HOUR_MS, 8 * DAY_MS, 32 * DAY_MS, 400 * DAY_MS)


class NotATime(ValueError):
    """The expression names no time; the words say what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """The due times between the one that was waited for and now."""

    newest_ms: int
    others: int
    """How many there were before the newest."""


def check_expression(kind: ScheduleKind, expression: str, zone: tzinfo) -> None:
    """Raise NotATime, with words, if the expression is not one of this kind."""
    match kind:
        case ScheduleKind.AT:
            moment_of(expression, zone)
        case ScheduleKind.EVERY:
            seconds_of(expression)
        case ScheduleKind.CRON:
            if len(expression.split()) != 5:
                raise NotATime("a cron expression has five fields: minute hour day month weekday")
            _cron(expression, datetime(2026, 1, 1, tzinfo=UTC))


def first_after(
    kind: ScheduleKind, expression: str, zone: tzinfo, after_ms: int, anchor_ms: int = 0
) -> int | None:
    """The first due time after a moment; None if there is none. `every` counts from the anchor."""
    match kind:
        case ScheduleKind.AT:
            due_ms = moment_of(expression, zone)
            return due_ms if due_ms > after_ms else None
        case ScheduleKind.EVERY:
            span_ms = seconds_of(expression) * SECOND_MS
            return anchor_ms + ((after_ms - anchor_ms) // span_ms + 1) * span_ms
        case ScheduleKind.CRON:
            return next(_times(expression, zone, after_ms), None)


def passed(kind: ScheduleKind, expression: str, zone: tzinfo, due_ms: int, now_ms: int) -> Passed:
    """The newest due time until now, of those from `due_ms` on; `due_ms` is one and has come."""
    match kind:
        case ScheduleKind.AT:
            return Passed(newest_ms=due_ms, others=0)
        case ScheduleKind.EVERY:
            span_ms = seconds_of(expression) * SECOND_MS
            others = (now_ms - due_ms) // span_ms
            return Passed(newest_ms=due_ms + others * span_ms, others=others)
        case ScheduleKind.CRON:
            return _passed_cron(expression, zone, due_ms, now_ms)


def _passed_cron(expression: str, zone: tzinfo, due_ms: int, now_ms: int) -> Passed:
    others = _count(expression, zone, due_ms, now_ms)
    # However many there are, the newest is looked for near the end.
    for window_ms in (*_WINDOWS_MS, now_ms - due_ms) if others else ():
        near = list(_until(expression, zone, max(due_ms, now_ms - window_ms), now_ms))
        if near:
            return Passed(newest_ms=near[-1], others=others)
    return Passed(newest_ms=due_ms, others=0)


def _count(expression: str, zone: tzinfo, after_ms: int, until_ms: int) -> int:
    """How many due times there are after a moment and until another. Only on a day on which the
    clocks change are they gone through one by one, so that years of minutes are counted at once."""
    day = datetime.fromtimestamp(after_ms / 1_000, tz=zone).date()
    cron = _cron(expression, datetime(day.year, day.month, day.day, tzinfo=zone))
    minutes = sorted(hour * 60 + minute for hour in cron.hours for minute in cron.minutes)
    count, start_ms = 0, _midnight(day, zone)
    while start_ms <= until_ms:
        end_ms = _midnight(day + timedelta(days=1), zone)
        first_ms, last_ms = max(after_ms, start_ms - 1), min(until_ms, end_ms - 1)
        if end_ms - start_ms != DAY_MS:
            count += sum(1 for _ in _until(expression, zone, first_ms, last_ms))
        elif day.month in cron.months and cron.match_day(day):
            count += bisect_right(minutes, (last_ms - start_ms) // MINUTE_MS)
            count -= bisect_right(minutes, (first_ms - start_ms) // MINUTE_MS)
        day, start_ms = day + timedelta(days=1), end_ms
    return count


def _midnight(day: date, zone: tzinfo) -> int:
    return round(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp() * 1_000)


def _until(expression: str, zone: tzinfo, after_ms: int, now_ms: int) -> Iterator[int]:
    for each_ms in _times(expression, zone, after_ms):
        if each_ms > now_ms:
            return
        yield each_ms


def period_ms(kind: ScheduleKind, expression: str, zone: tzinfo, due_ms: int) -> int | None:
    """How long after this due time the next one is; None if there is none."""
    following = first_after(kind, expression, zone, due_ms, anchor_ms=due_ms)
    return None if following is None else following - due_ms


def seconds_of(expression: str) -> int:
    """The span of an `every`. Raises NotATime."""
    if not (expression.isascii() and expression.isdigit()) or len(expression) > 9:
        raise NotATime(f"{expression!r} is not a number of seconds")
    seconds = int(expression)
    if not 1 <= seconds <= EVERY_SECONDS_MAX:
        raise NotATime("it must be between a second and a year apart")
    return seconds


def moment_of(expression: str, zone: tzinfo) -> int:
    """The moment of an `at`: a local time, or one with an offset of its own. Raises NotATime."""
    try:
        moment = datetime.fromisoformat(expression)
    except ValueError:
        raise NotATime(f"{expression!r} is not a time such as 2026-11-20T09:00") from None
    if moment.tzinfo is None:
        moment = existing(moment, zone)
    try:
        return round(moment.timestamp() * 1_000)
    except (OverflowError, OSError, ValueError):
        raise NotATime(f"{expression!r} is too far away") from None


def existing(local: datetime, zone: tzinfo) -> datetime:
    """The first moment with this local time, or the first minute after it that exists. Raises
    NotATime where the calendar ends."""
    try:
        return _existing(local, zone)
    except (OverflowError, ValueError):
        raise NotATime(f"{local:%d %B} of that year is too far away") from None


def _existing(local: datetime, zone: tzinfo) -> datetime:
    moment = local.replace(tzinfo=zone, fold=0)
    while moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local:
        local += timedelta(minutes=1)
        local = local.replace(second=0, microsecond=0)
        moment = local.replace(tzinfo=zone, fold=0)
    return moment


def _times(expression: str, zone: tzinfo, after_ms: int) -> Iterator[int]:
    """The due times after a moment, each once, in order."""
    local = datetime.fromtimestamp(after_ms / 1_000, tz=zone)
    last_ms = after_ms
    for moment in _cron(expression, local):
        # In the hour that is repeated, a local time lies behind a moment of the second pass.
        due_ms = round(moment.timestamp() * 1_000)
        if due_ms > last_ms:
            last_ms = due_ms
            yield due_ms


def _cron(expression: str, local: datetime) -> CronSim:
    try:
        return CronSim(expression, local)
    except CronSimError as error:
        wrong = str(error).replace("Bad", "the").lower()
        raise NotATime(f"{expression!r} is not a cron expression: {wrong} is wrong") from None
