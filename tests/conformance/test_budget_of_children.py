"""What sub-agents and schedules spend is spent by the chat and the schedule that they work for."""

from dataclasses import replace

import pytest

from koboshi.domain.budget import Bill, BudgetLimits, BudgetScope, BudgetUnit, OverBudget
from koboshi.domain.schedule import WorkPlace
from koboshi.domain.turn import Claim
from tests.harness.family import claim_of, delegates
from tests.harness.homes import Home
from tests.harness.spending import reserve
from tests.harness.timed import HOUR_MS, a_clockwork, an_order

LIMITS = BudgetLimits(unit=BudgetUnit.TOKENS, chat=100, schedule=100)


@pytest.fixture
async def limited(home: Home) -> Home:
    await home.reopen(crash=False, world=replace(home.world, budget=LIMITS))
    return home


async def spend(home: Home, claim: Claim, amount: int) -> bool:
    bill = await reserve(home, claim, amount)
    if isinstance(bill, Bill):
        await home.store.budget.settle(bill, amount)
    return isinstance(bill, Bill)


async def used(home: Home, scope: BudgetScope) -> list[int]:
    return [each.used for each in await home.store.budget.today() if each.scope is scope]


async def test_a_chat_cannot_spend_more_by_giving_work_away(limited: Home) -> None:
    """Issue 21: a child has its parent's budget. Also a child of a child, and over a death."""
    parent = await limited.work_on()
    child = await delegates(limited, parent)
    first = await claim_of(limited, child)
    deeper = await delegates(limited, first, "count again")
    second = await claim_of(limited, deeper)

    assert await spend(limited, parent, 40)
    assert await spend(limited, first, 40)
    assert await spend(limited, second, 20)
    assert not await spend(limited, second, 10)
    assert not await spend(limited, parent, 10)
    assert await used(limited, BudgetScope.CHAT) == [100]


@pytest.mark.parametrize("place", WorkPlace)
async def test_work_of_a_schedule_is_its_own_also_when_it_is_given_away(
    limited: Home, place: WorkPlace
) -> None:
    clock = await a_clockwork(limited)
    await clock.make(an_order(place=place))
    limited.clock.move(HOUR_MS)
    assert await clock.fire()
    claim = await limited.claim()
    child = await claim_of(limited, await delegates(limited, claim))

    assert await spend(limited, claim, 50)
    assert await spend(limited, child, 30)
    over = await reserve(limited, child, 10)

    assert isinstance(over, OverBudget)
    assert "the last fifth is kept for people" in over.words
    assert await used(limited, BudgetScope.SCHEDULE) == [80]
    assert await used(limited, BudgetScope.CHAT) == [80]


async def test_the_owner_of_a_chat_is_told_once_of_a_child_that_waits(limited: Home) -> None:
    parent = await limited.work_on()
    child = await claim_of(limited, await delegates(limited, parent))
    assert await spend(limited, parent, 100)
    before = len(limited.sql("SELECT 1 FROM outbox"))

    for claim in (child, parent, child):
        assert isinstance(await reserve(limited, claim, 10), OverBudget)

    assert len(limited.sql("SELECT 1 FROM outbox")) == before + 1
