"""Replies written out in JSON by a test of the gateway: `script: [{"text": "done"}]`."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.ports.model import CallRequest

SLEEP_MS_MAX = 600_000
ITEMS_MAX = 2_000


class ScriptedCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tool: str
    arguments: dict[str, object] = {}


class ScriptedBusy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    retry_after_ms: Annotated[int, Meta(ge=0)] | None = None


class ScriptedOutage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model is busy, and answers again when there is such a file. It remembers nothing: the
    test decides how long it lasts, over any number of lives."""

    file: Annotated[str, Meta(min_length=1, max_length=200)]
    retry_after_ms: Annotated[int, Meta(ge=0)] | None = None


class Item(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reply. It says something, calls tools, is empty, or is an error; `sleep_ms` delays it,
    with `word_ms` it comes word by word, and with `busy_until` not before a file is there."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    empty: bool = False
    busy: ScriptedBusy | None = None
    refuse: str | None = None
    busy_until: ScriptedOutage | None = None
    sleep_ms: Annotated[int, Meta(ge=0, le=SLEEP_MS_MAX)] = 0
    word_ms: Annotated[int, Meta(ge=0, le=10_000)] = 0

    def __post_init__(self) -> None:
        speaks = bool(self.text.strip() or self.calls)
        fails = self.busy is not None, self.refuse is not None
        if [speaks, self.empty, *fails].count(True) != 1:
            raise ValueError("an item has one of: text or calls, empty, busy, refuse")


class BadScript(ValueError):
    """The script cannot be followed; the words say why."""


def read_script(text: str) -> tuple[Item, ...]:
    """The items of a script. Raises BadScript."""
    try:
        items = msgspec.json.decode(text, type=tuple[Item, ...])
    except RecursionError:
        raise BadScript("it is nested too deeply") from None
    except ValueError as error:
        raise BadScript(str(error)) from None
    if not 1 <= len(items) <= ITEMS_MAX:
        raise BadScript(f"it has {len(items)} items; it can have 1 to {ITEMS_MAX}")
    return items


def item_at(items: tuple[Item, ...], place: int) -> Item:
    """The item for the reply at `place`, counted from 0. Raises BadScript behind the end.

    A script that ends with an empty reply stays empty, so that it fails however often the gateway
    asks for words.
    """
    if place < len(items):
        return items[place]
    if items[-1].empty:
        return items[-1]
    raise BadScript(f"it ends after {len(items)} replies, and one more was asked for")


def error_of(item: Item) -> ModelBusy | ModelRefused | None:
    """The error that the item stands for; None if it is a reply."""
    until = item.busy_until
    if until is not None and not Path(until.file).exists():
        return ModelBusy("the script says that the model is busy for now", until.retry_after_ms)
    if item.busy is not None:
        return ModelBusy("the script says that the model is busy", item.busy.retry_after_ms)
    if item.refuse is not None:
        return ModelRefused(item.refuse or "the script says so")
    return None


def calls_of(item: Item, place: int) -> tuple[CallRequest, ...]:
    """The item's calls, with ids that are the same each time they are asked for."""
    return tuple(
        CallRequest(
            provider_id=f"scripted-{place}-{number}",
            tool=call.tool,
            arguments=msgspec.json.encode(call.arguments).decode(),
        )
        for number, call in enumerate(item.calls)
    )
