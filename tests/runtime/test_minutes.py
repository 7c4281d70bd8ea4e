"""Tokens and their estimated cost, noted once a minute."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koboshi.domain.price import Price, price_of
from koboshi.runtime.meter import Meter, labelled
from koboshi.runtime.minutes import TOKENS, NoteMinutes

PRICE = Price(input=1.25, output=10.0)


@dataclass
class Noted:
    notes: list[dict[str, Any]] = field(default_factory=list)

    async def note(self, **values: Any) -> None:
        self.notes.append(values)


def use(meter: Meter, name: str, tokens_in: int, tokens_out: int) -> None:
    provider, _, model = name.partition(":")
    for direction, count in (("in", tokens_in), ("out", tokens_out)):
        labels = labelled(provider=provider, model=model, direction=direction)
        meter.count(TOKENS, labels, count)


async def test_a_minute_has_the_tokens_since_the_last_one_and_what_they_cost() -> None:
    meter, noted = Meter(), Noted()
    minutes = NoteMinutes(
        minutes=noted, meter=meter, database=Path("none.db"), prices={"openai:big": PRICE}
    )

    use(meter, "openai:big", 1_000_000, 100_000)
    use(meter, "scripted", 70, 2)
    await minutes.note()
    use(meter, "openai:big", 2_000, 1_000)
    await minutes.note()
    await minutes.note()

    assert [each["tokens"] for each in noted.notes] == [
        {"openai:big": 1_100_000, "scripted": 72},
        {"openai:big": 3_000},
        {},
    ]
    # 1.25 $ and 1 $; then 0.0025 $ and 0.01 $. A model without a price has no cost, not one of 0.
    assert [each["costs"]["openai:big"] for each in noted.notes] == [2_250_000, 12_500, 0]
    assert all("scripted" not in each["costs"] for each in noted.notes)


def test_a_price_that_is_not_written_down_is_not_known() -> None:
    assert price_of(0, 0) is None
    assert price_of(0, 0.4) == Price(input=0, output=0.4)
