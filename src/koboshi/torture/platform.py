"""A platform in Telegram's form, small and in memory: people write there, and one bot answers.

It keeps what its users would see. A seed decides which calls go wrong, and how: the platform
answers 502 or breaks the connection, with the message taken or not; it wants quiet; it hangs.
"""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from anyio import Event, move_on_after, sleep

BOT = {"id": 4242, "is_bot": True, "first_name": "Torture", "username": "torture_bot"}
NAME = f"@{BOT['username']}"
TOKEN = "4242:throw-away"
LABEL = "(may be a duplicate: my connection broke while I was sending this)\n"
"""How the gateway marks a message that may have arrived before."""
GROUP = -1_001_000_000
POLL_S_MAX = 50.0


class Mishap(StrEnum):
    """What may go wrong with one call, as the tally names it."""

    BAD_GATEWAY = "502"
    TAKEN_502 = "502, but taken"
    RESET = "reset"
    TAKEN_RESET = "reset, but taken"
    QUIET = "429"
    HANG = "hang"


SHARES = {
    "sendMessage": {
        Mishap.BAD_GATEWAY: 0.03,
        Mishap.TAKEN_502: 0.03,
        Mishap.RESET: 0.02,
        Mishap.TAKEN_RESET: 0.03,
        Mishap.QUIET: 0.03,
        Mishap.HANG: 0.02,
    },
    "editMessageReplyMarkup": {Mishap.BAD_GATEWAY: 0.05, Mishap.QUIET: 0.03},
    "getUpdates": {Mishap.BAD_GATEWAY: 0.02, Mishap.RESET: 0.02},
    "sendChatAction": {Mishap.BAD_GATEWAY: 0.1, Mishap.QUIET: 0.02},
}


class Broken(Exception):
    """The connection ends here, without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where people write: a private chat, a group, or a topic of it."""

    chat: int
    thread: int = 0

    @property
    def is_group(self) -> bool:
        return self.chat < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """One message of the bot, as it is seen."""

    number: int
    spot: Spot
    text: str
    replies_to: int = 0
    """The message that it stands below; 0 if none."""
    is_labelled: bool = False
    buttons: tuple[tuple[str, str], ...] = ()
    """What they say, and what they send."""


@dataclass(slots=True, kw_only=True)
class Platform:
    dice: random.Random
    is_calm: bool = False
    """Nothing goes wrong any more."""
    hangs_s: tuple[float, float] = (0.5, 3.0)
    """How long a call hangs, at least and at most."""
    posted: list[Posted] = field(default_factory=list)
    mishaps: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    """Updates up to this number were acknowledged."""
    pressed: set[tuple[Spot, int]] = field(default_factory=set)
    """Messages whose buttons were used."""
    _by_spot: dict[Spot, list[Posted]] = field(default_factory=lambda: defaultdict(list))
    _updates: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    _last_update: int = 0
    _last_message: Counter[int] = field(default_factory=Counter)
    _news: Event = field(default_factory=Event)

    def say(self, spot: Spot, user: int, text: str) -> tuple[int, int]:
        """A person writes. Returns the numbers of the message and of its update."""
        number = self._next_message(spot)
        words = f"{NAME} {text}" if spot.is_group else text
        entities = [{"type": "mention", "offset": 0, "length": len(NAME)}] if spot.is_group else []
        message = self._message(spot, number, words) | {"from": _user(user), "entities": entities}
        return number, self._add({"message": message})

    def press(self, seen: Posted, user: int, sends: str) -> int:
        """A person presses a button. Returns the number of the update."""
        self.pressed.add((seen.spot, seen.number))
        message = self._message(seen.spot, seen.number, seen.text) | {"from": BOT}
        query = {"id": f"{self._last_update + 1}", "from": _user(user), "message": message}
        return self._add({"callback_query": query | {"data": sends}})

    @property
    def is_taken(self) -> bool:
        """Whether everything that people wrote was acknowledged."""
        return not self.waiting

    @property
    def waiting(self) -> int:
        """How many updates were not acknowledged."""
        return len(self._updates)

    def seen_in(self, spot: Spot) -> list[Posted]:
        """What the bot has said there, in order."""
        return self._by_spot[spot]

    async def hears(self, within_s: float) -> None:
        """Wait until something happens, but not for long."""
        with move_on_after(within_s):
            await self._news.wait()

    async def call(self, method: str, given: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """The answer to one call, with its status. Raises Broken."""
        mishap = self._mishap(method)
        if mishap is None:
            return await self._answer(method, given)
        self.mishaps[f"{method}: {mishap}"] += 1
        match mishap:
            case Mishap.QUIET:
                wait: dict[str, Any] = {"parameters": {"retry_after": 1}}
                return 429, _refusal(429, "Too Many Requests: retry after 1") | wait
            case Mishap.HANG:
                is_taken = self.dice.random() < 0.5
                await sleep(self.dice.uniform(*self.hangs_s))
                if is_taken:
                    await self._answer(method, given)
                raise Broken
            case Mishap.TAKEN_502 | Mishap.TAKEN_RESET:
                await self._answer(method, given)
            case Mishap.BAD_GATEWAY | Mishap.RESET:
                pass
        if mishap in (Mishap.RESET, Mishap.TAKEN_RESET):
            raise Broken
        return 502, _refusal(502, "Bad Gateway")

    def _mishap(self, method: str) -> Mishap | None:
        if self.is_calm:
            return None
        throw = self.dice.random()
        for mishap, share in SHARES.get(method, {}).items():
            throw -= share
            if throw < 0:
                return mishap
        return None

    async def _answer(self, method: str, given: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        match method:
            case "getMe":
                return _taken(BOT)
            case "getUpdates":
                return _taken(await self._take_updates(given))
            case "sendMessage" | "sendDocument":
                return _taken(self._post(given))
            case "editMessageReplyMarkup":
                return self._touch(given)
            case _:
                return _taken(True)

    async def _take_updates(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Asking for those from a number on acknowledges the ones before."""
        offset = int(given.get("offset", 0))
        if offset:
            self.acknowledged = max(self.acknowledged, offset - 1)
            self._updates = [each for each in self._updates if each[0] >= offset]
        with move_on_after(min(float(given.get("timeout", 0)), POLL_S_MAX)):
            while not self._updates:
                await self._news.wait()
        return [{"update_id": number} | update for number, update in self._updates[:100]]

    def _post(self, given: Mapping[str, Any]) -> dict[str, Any]:
        spot = Spot(chat=int(given["chat_id"]), thread=int(given.get("message_thread_id", 0)))
        text = str(given.get("text") or given.get("caption") or "")
        rows = given.get("reply_markup", {}).get("inline_keyboard", [])
        seen = Posted(
            number=self._next_message(spot),
            spot=spot,
            text=text.removeprefix(LABEL),
            replies_to=int(given.get("reply_parameters", {}).get("message_id", 0)),
            is_labelled=text.startswith(LABEL),
            buttons=tuple((each["text"], each["callback_data"]) for row in rows for each in row),
        )
        self.posted.append(seen)
        self._by_spot[spot].append(seen)
        self._tell()
        return self._message(spot, seen.number, text) | {"from": BOT}

    def _touch(self, given: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """An edit that changes nothing tells whether a message is there, and whose it is."""
        chat, number = int(given["chat_id"]), int(given["message_id"])
        if any((each.spot.chat, each.number) == (chat, number) for each in self.posted):
            said = "message is not modified"
        else:
            is_there = number <= self._last_message[_count_of(chat)]
            said = "message can't be edited" if is_there else "message to edit not found"
        return 400, _refusal(400, f"Bad Request: {said}")

    def _next_message(self, spot: Spot) -> int:
        """A group counts its own messages; one count goes over all private chats of a bot."""
        count = _count_of(spot.chat)
        self._last_message[count] += 1
        return self._last_message[count]

    def _message(self, spot: Spot, number: int, text: str) -> dict[str, Any]:
        kind = "supergroup" if spot.is_group else "private"
        topic = {"message_thread_id": spot.thread, "is_topic_message": True} if spot.thread else {}
        place = {"message_id": number, "chat": {"id": spot.chat, "type": kind}, "text": text}
        return place | topic

    def _add(self, update: dict[str, Any]) -> int:
        self._last_update += 1
        self._updates.append((self._last_update, update))
        self._tell()
        return self._last_update

    def _tell(self) -> None:
        self._news.set()
        self._news = Event()


def _count_of(chat: int) -> int:
    return chat if chat < 0 else 0


def _user(number: int) -> dict[str, Any]:
    return {"id": number, "is_bot": False, "first_name": f"Person {number}"}


def _taken(result: object) -> tuple[int, dict[str, Any]]:
    return 200, {"ok": True, "result": result}


def _refusal(code: int, words: str) -> dict[str, Any]:
    return {"ok": False, "error_code": code, "description": words}


def parameters_in(body: bytes, kind: str) -> dict[str, Any]:
    """What a call is given: JSON, or the fields of a form without its file."""
    if not kind.startswith("multipart/"):
        return dict(json.loads(body or b"{}"))
    edge = b"--" + kind.partition("boundary=")[2].encode()
    found: dict[str, Any] = {}
    for piece in body.split(edge):
        head, _, content = piece.partition(b"\r\n\r\n")
        name = head.partition(b'name="')[2].partition(b'"')[0].decode()
        if name and b"filename=" not in head:
            found[name] = content.removesuffix(b"\r\n").decode()
    for name in ("reply_markup", "reply_parameters"):
        if name in found:
            found[name] = json.loads(found[name])
    return found
