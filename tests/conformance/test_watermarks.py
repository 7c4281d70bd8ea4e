"""How far each chat was read is stored with what was read, for one account, and read back."""

from typing import NoReturn

from koboshi.ports.store import Arrival
from tests.harness.homes import WEB, Home


def _no_command(*_: object) -> NoReturn:
    raise AssertionError("no command comes here")


async def test_a_watermark_is_one_commit_with_the_messages_before_it(home: Home) -> None:
    arrivals = [Arrival(inbound=home.inbound("hello", key="m1"))]
    await home.store.inbox.accept(
        WEB,
        arrivals,
        cursor="c1",
        respond=_no_command,
        account="me",
        watermarks={"ann": "w1", "bob": "w2"},
    )
    await home.reopen(crash=True)

    assert await home.store.inbox.watermarks(WEB, "me") == {"ann": "w1", "bob": "w2"}
    assert await home.store.inbox.watermarks(WEB, "another") == {}
    assert await home.store.inbox.cursor(WEB, "me") == "c1"


async def test_a_watermark_moves_and_an_empty_one_forgets_its_chat(home: Home) -> None:
    for marks in ({"ann": "w1", "bob": "w2"}, {"ann": "w3", "bob": ""}):
        await home.store.inbox.accept(
            WEB, [], cursor=None, respond=_no_command, account="me", watermarks=marks
        )

    assert await home.store.inbox.watermarks(WEB, "me") == {"ann": "w3"}
    assert await home.store.inbox.cursor(WEB, "me") is None
