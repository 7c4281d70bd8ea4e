"""What every channel promises, whatever its platform. A new channel adds its rig to RIGS."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import httpx2
import pytest
from anyio import Event as Signal
from anyio import create_task_group, fail_after

from koboshi.channels.web.channel import WebChannel
from koboshi.domain.errors import StoreFailed
from koboshi.domain.ids import DeliveryId, SessionId, TurnId
from koboshi.domain.outbox import Delivery, Near, Sent
from koboshi.domain.route import Route
from koboshi.ports.channel import NO_WATERMARKS, Accept, Channel, Inbound, Receipt
from tests.channels.discord_rig import discord_rig_at
from tests.channels.fakes import FakeGateway, client_of, until, web_channel
from tests.channels.matrix_rig import rig_at as matrix_rig_at
from tests.channels.slack_rig import slack_rig_at
from tests.channels.telegram_rig import rig_at
from tests.fakes.discord.server import serving_discord
from tests.fakes.slack.server import serving as serving_slack
from tests.fakes.telegram.server import serving
from tests.harness.polling import WITHIN_S
from tests.harness.synapse import shared_homeserver

NOTHING_NEAR = Near(before=(), known=(), is_alone=True)


class Rig(Protocol):
    """One channel and the platform behind it, as a test holds them."""

    @property
    def channel(self) -> Channel: ...

    @property
    def route(self) -> Route:
        """A place on the platform that exists."""
        ...

    @property
    def near(self) -> Near:
        """What is known of that place before anything is sent to it."""
        ...

    async def ready(self) -> None:
        """Wait until the channel receives."""
        ...

    async def write(self, text: str, number: int) -> bool:
        """A person sends their message `number`. Returns whether the platform was told that we
        have it; False once it knows that we do not."""
        ...


MakeRig = Callable[[], AbstractAsyncContextManager[Rig]]


@dataclass
class WebRig:
    channel: WebChannel
    route: Route
    near: Near = NOTHING_NEAR

    async def ready(self) -> None:
        await self.channel.listening()

    async def write(self, text: str, number: int) -> bool:
        url = f"http://127.0.0.1:{await self.channel.listening()}"
        async with client_of(url) as client:
            try:
                response = await client.post(
                    f"/api/v1/sessions/{self.route.chat}/messages",
                    json={"text": text, "thread": self.route.thread},
                    headers={"Idempotency-Key": str(number)},
                )
            except httpx2.TransportError:
                return False
        return response.status_code == 202


@asynccontextmanager
async def web_rig() -> AsyncIterator[Rig]:
    channel = web_channel(FakeGateway())
    yield WebRig(channel, Route(channel=channel.name, chat="room", thread="topic"))


@asynccontextmanager
async def telegram_rig() -> AsyncIterator[Rig]:
    async with serving() as fake, rig_at(fake) as rig:
        yield rig


@asynccontextmanager
async def discord_rig() -> AsyncIterator[Rig]:
    async with serving_discord() as fake, discord_rig_at(fake) as rig:
        yield rig


@asynccontextmanager
async def matrix_rig() -> AsyncIterator[Rig]:
    server = shared_homeserver()
    await server.ready()
    async with matrix_rig_at(server) as rig:
        yield rig


@asynccontextmanager
async def slack_rig() -> AsyncIterator[Rig]:
    async with serving_slack() as fake, slack_rig_at(fake) as rig:
        yield rig


RIGS: dict[str, MakeRig] = {
    "web": web_rig,
    "telegram": telegram_rig,
    "matrix": matrix_rig,
    "discord": discord_rig,
    "slack": slack_rig,
}


@pytest.fixture(params=RIGS.values(), ids=list(RIGS))
def make_rig(request: pytest.FixtureRequest) -> MakeRig:
    made: MakeRig = request.param
    return made


async def test_a_message_is_acknowledged_only_after_it_is_stored(make_rig: MakeRig) -> None:
    """S162: the commit comes first. The platform is told nothing while it is under way."""
    gateway = FakeGateway(gate=Signal())
    reached, told = Signal(), Signal()

    async def accept(
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        if batch:
            reached.set()
        receipts = await gateway.accept(batch, cursor, watermarks)
        assert not told.is_set()
        return receipts

    async def write() -> None:
        if await rig.write("hello", 1):
            told.set()

    async with make_rig() as rig, receiving(rig, accept), create_task_group() as tasks:
        tasks.start_soon(write)
        with fail_after(WITHIN_S):
            await reached.wait()
            assert not told.is_set()
            assert gateway.gate is not None
            gateway.gate.set()
            await told.wait()

    (_, inbound) = next(iter(gateway.stored.values()))
    assert (inbound.words.text, inbound.route) == ("hello", rig.route)


async def test_a_message_that_could_not_be_stored_is_not_acknowledged(make_rig: MakeRig) -> None:
    """S162, S166: the platform keeps it, or the person knows; and the error reaches the gateway."""

    async def accept(
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        if not batch:
            return ()
        raise StoreFailed("the outcome of a commit is unknown")

    answers: list[bool] = []

    async def write() -> None:
        answers.append(await rig.write("hello", 1))

    async with make_rig() as rig, create_task_group() as tasks:
        tasks.start_soon(write)
        with fail_after(WITHIN_S), pytest.raises(StoreFailed):
            await rig.channel.receive(None, accept)
        await until(lambda: answers)

    assert answers == [False]


async def test_a_message_that_comes_twice_has_the_same_id_twice(make_rig: MakeRig) -> None:
    """S97: what a platform repeats is recognised by its id; different messages have different
    ones."""
    batches: list[Inbound] = []
    gateway = FakeGateway()

    async def accept(
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        batches.extend(batch)
        return await gateway.accept(batch, cursor, watermarks)

    async with make_rig() as rig, receiving(rig, accept):
        for number in (1, 1, 2):
            assert await rig.write("hello", number)

    first, again, other = [inbound.external_id for inbound in batches]
    assert first == again != other


async def test_a_send_that_arrived_is_known_by_the_platform_id(make_rig: MakeRig) -> None:
    async with make_rig() as rig, receiving(rig, FakeGateway().accept):
        outcome = await rig.channel.send(delivery(rig.route))

    assert isinstance(outcome, Sent)
    assert outcome.platform_id


async def test_a_repeated_send_leaves_one_copy_where_the_channel_says_so(make_rig: MakeRig) -> None:
    """S146: after an unknown outcome the same delivery is sent again."""
    async with make_rig() as rig, receiving(rig, FakeGateway().accept):
        if not rig.channel.abilities.idempotent_send:
            pytest.skip("the platform cannot tell a repeat")
        first = await rig.channel.send(delivery(rig.route))
        again = await rig.channel.send(replace(delivery(rig.route), is_ambiguous=True, attempts=2))

    assert first == again


async def test_a_delivery_is_found_where_the_channel_says_so(make_rig: MakeRig) -> None:
    """S146: an unknown outcome is resolved by looking."""
    async with make_rig() as rig, receiving(rig, FakeGateway().accept):
        sent = await rig.channel.send(delivery(rig.route))
        found = await rig.channel.find(delivery(rig.route), rig.near)

    assert found == sent if rig.channel.abilities.finds_sent else found is None


async def test_typing_never_fails(make_rig: MakeRig) -> None:
    """S32: what is only shown never holds anything up, connected or not."""
    async with make_rig() as rig:
        await rig.channel.typing(rig.route)
        async with receiving(rig, FakeGateway().accept):
            await rig.channel.typing(rig.route)


async def test_a_message_that_arrived_can_be_edited_where_the_channel_says_so(
    make_rig: MakeRig,
) -> None:
    """S102: the one who says that they cannot edit is not asked to."""
    async with make_rig() as rig, receiving(rig, FakeGateway().accept):
        if not rig.channel.abilities.edits:
            pytest.skip("what was sent stays as it is")
        sent = await rig.channel.send(delivery(rig.route))
        assert isinstance(sent, Sent)
        await rig.channel.edit(rig.route, sent.platform_id, "other words")


async def test_receiving_ends_soon_after_it_is_cancelled(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        with fail_after(WITHIN_S):
            async with receiving(rig, FakeGateway().accept):
                pass


async def test_abilities_are_such_that_texts_can_be_split(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        assert rig.channel.split("short") == ("short",)
        assert " ".join(rig.channel.split("word " * 20_000)).split() == ["word"] * 20_000
        assert rig.channel.name.count(":") == 1


async def test_a_first_message_does_not_have_to_wait(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        with fail_after(WITHIN_S):
            await rig.channel.pace(rig.route)


@asynccontextmanager
async def receiving(rig: Rig, accept: Accept) -> AsyncIterator[None]:
    async with create_task_group() as tasks:
        tasks.start_soon(rig.channel.receive, None, accept)
        with fail_after(WITHIN_S):
            await rig.ready()
        yield
        tasks.cancel_scope.cancel()


def delivery(route: Route) -> Delivery:
    return Delivery(
        delivery_id=DeliveryId(7),
        session_id=SessionId(1),
        turn_id=TurnId(1),
        route=route,
        cause="step:1",
        part=1,
        parts=1,
        text="hello",
        choices=(),
        question=None,
        anchor="",
        attempts=1,
        created_ms=0,
        is_ambiguous=False,
        may_be_duplicate=False,
        send_key="0123456789-7",
    )
