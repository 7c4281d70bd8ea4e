"""A person's program: it posts with keys of its own and follows the events of one chat."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

import httpx2
from anyio import fail_after, sleep, to_thread

from koboshi.cli.ask_owner import ask_gateway
from koboshi.control.requests import SayInChat
from koboshi.domain.approver import APPROVAL_NEEDS_PERSON
from tests.harness.http import connection
from tests.harness.polling import LOOK_EVERY_S, WITHIN_S, until

WORDS = ("answer", "question", "notice", "progress")
"""The events that carry words for the person."""

_LOST = (httpx2.TransportError, httpx2.StreamError)


class Address(Protocol):
    """Where the gateway is now; None while it is not."""

    @property
    def address(self) -> str | None: ...

    @property
    def token(self) -> str: ...

    @property
    def home(self) -> Path: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One server-sent event. `place` is its id, None for an event that is not in the journal."""

    place: int | None
    kind: str
    fields: dict[str, Any]

    def is_words(self, text: str) -> bool:
        return self.kind in WORDS and text in self.fields["text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """The 202 for a message, and how often it had to be posted."""

    key: str
    message: str
    state: str
    duplicate: bool
    tries: int


@dataclass(slots=True)
class Client:
    """One person's connection to one chat of a gateway that may be killed at any moment."""

    gateway: Address
    chat: str
    acks: dict[str, Ack] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    """All events of the follower, over all connections."""
    place: int | None = None
    """The follower's last id."""

    async def post(
        self,
        text: str,
        key: str,
        *,
        thread: str = "",
        question: int | None = None,
        choice: str | None = None,
    ) -> httpx2.Response:
        """Post once. Raises httpx2.TransportError where no answer came back."""
        body: dict[str, object] = {"text": text, "thread": thread}
        if choice is not None:
            body |= {"question": question, "choice": choice}
        address = await until(lambda: self.gateway.address, "the gateway listens")
        async with connection(address, self.gateway.token) as http:
            return await http.post(self._path("messages"), json=body, headers=_key(key))

    async def say(
        self,
        text: str,
        key: str,
        *,
        thread: str = "",
        question: int | None = None,
        choice: str | None = None,
    ) -> Ack:
        """Post with the same key until the message is acknowledged."""
        tries = 0
        with fail_after(WITHIN_S):
            while True:
                tries += 1
                try:
                    response = await self.post(
                        text, key, thread=thread, question=question, choice=choice
                    )
                except _LOST:
                    await sleep(LOOK_EVERY_S)
                    continue
                if response.status_code == 202:
                    break
                if response.status_code == 403:
                    # An approval is a person's to answer: at the terminal, as `koboshi chat` does.
                    assert response.json()["error"]["type"] == APPROVAL_NEEDS_PERSON
                    said = SayInChat(
                        what=self.chat,
                        message=key,
                        text=text,
                        thread=thread,
                        question=question,
                        choice=choice,
                    )
                    answer = await to_thread.run_sync(ask_gateway, self.gateway.home, said)
                    if answer is not None and answer.pop("ok"):
                        ack = self.acks[key] = Ack(key=key, tries=tries, **cast("Any", answer))
                        return ack
                    await sleep(LOOK_EVERY_S)
                    continue
                assert response.status_code == 503, response.text
                await sleep(LOOK_EVERY_S)
        ack = Ack(key=key, tries=tries, **response.json())
        self.acks[key] = ack
        return ack

    async def keep_following(self) -> None:
        """Follow the chat from its start until cancelled, coming back behind the last id seen
        whenever the connection is lost."""
        while True:
            address = self.gateway.address
            if address is not None:
                with suppress(*_LOST):
                    async for place, event in self._events(address, self.place):
                        if event is not None:
                            self.events.append(event)
                        if place is not None:
                            self.place = place
            await sleep(LOOK_EVERY_S)

    async def sees(
        self, is_it: Callable[[Event], bool], what: str, *, within_s: float = WITHIN_S
    ) -> Event:
        """The first event that matches, once the follower has it."""
        return await until(
            lambda: next((event for event in self.events if is_it(event)), None),
            what,
            within_s=within_s,
            otherwise=self.told,
        )

    async def hears(self, text: str) -> Event:
        """The first words for the person that contain the text."""
        return await self.sees(lambda event: event.is_words(text), f"the person hears {text!r}")

    async def told_from_start(self, is_last: Callable[[Event], bool]) -> list[Event]:
        """The events for a new follower, from the start up to the last one."""
        told: list[Event] = []
        address = await until(lambda: self.gateway.address, "the gateway listens")
        with fail_after(WITHIN_S):
            async for _, event in self._events(address, None):
                if event is not None:
                    told.append(event)
                    if is_last(event):
                        break
        return told

    def heard(self) -> list[str]:
        """All words for the person, in the order they were told."""
        return [event.fields["text"] for event in self.events if event.kind in WORDS]

    def answered(self) -> list[str]:
        """The agent's answers alone, without notices of the gateway."""
        return [event.fields["text"] for event in self.events if event.kind == "answer"]

    def told(self) -> str:
        lines = [f"{event.place} {event.kind} {event.fields}" for event in self.events]
        return "The follower was told:\n" + "\n".join(lines)

    async def _events(
        self, address: str, after: int | None
    ) -> AsyncIterator[tuple[int | None, Event | None]]:
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        async with (
            connection(address, self.gateway.token) as http,
            http.stream(
                "GET", self._path("events"), params={"from": "start"}, headers=headers
            ) as stream,
        ):
            if stream.status_code == 503:
                return  # it is about to stop
            assert stream.status_code == 200, stream.status_code
            fields: dict[str, str] = {}
            async for line in stream.aiter_lines():
                if line:
                    name, _, value = line.partition(":")
                    fields[name] = value.removeprefix(" ")
                    continue
                yield _parsed(fields)
                fields = {}

    def _path(self, what: str) -> str:
        return f"/api/v1/sessions/{self.chat}/{what}"


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator who acts on the rows of a gateway that may be killed at any moment."""

    gateway: Address

    async def post(self, path: str) -> httpx2.Response:
        """Ask until there is an answer."""
        with fail_after(WITHIN_S):
            while True:
                address = await until(lambda: self.gateway.address, "the gateway listens")
                with suppress(*_LOST):
                    async with connection(address, self.gateway.token) as http:
                        response = await http.post(f"/api/v1/{path}")
                        if response.status_code != 503:
                            return response
                await sleep(LOOK_EVERY_S)


def _parsed(fields: dict[str, str]) -> tuple[int | None, Event | None]:
    place = int(fields["id"]) if "id" in fields else None
    if "data" not in fields or fields.get("event") == "place":
        return place, None
    return place, Event(place=place, kind=fields["event"], fields=json.loads(fields["data"]))


def _key(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}
