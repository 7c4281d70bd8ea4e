"""Numbers of steps that are drawn for a whole batch: steps of a chat stand in the order of their
numbers, whatever wrote them."""

from collections import deque
from pathlib import Path

from anyio import create_task_group

from koboshi.stores.postgres.transaction import DrawnSteps
from tests.harness.homes import Home
from tests.harness.postgres_backend import Database, PostgresBackend

NOTHING_FOUND_BUT_BY_THE_SECOND: tuple[set[int], ...] = (set(), {1}, set())


def test_numbers_are_taken_in_their_order_until_they_are_used_up() -> None:
    drawn = DrawnSteps(deque([7, 8]), set())
    assert [drawn.take(), drawn.take(), drawn.take()] == [7, 8, None]


def test_nothing_is_taken_once_an_operation_has_found_a_key() -> None:
    """It draws a greater number, and what follows it in its chat must not have a smaller one."""
    left = deque([7, 8, 9])
    first, second, third = (DrawnSteps(left, found) for found in NOTHING_FOUND_BUT_BY_THE_SECOND)
    assert [first.take(), second.take(), third.take()] == [7, None, None]


async def test_messages_that_come_together_have_steps_of_their_own(
    database: Database, tmp_path: Path
) -> None:
    home = Home(backend=PostgresBackend(tmp_path, database=database))
    await home.boot()

    async def say(number: int) -> None:
        await home.say("hello", chat=f"chat {number}", key=str(number))

    async with create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(say, number)
    steps = home.sql("SELECT session_id, seq FROM steps")
    assert len({seq for _, seq in steps}) == len(steps) == 8
    await home.store.close()
