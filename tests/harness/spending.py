"""Calls that are billed, many at once."""

from itertools import count

from anyio import create_task_group

from koboshi.domain.budget import Bill, BudgetScope, OverBudget
from koboshi.domain.turn import Claim
from tests.harness.homes import Home

LIMIT = 1_000
ROOMS = count()


async def reserve(home: Home, claim: Claim, amount: int) -> Bill | OverBudget:
    return await home.store.budget.reserve(claim.session_id, claim.turn_id, "a:1", amount)


async def spent(home: Home) -> tuple[int, int]:
    purses = [each for each in await home.store.budget.today() if each.scope is BudgetScope.ALL]
    return (purses[0].used, purses[0].reserved) if purses else (0, 0)


async def spend_at_once(*homes: Home, calls: int = 20, cost: int = 150) -> int:
    """What many calls at once have cost in all, each as much as it reserved."""
    bills: list[tuple[Home, Bill]] = []
    names = [f"room-{next(ROOMS)}" for _ in homes]
    claims = [
        (home, await home.work_on(chat=name, key=name))
        for home, name in zip(homes, names, strict=True)
    ]

    async def call(home: Home, claim: Claim) -> None:
        bill = await reserve(home, claim, cost)
        if isinstance(bill, Bill):
            bills.append((home, bill))

    async with create_task_group() as tasks:
        for number in range(calls):
            tasks.start_soon(call, *claims[number % len(claims)])
    for home, bill in bills:
        await home.store.budget.settle(bill, cost)
    return (await spent(homes[0]))[0]
