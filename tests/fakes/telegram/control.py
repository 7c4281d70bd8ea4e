"""The world by HTTP: what a test in another process asks people, faults and the history for.

`POST /control/<verb>` with an object of arguments; the answer is JSON. Chats, people and topics are
named by id, messages by `[chat id, message id]`.
"""

import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from tests.fakes.telegram.faults import Fault, Faults
from tests.fakes.telegram.history import History, Request
from tests.fakes.telegram.limits import Limits
from tests.fakes.telegram.state import Chat, Message, Topic, User
from tests.fakes.telegram.wire import Reply
from tests.fakes.telegram.world import World

JSON = dict[str, Any]

WORLD_VERBS = (
    "user private_chat group supergroup channel topic close_topic delete_topic say edit delete"
    " press raw redeliver reorder renumber migrate block unblock deactivate kick"
    " messages_seen texts_seen copies drafts_seen"
).split()


class Control:
    def __init__(self, world: World, faults: Faults, history: History, limits: Limits) -> None:
        self._world = world
        self._faults = faults
        self._history = history
        self._limits = limits
        self._verbs: dict[str, Callable[..., Any]] = {
            **{name: getattr(world, name) for name in WORLD_VERBS},
            "health": lambda: {"is_serving": True},
            "add_fault": faults.add,
            "outage": faults.outage,
            "lift_fault": self._lift_fault,
            "lift_faults": faults.lift_all,
            "requests": self._requests,
            "asked_to_drop": history.asked_to_drop,
            "switch_limits_on": limits.switch_on,
            "switch_limits_off": limits.switch_off,
            "too_early": lambda: limits.too_early,
            "updates": self._updates,
        }

    def answer(self, verb: str, body: bytes) -> Reply:
        act = self._verbs.get(verb)
        if act is None:
            return _reply(404, {"error": f'no verb "{verb}"; known: {", ".join(self._verbs)}'})
        try:
            arguments = msgspec.json.decode(body, type=JSON) if body else {}
            inspect.signature(act).bind(**arguments)
            result = act(**arguments)
        except (LookupError, TypeError, ValueError, AssertionError) as error:
            return _reply(400, {"error": f"{verb}: {error}"})
        return _reply(200, {"result": _plain(result)})

    def _lift_fault(self, fault: int) -> bool:
        found = [each for each in self._faults.all if each.fault_id == fault]
        for each in found:
            each.lift()
        return bool(found)

    def _requests(self, method: str = "", since: int = 0) -> list[JSON]:
        """What the platform was asked, from the request with the number `since` on."""
        asked = self._history.requests[since:]
        wanted = method.lower()
        return [each.as_json() for each in asked if not wanted or each.method.lower() == wanted]

    def _updates(self) -> JSON:
        updates = self._world.updates
        return {
            "waiting": len(updates),
            "acknowledged": updates.acknowledged,
            "dropped": updates.dropped,
            "expired": updates.expired,
        }


def _reply(status: int, body: JSON) -> Reply:
    return Reply(status, msgspec.json.encode(body))


def _plain(thing: Any) -> Any:
    match thing:
        case list():
            return [_plain(each) for each in thing]
        case Message():
            return {**thing.as_json(), "labels": thing.labels, "is_by_bot": thing.is_by_bot}
        case Chat() | User() | Request():
            return thing.as_json()
        case Topic():
            return {"id": thing.topic_id, "name": thing.name}
        case Fault():
            return {"id": thing.fault_id, "hits": thing.hits}
        case _:
            return thing
