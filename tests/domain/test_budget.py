"""What may be spent: integers, a call too many at most, and people before schedules."""

from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st

from koboshi.domain.budget import (
    BudgetLimits,
    BudgetScope,
    BudgetUnit,
    Purse,
    admits,
    amount_of,
    day_of,
    micros_of,
    offers,
    question_words,
    step_of,
    used_words,
)
from koboshi.domain.price import Price

UNPRICED = Price(input=10, output=10)
MONEY = BudgetUnit.MONEY


def a_purse(used: int, reserved: int = 0, limit: int = 100) -> Purse:
    return Purse(
        purse_id=3,
        scope=BudgetScope.ALL,
        subject="",
        unit=MONEY,
        limit=limit,
        used=used,
        reserved=reserved,
    )


@given(
    limit=st.integers(1, 1_000),
    calls=st.lists(st.tuples(st.integers(1, 400), st.integers(0, 100), st.booleans()), max_size=60),
)
def test_a_limit_is_passed_by_one_reply_at_most(
    limit: int, calls: list[tuple[int, int, bool]]
) -> None:
    """Any order of reservations and settlements of calls that cost no more than was reckoned."""
    used, under_way, largest = 0, list[tuple[int, int]](), 0
    for estimate, part, settles in calls:
        if settles and under_way:
            _amount, cost = under_way.pop(0)
            used += cost
        purse = a_purse(used, sum(amount for amount, _ in under_way), limit)
        if admits(purse, estimate, is_timed=False):
            under_way.append((estimate, estimate * part // 100))
            largest = max(largest, estimate)
    spent = used + sum(cost for _, cost in under_way)
    assert spent < limit + largest


def test_people_come_before_schedules_and_goals() -> None:
    assert admits(a_purse(70), 10, is_timed=True)
    assert not admits(a_purse(75), 10, is_timed=True)
    assert admits(a_purse(75), 10, is_timed=False)
    assert admits(a_purse(99), 10, is_timed=False)
    assert not admits(a_purse(99, reserved=1), 10, is_timed=False)
    assert not admits(a_purse(100), 1, is_timed=False)


def test_a_model_without_a_price_is_never_for_nothing() -> None:
    assert amount_of(MONEY, None, 1_000, 0, UNPRICED) == 10_000
    assert amount_of(MONEY, Price(input=0.0001, output=0), 1, 0, UNPRICED) == 1
    assert amount_of(BudgetUnit.TOKENS, None, 3, 4, UNPRICED) == 7
    assert amount_of(MONEY, Price(input=2.5, output=10), 1_000, 100, UNPRICED) == 3_500
    assert micros_of(5.00) == 5_000_000


def test_the_question_is_one_that_can_be_pressed() -> None:
    limits = BudgetLimits(day=5_000_000)
    purse = a_purse(5_000_000, limit=5_000_000)
    assert question_words(purse, "A request") == "5.00 of today's 5.00 used. A request waits."
    assert [(each.choice_id, each.label) for each in offers(purse, limits)] == [
        ("/budget more 3", "1.00 more"),
        ("/budget tomorrow", "Tomorrow"),
    ]
    assert step_of(purse, limits) == 1_000_000
    assert "the last fifth is kept for people" in used_words(purse, is_timed=True)


def test_days_are_numbered_where_the_gateway_is() -> None:
    assert day_of(0, UTC) == day_of(86_399_999, UTC) == day_of(86_400_000, UTC) - 1
