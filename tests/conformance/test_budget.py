"""The budget: reserved before a call, settled after it, and never passed by more than one reply."""

from dataclasses import replace

import pytest

from koboshi.commands.parse import parse_command
from koboshi.commands.run import respond
from koboshi.domain.budget import Bill, BudgetLimits, BudgetUnit, OverBudget
from koboshi.domain.errors import Fenced
from koboshi.ports.store import Arrival
from tests.harness.fake_time import DAY_MS
from tests.harness.homes import Home, OpenHome
from tests.harness.spending import LIMIT, reserve, spend_at_once, spent


@pytest.fixture
async def home(open_home: OpenHome) -> Home:
    made = await open_home()
    limits = BudgetLimits(unit=BudgetUnit.TOKENS, day=LIMIT)
    await made.reopen(crash=False, world=replace(made.world, budget=limits))
    return made


async def test_a_reply_settles_what_was_reserved(home: Home) -> None:
    claim = await home.work_on()
    bill = await reserve(home, claim, 300)
    assert isinstance(bill, Bill)
    assert await spent(home) == (0, 300)
    await home.store.budget.settle(bill, 120)
    await home.store.budget.settle(bill, 120)
    assert await spent(home) == (120, 0)


async def test_a_call_that_was_lost_counts_as_spent(home: Home) -> None:
    """Issue 21: a lost call keeps its reservation, and settles itself once."""
    claim = await home.work_on()
    for _ in range(3):
        await reserve(home, claim, 100)
        await home.reopen(crash=True)
    assert await spent(home) == (200, 100)
    last = await reserve(home, claim, 100)
    assert await spent(home) == (300, 100)
    assert isinstance(last, Bill)
    await home.store.budget.settle(last, 10)
    assert await spent(home) == (310, 0)


async def test_many_at_once_never_pass_the_limit_by_more_than_one(home: Home) -> None:
    assert await spend_at_once(home) <= LIMIT
    assert await spend_at_once(home) < LIMIT + 150
    assert await spend_at_once(home) < LIMIT + 150


async def test_a_rule_that_forgets_what_is_reserved_is_found(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug."""
    monkeypatch.setattr(
        "koboshi.kernel.budget.admits", lambda purse, _amount, **_: purse.used < purse.limit
    )
    assert await spend_at_once(home) > LIMIT + 150


async def test_owners_are_asked_once_and_a_press_lets_the_turn_go_on(home: Home) -> None:
    """Issue 21: a durable question; the turn waits in the queue, over a kill."""
    claim = await home.work_on()
    bill = await reserve(home, claim, LIMIT)
    assert isinstance(bill, Bill)
    await home.store.budget.settle(bill, LIMIT)
    await reserve(home, claim, 10)
    over = await reserve(home, claim, 10)
    assert isinstance(over, OverBudget)
    await home.store.budget.hold(claim, over.wait_ms, over.words)
    await home.reopen(crash=True)
    assert await home.claims() == ()
    asked = home.sql("SELECT text, choices FROM outbox WHERE cause LIKE 'budget:%'")
    assert len(asked) == 1
    assert asked[0][0] == "1,000 tokens of today's 1,000 tokens used. A request waits."
    purse = (await home.store.budget.today())[0]

    await press(home, f"/budget more {purse.purse_id}")
    (again,) = await home.claims()
    assert again.turn_id == claim.turn_id
    assert isinstance(await reserve(home, again, 200), Bill)


async def press(home: Home, text: str) -> None:
    arrival = Arrival(inbound=home.inbound(text), command=parse_command(text))
    await home.accept(arrival, respond=respond)


async def test_tomorrow_it_goes_on_by_itself(home: Home) -> None:
    claim = await home.work_on()
    bill = await reserve(home, claim, LIMIT)
    assert isinstance(bill, Bill)
    await home.store.budget.settle(bill, LIMIT)
    over = await reserve(home, claim, 10)
    assert isinstance(over, OverBudget)
    assert 0 < over.wait_ms <= DAY_MS
    await home.store.budget.hold(claim, over.wait_ms, over.words)
    home.clock.move(over.wait_ms)
    (again,) = await home.claims()
    assert isinstance(await reserve(home, again, 10), Bill)


async def test_another_days_budget_is_not_raised(home: Home) -> None:
    claim = await home.work_on()
    await reserve(home, claim, 10)
    purse = (await home.store.budget.today())[0]
    home.clock.move(2 * DAY_MS)
    await press(home, f"/budget more {purse.purse_id}")
    assert home.sql("SELECT sum(more) FROM purses")[0][0] == 0


async def test_a_turn_that_is_not_ours_is_not_held(home: Home) -> None:
    claim = await home.work_on()
    await home.die_and_recover(claim.turn_id)
    with pytest.raises(Fenced):
        await home.store.budget.hold(claim, 1_000, "late")


async def test_people_and_chats_have_limits_of_their_own(home: Home) -> None:
    limits = BudgetLimits(unit=BudgetUnit.TOKENS, person=100, chat=150)
    await home.reopen(crash=False, world=replace(home.world, budget=limits))
    here, there = await home.work_on(), await home.work_on(chat="other", person="bob")
    bill = await reserve(home, here, 100)
    assert isinstance(bill, Bill)
    await home.store.budget.settle(bill, 100)
    over = await reserve(home, here, 10)
    assert isinstance(over, OverBudget)
    assert "for this person" in over.words
    assert isinstance(await reserve(home, there, 10), Bill)
