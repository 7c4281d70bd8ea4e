"""A homeserver of Matrix that takes no time: one account, its private rooms, one person in each.
The real one of the tests is slower than we are, so that our own costs drown in waiting."""

import asyncio
import json
import re
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

BOT, TOKEN = "@bot:localhost", "a-token-for-benchmarks"
_HEAD = "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_SIZE = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)


@dataclass(slots=True)
class Homeserver:
    url: str = ""
    on_answer: Callable[[str], None] = lambda _room: None
    """Called when the account has said something in a room."""
    people: dict[str, str] = field(default_factory=dict)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    sent: dict[str, str] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    asked_from: int = 0
    """Behind how many events the account last asked for more: those it has taken in."""

    def say(self, room: str, text: str) -> None:
        self._add(room, self.people[room], {"msgtype": "m.text", "body": text})

    def _add(self, room: str, sender: str, content: dict[str, Any]) -> str:
        event_id = f"${len(self.events)}"
        event = {
            "event_id": event_id,
            "type": "m.room.message",
            "sender": sender,
            "content": content,
            "origin_server_ts": 1_794_000_000_000 + len(self.events),
        }
        self.events.append((room, event))
        self.news.set()
        self.news = asyncio.Event()
        return event_id

    async def answer(self, method: str, path: str, body: bytes) -> tuple[str, object]:
        parts = urlsplit(path)
        steps = [unquote(step) for step in parts.path.split("/")[4:]]
        match method, steps:
            case "GET", ["account", "whoami"]:
                return "200 OK", {"user_id": BOT, "device_id": "BENCHMARK"}
            case "POST", ["user", _, "filter"]:
                return "200 OK", {"filter_id": "1"}
            case "GET", ["sync"]:
                query = parse_qs(parts.query)
                since = int(query["since"][0]) if "since" in query else len(self.events)
                self.asked_from = since
                return "200 OK", await self._sync(since, int(query["timeout"][0]) / 1000)
            case "GET", ["rooms", room, "joined_members"]:
                return "200 OK", {"joined": {BOT: {}, self.people[room]: {}}}
            case "PUT", ["rooms", room, "send", _, key]:
                if key not in self.sent:
                    self.sent[key] = self._add(room, BOT, json.loads(body))
                    self.on_answer(room)
                return "200 OK", {"event_id": self.sent[key]}
            case ("PUT", ["rooms", _, "typing", _]) | ("POST", ["rooms", _, "receipt", *_]):
                return "200 OK", {}
            case _:
                return "404 Not Found", {"errcode": "M_NOT_FOUND", "error": path}

    async def _sync(self, since: int, seconds: float) -> object:
        if since == len(self.events) and seconds:
            try:
                async with asyncio.timeout(seconds):
                    await self.news.wait()
            except TimeoutError:
                pass
        rooms: dict[str, Any] = {}
        for room, event in self.events[since:]:
            news = rooms.setdefault(room, {"timeline": {"events": [], "limited": False}})
            news["timeline"]["events"].append(event)
        return {"next_batch": str(len(self.events)), "rooms": {"join": rooms}}


@asynccontextmanager
async def a_quick_homeserver(rooms: int) -> AsyncIterator[Homeserver]:
    home = Homeserver()
    home.people = {f"!{number}:localhost": f"@p{number}:localhost" for number in range(rooms)}

    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            tasks.add(task)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
                size = _SIZE.search(head)
                body = await reader.readexactly(int(size[1])) if size else b""
                status, told = await home.answer(method, path, body)
                content = json.dumps(told).encode()
                writer.write((_HEAD % (status, len(content))).encode() + content)
        except (IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client is gone
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    home.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield home
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
