"""What the models were used for: tokens, and what they cost where a price is known. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a chat used today and in the days before."""

    today: tuple[UsageLine, ...] = ()
    month: tuple[UsageLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A sum. `micros` is the cost of what has a price; `unpriced` are the tokens of the rest."""

    calls: int
    tokens: int
    micros: int
    unpriced: int


def begin_of_day(now_ms: int, zone: tzinfo, *, days_before: int = 0) -> int:
    """When the day began, or one some days before."""
    now = datetime.fromtimestamp(now_ms / 1000, zone)
    day = now.date() - timedelta(days=days_before)
    return round(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp() * 1000)


def spent_of(lines: Iterable[UsageLine], prices: Mapping[str, Price]) -> Spent:
    calls = tokens = micros = unpriced = 0
    for line in lines:
        price, used = prices.get(line.model), line.tokens_in + line.tokens_out
        calls, tokens = calls + line.calls, tokens + used
        if price is None:
            unpriced += used
        else:
            micros += price.cost_of(line.tokens_in, line.tokens_out)
    return Spent(calls=calls, tokens=tokens, micros=micros, unpriced=unpriced)


def spent_words(spent: Spent) -> str:
    """A sum for people. Tokens without a price are told as tokens, never as nothing."""
    if not spent.calls:
        return "nothing"
    calls = "1 reply" if spent.calls == 1 else f"{spent.calls} replies"
    words = f"{calls}, {tokens_words(spent.tokens)}"
    if spent.tokens == spent.unpriced:
        return words
    beyond = f" and {tokens_words(spent.unpriced)} without a price" if spent.unpriced else ""
    return f"{words}, about {money(spent.micros)}{beyond}"


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
