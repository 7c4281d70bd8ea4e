"""What the models were used for: tokens, and what they cost where a price is known. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from koboshi.domain.durations import duration
from koboshi.domain.price import Price

MICROS = 1_000_000
"""Millionths of a dollar in a dollar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLine:
    """What one person used of one model in a chat."""

    person: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    seconds: int = 0
    """Of a model that writes down speech: the length of the recordings. Others have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a chat used today and in the days before."""

    today: tuple[UsageLine, ...] = ()
    month: tuple[UsageLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A sum. `micros` is the cost of what has a price; the rest is told as it is."""

    calls: int = 0
    tokens: int = 0
    micros: int = 0
    unpriced: int = 0
    """Tokens without a price."""
    recordings: int = 0
    seconds: int = 0
    unpriced_seconds: int = 0
    is_priced: bool = False
    """Whether anything has a price."""


def begin_of_day(now_ms: int, zone: tzinfo, *, days_before: int = 0) -> int:
    """When the day began, or one some days before."""
    now = datetime.fromtimestamp(now_ms / 1000, zone)
    day = now.date() - timedelta(days=days_before)
    return round(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp() * 1000)


def spent_of(lines: Iterable[UsageLine], prices: Mapping[str, Price]) -> Spent:
    sum_ = Spent()
    for line in lines:
        sum_ = _with(sum_, line, prices.get(line.model))
    return sum_


def _with(spent: Spent, line: UsageLine, price: Price | None) -> Spent:
    tokens, is_speech = line.tokens_in + line.tokens_out, line.seconds > 0
    cost = 0 if price is None else price.cost_of(line.tokens_in, line.tokens_out, line.seconds)
    is_unpriced = price is None
    return Spent(
        calls=spent.calls + (0 if is_speech else line.calls),
        tokens=spent.tokens + tokens,
        micros=spent.micros + cost,
        unpriced=spent.unpriced + tokens * is_unpriced,
        recordings=spent.recordings + (line.calls if is_speech else 0),
        seconds=spent.seconds + line.seconds,
        unpriced_seconds=spent.unpriced_seconds + line.seconds * is_unpriced,
        is_priced=spent.is_priced or not is_unpriced,
    )


def spent_words(spent: Spent) -> str:
    """A sum for people. Tokens without a price are told as tokens, never as nothing."""
    used = []
    if spent.calls:
        used.append("1 reply" if spent.calls == 1 else f"{spent.calls} replies")
    if spent.calls or spent.tokens:
        used.append(tokens_words(spent.tokens))
    if spent.recordings:
        many = "1 recording" if spent.recordings == 1 else f"{spent.recordings} recordings"
        used.append(f"{many} of {duration(spent.seconds * 1_000)}")
    if not spent.is_priced:
        return ", ".join(used) or "nothing"
    beyond = []
    if spent.unpriced:
        beyond.append(tokens_words(spent.unpriced))
    if spent.unpriced_seconds:
        beyond.append(f"{duration(spent.unpriced_seconds * 1_000)} of recordings")
    rest = f" and {' and '.join(beyond)} without a price" if beyond else ""
    return f"{', '.join(used)}, about {money(spent.micros)}{rest}"


def usage_words(
    usage: Usage, prices: Mapping[str, Price], *, person: str, sees_all: bool
) -> list[str]:
    """What `/usage` says: the chat, and the people in it. A member sees themselves alone."""
    lines = [
        f"Today in this chat: {spent_words(spent_of(usage.today, prices))}.",
        f"In 30 days: {spent_words(spent_of(usage.month, prices))}.",
    ]
    people = sorted({line.person for line in usage.month})
    shown = people if sees_all else [each for each in people if each == person]
    if len(people) > 1:
        lines += [f"{each}: {_of_person(usage.month, prices, each)}." for each in shown]
    models = sorted({line.model for line in usage.month})
    if len(models) > 1:
        for model in models:
            own = [line for line in usage.month if line.model == model]
            lines.append(f"By {model or 'an unnamed model'}: {spent_words(spent_of(own, prices))}.")
    return lines


def tokens_words(tokens: int) -> str:
    return "1 token" if tokens == 1 else f"{tokens:,} tokens"


def money(micros: int) -> str:
    """Dollars and cents, rounded up: what was used is never shown as less."""
    cents = -(-micros // (MICROS // 100))
    return f"{cents // 100}.{cents % 100:02d}"


def _of_person(lines: Sequence[UsageLine], prices: Mapping[str, Price], person: str) -> str:
    return spent_words(spent_of((line for line in lines if line.person == person), prices))
