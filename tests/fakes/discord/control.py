"""The world by HTTP: what a test in another process asks people and the gateway for.

`POST /control/<verb>` with an object of arguments; the answer is JSON. All is named by id.
"""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from tests.fakes.discord.state import JSON, DiscordChannel, DiscordMessage, DiscordUser, Guild
from tests.fakes.telegram.history import Request
from tests.fakes.telegram.wire import Reply

if TYPE_CHECKING:
    from tests.fakes.discord.server import FakeDiscord

WORLD_VERBS = (
    "user guild text_channel forum thread post dm say press slash forward messages_seen texts_seen"
).split()
GATEWAY_VERBS = ("drop", "close", "reconnect", "invalidate", "ask_for_heartbeat")


class DiscordControl:
    def __init__(self, fake: "FakeDiscord") -> None:
        world, gateway = fake.world, fake.gateway
        self._verbs: dict[str, Callable[..., Any]] = {
            **{name: getattr(world, name) for name in WORLD_VERBS},
            **{name: getattr(gateway, name) for name in GATEWAY_VERBS},
            "edit": lambda message, text: world.edit(_found(fake, message), text),
            "delete": lambda message: world.delete(_found(fake, message)),
            "requests": lambda method: fake.history.of(method),
            "interaction": lambda number: world.interactions[number]["answer"],
            "sessions": lambda: {
                "identified": gateway.sessions.identified,
                "resumed": gateway.sessions.resumed,
            },
            "add_fault": lambda act, method, **how: fake.faults.add(act, method, **how).fault_id,
            "limit": fake.buckets.switch_on,
            "too_early": lambda: len(fake.buckets.too_early),
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


def _found(fake: "FakeDiscord", message: list[int]) -> DiscordMessage:
    channel, number = message
    return fake.world.channels[channel].messages[number]


def _reply(status: int, body: JSON) -> Reply:
    return Reply(status, msgspec.json.encode(body))


def _plain(thing: Any) -> Any:
    match thing:
        case list():
            return [_plain(each) for each in thing]
        case DiscordMessage():
            place = thing.channel.channel_id
            return {"id": thing.message_id, "channel": place, "content": thing.content}
        case DiscordChannel():
            return thing.channel_id
        case DiscordUser():
            return thing.user_id
        case Guild():
            return thing.guild_id
        case Request():
            return thing.as_json()
        case _:
            return thing
