"""How often a bot speaks: a little at once, then steadily; to each chat, and to all of them."""

from anyio import create_task_group

from koboshi.channels.common import pacing as module
from koboshi.channels.common.pacing import RateLimiter
from koboshi.channels.telegram.rate_limiter import (
    CHAT_AT_ONCE,
    CHAT_PER_SECOND,
    GROUP_AT_ONCE,
    GROUP_PER_SECOND,
    telegram_limiter,
)
from tests.harness.virtual import VirtualClock


async def speak(manners: RateLimiter, clock: VirtualClock, chat: str, times: int) -> list[float]:
    """Say so much in a chat, one after the other. Returns when each was said."""
    said: list[float] = []
    for _ in range(times):
        await manners.wait_for_chat(chat)
        await manners.wait_for_all(chat)
        said.append(clock.monotonic())
    return said


def most_within(said: list[float], seconds: float) -> int:
    """The most that was said in any such time."""
    return max(sum(begin <= each < begin + seconds for each in said) for begin in said)


async def test_a_person_hears_a_little_at_once_and_then_steadily() -> None:
    clock = VirtualClock()
    said = await speak(telegram_limiter(clock, 30), clock, "7", 100)

    assert said[CHAT_AT_ONCE - 1] == 0
    assert most_within(said, 60) <= 60 * CHAT_PER_SECOND + CHAT_AT_ONCE
    assert said[-1] <= 100 / CHAT_PER_SECOND


async def test_a_group_hears_twenty_in_a_minute() -> None:
    clock = VirtualClock()
    said = await speak(telegram_limiter(clock, 30), clock, "-100200", 100)

    assert most_within(said, 60) <= 60 * GROUP_PER_SECOND + GROUP_AT_ONCE


async def test_all_chats_together_hear_no_more_than_is_allowed() -> None:
    clock = VirtualClock()
    manners, said = telegram_limiter(clock, 30), list[float]()

    async def talk(chat: str) -> None:
        said.extend(await speak(manners, clock, chat, 4))

    async with create_task_group() as tasks:
        for number in range(200):
            tasks.start_soon(talk, f"{number}")

    assert most_within(said, 1) <= 60
    assert most_within(said, 10) <= 330
    assert max(said) <= 800 / 30 + 1


async def test_one_chat_does_not_hold_up_the_others() -> None:
    clock = VirtualClock()
    manners = telegram_limiter(clock, 30)
    await speak(manners, clock, "7", 20)
    before = clock.monotonic()

    assert await speak(manners, clock, "8", 1) == [before]


async def test_without_limits_of_our_own_no_one_waits() -> None:
    clock = VirtualClock()

    assert set(await speak(telegram_limiter(clock, 0), clock, "7", 1_000)) == {0.0}


async def test_what_passes_is_not_shown_where_quiet_is_asked_for() -> None:
    clock = VirtualClock()
    manners = telegram_limiter(clock, 30)
    manners.pause_until("7", 10)

    assert not manners.may_show("7")
    assert manners.may_show("8")
    await speak(manners, clock, "7", 15)
    assert clock.monotonic() > 10
    assert manners.may_show("7")


async def test_chats_are_not_remembered_without_end() -> None:
    clock = VirtualClock()
    manners = telegram_limiter(clock, 1_000_000)
    for number in range(module.CHATS_MAX + 100):
        await manners.wait_for_chat(f"{number}")

    assert manners.chats_remembered == module.CHATS_MAX
