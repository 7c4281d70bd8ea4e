"""A home with a past: talk that is over, days later, and the forgetting of it."""

from koboshi.runtime.retention import Forgetting
from tests.harness.fake_time import DAY_MS
from tests.harness.homes import Home


async def talk(home: Home, count: int = 1, *, chat: str = "ann") -> None:
    """Turns with a tool call each, answered and delivered."""
    for number in range(count):
        claim = await home.work_on(f"question {number}", chat=chat)
        await home.step(claim)
        await home.answer(claim, f"answer {number}")
        await home.deliver(chat)


async def forget(home: Home, journal_days: int = 90, deliveries_days: int = 90) -> tuple[int, int]:
    return await Forgetting(
        store=home.store,
        clock=home.clock,
        worker_id=home.worker.worker_id,
        journal_days=journal_days,
        deliveries_days=deliveries_days,
    ).forget()


async def later(home: Home, days: int) -> None:
    """Another boot, so many days later: what came before is not of this boot."""
    home.clock.move(days * DAY_MS)
    await home.reopen(crash=False)
