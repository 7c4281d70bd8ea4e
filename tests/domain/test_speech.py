"""What the writing down of speech is counted as: never as nothing, unless the owner says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.domain.budget import BudgetUnit
from koboshi.domain.price import Price
from koboshi.domain.speech import SpeechUse, reckoned, speech_amount

MONEY, TOKENS = BudgetUnit.MONEY, BudgetUnit.TOKENS
UNPRICED = Price(input=10, output=10)
MINUTE = SpeechUse(seconds=60)


@pytest.mark.parametrize(
    "unit, use, minute_price, amount",
    [
        (MONEY, MINUTE, 0.006, 6_000),
        (MONEY, SpeechUse(seconds=60, tokens=500), 0.006, 6_000),
        (MONEY, MINUTE, None, 10_000),
        (MONEY, SpeechUse(seconds=60, tokens=500), None, 5_000),
        (TOKENS, MINUTE, None, 1_000),
        (TOKENS, MINUTE, 0.006, 1_000),
        (TOKENS, SpeechUse(seconds=60, tokens=500), 0.006, 500),
        (MONEY, MINUTE, 0.0, 0),
        (TOKENS, MINUTE, 0.0, 0),
    ],
)
def test_a_minute_is_counted_by_its_price_or_its_tokens(
    unit: BudgetUnit, use: SpeechUse, minute_price: float | None, amount: int
) -> None:
    assert speech_amount(unit, use, minute_price, UNPRICED) == amount


@given(
    unit=st.sampled_from(BudgetUnit),
    seconds=st.floats(0, 1e6),
    price=st.none() | st.floats(1e-9, 1e6),
)
def test_no_recording_is_free_by_chance(
    unit: BudgetUnit, seconds: float, price: float | None
) -> None:
    assert speech_amount(unit, SpeechUse(seconds=seconds), price, UNPRICED) >= 1


def test_a_recording_is_reckoned_by_its_size_whatever_it_claims() -> None:
    """A stranger writes the head: a length that it names is not believed."""
    assert reckoned(b"OggS" + bytes(119_996)).seconds == 60
    assert reckoned(b"OggS\0\4" + b"\xff" * 8 + bytes(119_986)).seconds == 60
    assert reckoned(b"RIFF" + bytes(959_996)).seconds == 60
    assert reckoned(b"").seconds == 1
