"""A group where people write who are let in and shut out again."""

from koboshi.ports.channel import Receipt
from tests.harness.backends import nth_code
from tests.harness.homes import FRONT, Home

ROOM = "room"


async def let_in(home: Home, person: str = "eve", number: int = 1) -> None:
    await home.knock(person)
    assert await home.store.people.approve(nth_code(number))


async def writes(home: Home, person: str, text: str = "hello") -> Receipt:
    """A message in the group."""
    return await home.knock(person, text, chat=ROOM, is_private=False)


async def revoke(home: Home, person: str = "eve") -> int:
    revoked = await home.store.people.revoke(FRONT, person)
    assert revoked.was_paired
    return revoked.turns_set_aside
