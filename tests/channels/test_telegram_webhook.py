"""Where Telegram calls us: with the secret, one at a time, answered after the commit."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx2
import pytest
from anyio import Event, create_task_group, fail_after

from koboshi.channels.telegram.receiving import secret_of
from koboshi.domain.errors import ChannelUnusable, StoreFailed
from koboshi.ports.channel import NO_WATERMARKS, Accept, Inbound, Receipt
from tests.channels.fakes import FakeGateway, until
from tests.channels.telegram_rig import a_channel, receiving
from tests.fakes.telegram.server import FakeTelegram
from tests.harness.http import connection
from tests.harness.polling import WITHIN_S
from tests.harness.ports import free_port
from tests.harness.telegram_updates import message, update

SECRET = "X-Telegram-Bot-Api-Secret-Token"


@asynccontextmanager
async def called_at(fake: FakeTelegram, accept: Accept) -> AsyncIterator[httpx2.AsyncClient]:
    """The channel that waits to be called, and a person who can call it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/hook"
    async with (
        a_channel(fake, webhook_url=url, webhook_port=port) as channel,
        receiving(channel, accept),
        connection(url) as client,
    ):
        yield client


def texts(gateway: FakeGateway) -> list[str]:
    return [each.words.text for _, each in gateway.stored.values() if each.ignored is None]


async def test_what_people_write_is_brought_and_settled(fake: FakeTelegram) -> None:
    gateway = FakeGateway()
    ann = fake.world.user("Ann")
    fake.world.say(fake.world.private_chat(ann), ann, "before it listens")
    async with called_at(fake, gateway.accept):
        fake.world.say(fake.world.private_chat(ann), ann, "hello")
        await until(lambda: texts(gateway) == ["before it listens", "hello"])
        await until(lambda: not len(fake.world.updates))

    assert not fake.history.asked_to_drop()
    assert not fake.history.of("getUpdates")


@pytest.mark.parametrize("shown", [{}, {SECRET: ""}, {SECRET: "guessed"}])
async def test_who_does_not_know_the_secret_is_not_heard(
    fake: FakeTelegram, shown: dict[str, str]
) -> None:
    gateway = FakeGateway()
    async with called_at(fake, gateway.accept) as client:
        refused = await client.post("", content=update(message=message("let me in")), headers=shown)

    assert refused.status_code == 403
    assert not gateway.stored


async def test_the_secret_is_not_the_token(fake: FakeTelegram) -> None:
    assert fake.token not in secret_of(fake.token)
    assert secret_of(fake.token) != secret_of(f"{fake.token}x")


async def test_it_is_answered_after_the_commit(fake: FakeTelegram) -> None:
    """S162."""
    gateway = FakeGateway(gate=Event())
    answers: list[int] = []
    shown = {SECRET: secret_of(fake.token)}
    async with called_at(fake, gateway.accept) as client, create_task_group() as tasks:

        async def call() -> None:
            content = update(message=message("hello"))
            answers.append((await client.post("", content=content, headers=shown)).status_code)

        reached = len(gateway.stored)
        tasks.start_soon(call)
        await client.get("", headers=shown)
        assert (answers, reached) == ([], 0)
        assert gateway.gate is not None
        gateway.gate.set()
        await until(lambda: answers)

    assert answers == [200]
    assert texts(gateway) == ["hello"]


async def test_what_could_not_be_stored_is_brought_again(fake: FakeTelegram) -> None:
    """S166."""
    gateway, failures = FakeGateway(), 3

    def fail_at_first() -> None:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise OSError("no space left")

    gateway.may_commit = fail_at_first
    async with called_at(fake, gateway.accept):
        ann = fake.world.user("Ann")
        fake.world.say(fake.world.private_chat(ann), ann, "hello")
        await until(lambda: texts(gateway) == ["hello"])
        await until(lambda: not len(fake.world.updates))

    assert [push.status for push in fake.webhook.pushes] == [503, 503, 503, 200]


async def test_a_failed_store_reaches_the_gateway(fake: FakeTelegram) -> None:
    """The outcome of a commit is unknown: this process has to end."""

    async def accept(
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        if not batch:
            return ()
        raise StoreFailed("the outcome of a commit is unknown")

    port = free_port()
    ann = fake.world.user("Ann")
    fake.world.say(fake.world.private_chat(ann), ann, "hello")
    url = f"http://127.0.0.1:{port}/hook"
    async with a_channel(fake, webhook_url=url, webhook_port=port) as channel:
        with fail_after(WITHIN_S), pytest.raises(StoreFailed):
            await channel.receive(None, accept)

    assert len(fake.world.updates) == 1


@pytest.mark.parametrize(
    "method, size, status",
    [("POST", 5_000_000, 413), ("GET", 0, 405), ("POST", 3_000_000, 200), ("POST", 0, 200)],
)
async def test_what_is_no_update_is_answered_all_the_same(
    fake: FakeTelegram, method: str, size: int, status: int
) -> None:
    gateway = FakeGateway()
    shown = {SECRET: secret_of(fake.token)}
    async with called_at(fake, gateway.accept) as client:
        answered = await client.request(method, "", content=b"x" * size, headers=shown)

        assert answered.status_code == status
        assert len(gateway.stored) == (status == 200)


async def test_a_port_that_is_taken_is_named(fake: FakeTelegram) -> None:
    url = "http://127.0.0.1:1/hook"
    async with a_channel(fake, webhook_url=url, webhook_port=fake.port) as channel:
        with fail_after(WITHIN_S), pytest.raises(ChannelUnusable, match=str(fake.port)):
            await channel.receive(None, FakeGateway().accept)
