"""Posting to the web channel, over a real socket."""

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial

import httpx2
import pytest
from anyio import Event as Signal
from anyio import connect_tcp, create_task_group, fail_after

from koboshi.channels.web.limits import WebLimits
from koboshi.domain.inbox import EntryState
from koboshi.domain.route import Route
from koboshi.ports.channel import NO_WATERMARKS, Inbound, Receipt
from tests.channels.fakes import TOKEN, WEB, FakeGateway, client_of, serving, until, web_channel
from tests.harness.polling import WITHIN_S

PATH = "/api/v1/sessions/room/messages"
KEY = {"Idempotency-Key": "key-1"}


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


async def test_a_message_is_answered_with_its_id_and_state(gateway: FakeGateway) -> None:
    """S162: 202 says that it is stored, and what has become of it."""
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        response = await client.post(PATH, json={"text": "hi", "thread": "a"}, headers=KEY)

    assert response.status_code == 202
    assert response.json() == {"message": "m1", "state": "attached", "duplicate": False}
    (_, inbound) = gateway.stored["room/key-1"]
    assert inbound.route == Route(channel=WEB, chat="room", thread="a")
    assert (inbound.sender, inbound.words.text) == ("web", "hi")


async def test_a_repeated_message_is_stored_once(gateway: FakeGateway) -> None:
    """S97, S162: a client that did not hear us sends again, with the same key."""
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        first = await client.post(PATH, json={"text": "hi"}, headers=KEY)
        second = await client.post(PATH, json={"text": "hi"}, headers=KEY)

    assert (first.status_code, second.status_code) == (202, 202)
    assert second.json() == first.json() | {"duplicate": True}
    assert len(gateway.stored) == 1


@pytest.mark.parametrize(
    "body",
    [{"text": "ho"}, {"text": "hi", "thread": "a"}, {"text": "hi", "sender": "ann"}],
    ids=str,
)
async def test_another_message_under_a_used_key_is_a_conflict(
    gateway: FakeGateway, body: dict[str, str]
) -> None:
    """S162: it is not stored, so it is not acknowledged as a repeat of what is."""
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        await client.post(PATH, json={"text": "hi"}, headers=KEY)
        response = await client.post(PATH, json=body, headers=KEY)

    assert refusal(response) == (409, "key-reused")
    assert len(gateway.stored) == 1


@pytest.mark.parametrize(
    "headers", [{}, {"Idempotency-Key": ""}, {"Idempotency-Key": "k" * 201}], ids=str
)
async def test_a_message_without_a_usable_key_is_refused(
    gateway: FakeGateway, headers: dict[str, str]
) -> None:
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        response = await client.post(PATH, json={"text": "hi"}, headers=headers)

    assert response.status_code == 400
    assert "Idempotency-Key" in response.json()["error"]["message"]
    assert not gateway.stored


@pytest.mark.parametrize(
    "body,status",
    [(b"no json", 400), (b'{"text": "\xff"}', 400), (b'{"text": "a", "b": 1}', 400)],
)
async def test_a_body_that_does_not_fit_is_refused(
    gateway: FakeGateway, body: bytes, status: int
) -> None:
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        response = await client.post(PATH, content=body, headers=KEY)

    assert refusal(response) == (status, "bad-body")
    assert not gateway.stored


async def test_a_body_that_is_too_large_is_refused_however_it_is_sent(gateway: FakeGateway) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * 100

    channel = web_channel(gateway, limits=WebLimits(body_bytes_max=500))
    async with serving(channel, gateway.accept) as url, client_of(url) as client:
        announced = await client.post(PATH, content=b"x" * 1_000, headers=KEY)
        chunked = await client.post(PATH, content=chunks(), headers=KEY)

    assert refusal(announced) == refusal(chunked) == (413, "too-large")


async def test_a_body_that_does_not_come_is_not_waited_for(gateway: FakeGateway) -> None:
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Idempotency-Key: k\r\nContent-Length: 100\r\n\r\n{"
    )
    channel = web_channel(gateway, limits=WebLimits(body_s=0.05))
    async with (
        serving(channel, gateway.accept),
        await connect_tcp("127.0.0.1", await channel.listening()) as connection,
    ):
        await connection.send(head.encode())
        with fail_after(WITHIN_S):
            answer = await connection.receive()

    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("chat", ["%0a", "a%1b%5b2J", "%ff", "a%e2%80%ae", "c" * 257])
async def test_a_chat_must_have_a_name_that_can_be_printed(gateway: FakeGateway, chat: str) -> None:
    path = f"/api/v1/sessions/{chat}/messages"
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        response = await client.post(path, json={"text": "hi"}, headers=KEY)

    assert refusal(response) == (400, "bad-chat")


async def test_a_store_that_does_not_answer_is_admitted_and_the_message_still_counts(
    gateway: FakeGateway,
) -> None:
    """S162: it is unknown yet, and we say so. The commit goes on; the repeat finds it."""
    gateway.gate = Signal()
    channel = web_channel(gateway, limits=WebLimits(store_s=0.05))
    async with serving(channel, gateway.accept) as url, client_of(url) as client:
        unknown = await client.post(PATH, json={"text": "hi"}, headers=KEY)
        gateway.gate.set()
        await until(lambda: gateway.stored)
        again = await client.post(PATH, json={"text": "hi"}, headers=KEY)

    assert refusal(unknown) == (503, "not-known")
    assert int(unknown.headers["retry-after"]) >= 1
    assert "same Idempotency-Key" in unknown.json()["error"]["message"]
    assert again.json() == {"message": "m1", "state": "attached", "duplicate": True}


async def test_a_client_that_leaves_does_not_take_its_message_along(gateway: FakeGateway) -> None:
    gateway.gate = Signal()
    reached = Signal()

    async def accept_slowly(
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        reached.set()
        return await gateway.accept(batch, cursor, watermarks)

    async with serving(web_channel(gateway), accept_slowly) as url, client_of(url) as client:
        async with create_task_group() as tasks:
            tasks.start_soon(partial(client.post, PATH, json={"text": "hi"}, headers=KEY))
            await reached.wait()
            tasks.cancel_scope.cancel()
        gateway.gate.set()
        await until(lambda: gateway.stored)


async def test_a_message_can_be_asked_about(gateway: FakeGateway) -> None:
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        await client.post(PATH, json={"text": "hi"}, headers=KEY)
        known = await client.get(f"{PATH}/m1")
        elsewhere = await client.get("/api/v1/sessions/hall/messages/m1")
        wrong = [await client.get(f"{PATH}/{name}") for name in ("m2", "t1", "m-1", "x")]

    expected = {"message": "m1", "state": EntryState.ATTACHED, "turn": "t1", "reason": None}
    assert known.json() == expected
    assert {refusal(each) for each in [elsewhere, *wrong]} == {(404, "no-message")}


async def test_status_and_the_description_of_the_api_are_served(gateway: FakeGateway) -> None:
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        status = (await client.get("/api/v1/status")).json()
        described = (await client.get("/api/v1/openapi.json")).json()

    assert status["turns"] == {"running": 1}
    assert described["openapi"].startswith("3.1")
    assert "/api/v1/sessions/{chat}/events" in described["paths"]
    assert described["components"]["schemas"]["Post"]["additionalProperties"] is False
    assert "DeliveryLine" in described["components"]["schemas"]


async def test_what_is_not_there_is_refused_as_json(gateway: FakeGateway) -> None:
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        missing = await client.get("/api/v1/nothing")
        wrong_method = await client.put(PATH)

    assert refusal(missing) == (404, "not-found")
    assert refusal(wrong_method) == (405, "wrong-method")
    assert wrong_method.headers["allow"] == "POST"


def refusal(response: httpx2.Response) -> tuple[int, str]:
    body = response.json()
    assert body["ok"] is False
    assert body["error"]["message"]
    return response.status_code, body["error"]["type"]
