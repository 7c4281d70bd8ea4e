"""What a bot may ask of the API by HTTP, as strict as the real one where we know it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs

import msgspec

from tests.fakes.discord import errors, sending
from tests.fakes.discord.errors import ApiRefusal, invalid
from tests.fakes.discord.state import (
    HISTORY,
    JSON,
    VIEW,
    ChannelType,
    DiscordChannel,
    DiscordMessage,
    Guild,
)
from tests.fakes.discord.world import DiscordWorld
from tests.fakes.telegram.params import Upload

PAGE_MAX = 100
INTERACTION_S = 3.0
"""An interaction that is not answered by then has failed."""
TOKEN_S = 900.0
GUILD_INSTALL, ACCEPTED = 4, 64
COMMANDS_MAX = 100
NAME = re.compile(r"[-_\w]{1,32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """One request, read."""

    world: DiscordWorld
    query: dict[str, list[str]]
    content: JSON
    uploads: dict[str, Upload]
    application_marks: int
    gateway_url: str

    def one(self, name: str) -> str | None:
        found = self.query.get(name)
        return found[0] if found else None


Answer = Callable[..., object]
"""It is given the call, and the numbers of the path. None is answered with 204."""
ROUTES: list[tuple[str, re.Pattern[str], str, Answer]] = []


def route(verb: str, path: str, name: str) -> Callable[[Answer], Answer]:
    shape = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))

    def keep(answer: Answer) -> Answer:
        ROUTES.append((verb, shape, name, answer))
        return answer

    return keep


def matched(verb: str, path: str) -> tuple[str, Answer, dict[str, str]]:
    """The name of a request, what answers it, and what stands in its path. Raises ApiRefusal."""
    for asked, shape, name, answer in ROUTES:
        found = shape.fullmatch(path)
        if found is not None and asked == verb:
            return name, answer, found.groupdict()
    raise errors.NOT_FOUND


def read_query(query: str) -> dict[str, list[str]]:
    return parse_qs(query, keep_blank_values=True)


@route("GET", "/gateway", "getGateway")
def get_gateway(call: ApiCall) -> JSON:
    return {"url": call.gateway_url}


@route("GET", "/gateway/bot", "getGatewayBot")
def get_gateway_bot(call: ApiCall) -> JSON:
    limit = {"total": 1000, "remaining": 999, "reset_after": 14_400_000, "max_concurrency": 1}
    return {"url": call.gateway_url, "shards": 1, "session_start_limit": limit}


@route("GET", "/users/@me", "getMe")
def get_me(call: ApiCall) -> JSON:
    return call.world.bot.as_self()


@route("GET", "/applications/@me", "getApplication")
@route("GET", "/oauth2/applications/@me", "getApplication")
def get_application(call: ApiCall) -> JSON:
    bot = call.world.bot
    return {
        "id": str(bot.user_id),
        "name": bot.name,
        "icon": None,
        "description": "",
        "bot_public": True,
        "bot_require_code_grant": False,
        "owner": bot.as_json(),
        "team": None,
        "verify_key": "00",
        "flags": call.application_marks,
        "summary": "",
        "approximate_guild_count": len(call.world.guilds),
        "approximate_user_install_count": 0,
        "integration_types_config": {},
    }


@route("GET", "/users/@me/guilds", "getGuilds")
def get_guilds(call: ApiCall) -> list[JSON]:
    return [
        {
            "id": str(each.guild_id),
            "name": each.name,
            "icon": None,
            "banner": None,
            "owner": False,
            "permissions": "0",
            "features": [],
        }
        for each in call.world.guilds.values()
    ]


@route("POST", "/users/@me/channels", "createDm")
def create_dm(call: ApiCall) -> JSON:
    number = str(call.content.get("recipient_id", ""))
    person = call.world.users.get(int(number)) if number.isdecimal() else None
    if person is None:
        invalid("recipient_id")
    if person is call.world.bot:
        raise errors.NO_DMS
    return call.world.dm(person).as_json()


@route("GET", "/guilds/{guild}/channels", "getGuildChannels")
def get_guild_channels(call: ApiCall, guild: str) -> list[JSON]:
    return [each.as_json() for each in _guild(call, guild).places]


@route("GET", "/guilds/{guild}/threads/active", "getActiveThreads")
def get_active_threads(call: ApiCall, guild: str) -> JSON:
    threads = _guild(call, guild).threads
    shown = sorted(threads, key=lambda each: -each.channel_id)
    return {"threads": [each.as_json() for each in shown], "members": [], "has_more": False}


@route("GET", "/channels/{channel}", "getChannel")
def get_channel(call: ApiCall, channel: str) -> JSON:
    return _channel(call, channel).as_json()


@route("GET", "/channels/{channel}/messages", "getMessages")
def get_messages(call: ApiCall, channel: str) -> list[JSON]:
    """From newest to oldest. `after` gives those next behind it, not the newest of all. Without
    the permission to read the history there are none."""
    place = _channel(call, channel)
    bounds = [name for name in ("around", "before", "after") if call.one(name) is not None]
    if len(bounds) > 1:
        invalid("only one of around, before, after")
    given = call.one("limit") or "50"
    if not given.isdecimal() or not 1 <= int(given) <= PAGE_MAX:
        invalid("limit: int value should be between 1 and 100.")
    if place.kind is ChannelType.FORUM:
        raise errors.NOT_OF_THIS_KIND
    if not place.may(HISTORY):
        return []
    found = _page(list(place.messages.values()), call, bounds, int(given))
    can_read = call.world.has_message_content
    return [call.world.shown(each, can_read=can_read) for each in found]


@route("POST", "/channels/{channel}/messages/{message}/threads", "startThread")
def start_thread(call: ApiCall, channel: str, message: str) -> JSON:
    """A thread of a message has the id of the message. A private channel has none."""
    place = _channel(call, channel)
    begun = _message(place, message)
    if place.guild is None:
        raise errors.NOT_TEXT
    if begun.message_id in call.world.channels:
        invalid("A thread has already been created for this message")
    made = call.world.thread(place, str(call.content["name"]), channel_id=begun.message_id)
    return made.as_json()


def _page(
    held: list[DiscordMessage], call: ApiCall, bounds: list[str], limit: int
) -> list[DiscordMessage]:
    if not bounds:
        return held[::-1][:limit]
    (bound,) = bounds
    number = call.one(bound) or ""
    if not number.isdecimal():
        invalid(f'{bound}: Value "{number}" is not snowflake.')
    edge = int(number)
    if bound == "after":
        return [each for each in held if each.message_id > edge][:limit][::-1]
    if bound == "before":
        return [each for each in held if each.message_id < edge][::-1][:limit]
    older = [each for each in held if each.message_id <= edge][-limit // 2 :]
    newer = [each for each in held if each.message_id > edge][: limit // 2]
    return (older + newer)[::-1]


@route("GET", "/channels/{channel}/messages/{message}", "getMessage")
def get_message(call: ApiCall, channel: str, message: str) -> JSON:
    place = _channel(call, channel)
    if not place.may(HISTORY):
        raise errors.MISSING_ACCESS
    return call.world.shown(_message(place, message), can_read=call.world.has_message_content)


@route("POST", "/channels/{channel}/messages", "createMessage")
def create_message(call: ApiCall, channel: str) -> JSON:
    place = _channel(call, channel)
    made = sending.create(call.world, place, call.content, call.uploads)
    shown = call.world.shown(made, can_read=True)
    return shown | ({"nonce": made.nonce} if made.nonce is not None else {})


@route("PATCH", "/channels/{channel}/messages/{message}", "editMessage")
def edit_message(call: ApiCall, channel: str, message: str) -> JSON:
    place = _channel(call, channel)
    found = _message(place, message)
    if found.author is not call.world.bot:
        raise errors.NOT_OURS
    text = call.content.get("content")
    if text is not None:
        sending.check_text(text)
        call.world.edit(found, text.strip())
    return call.world.shown(found, can_read=True)


@route("POST", "/channels/{channel}/typing", "typing")
def typing(call: ApiCall, channel: str) -> None:
    _channel(call, channel).typed += 1


@route("GET", "/applications/{app}/commands", "getCommands")
def get_commands(call: ApiCall, app: str) -> list[JSON]:
    _own(call, app)
    return call.world.commands[::-1]  # no order is promised


@route("PUT", "/applications/{app}/commands", "putCommands")
def put_commands(call: ApiCall, app: str) -> list[JSON]:
    _own(call, app)
    given = call.content.get("_list")
    if not isinstance(given, list) or len(given) > COMMANDS_MAX:
        invalid("a list of at most 100 commands")
    before = {each["name"]: each["id"] for each in call.world.commands}
    call.world.commands = [_command(call, each, before) for each in given]
    return call.world.commands


@route("POST", "/interactions/{interaction}/{token}/callback", "answerInteraction")
def answer_interaction(call: ApiCall, interaction: str, token: str) -> JSON | None:
    found = call.world.interactions.get(int(interaction)) if interaction.isdecimal() else None
    if found is None or found["asked"]["token"] != token:
        raise errors.UNKNOWN_INTERACTION
    if found["answer"] is not None:
        raise errors.ACKNOWLEDGED
    if call.world.clock() - found["at"] > INTERACTION_S:
        raise errors.UNKNOWN_INTERACTION
    kind = call.content.get("type")
    is_press = found["asked"]["type"] == 3
    if kind not in ({4, 5, 6, 7} if is_press else {4, 5}):
        invalid("type")
    if kind == 4:
        sending.check_text(call.content.get("data", {}).get("content", ""))
    found["answer"] = call.content
    if call.one("with_response") not in ("true", "1"):
        return None
    asked = {"id": interaction, "type": found["asked"]["type"], "response_message_loading": False}
    return {"interaction": asked, "resource": {"type": kind}}


def _command(call: ApiCall, given: JSON, before: JSON) -> JSON:
    name, does = given.get("name", ""), given.get("description", "")
    if not NAME.fullmatch(name) or name != name.lower():
        invalid("name: Command name is invalid")
    if not 1 <= len(does) <= 100:
        invalid("description: Must be between 1 and 100 in length.")
    made = str(call.world.next_id())
    options = [
        {"type": each["type"], "name": each["name"], "description": each["description"]}
        | ({"required": True} if each.get("required") else {})
        for each in given.get("options", [])
    ]
    return {
        "id": before.get(name, made),
        "application_id": str(call.world.bot.user_id),
        "version": made,
        "default_member_permissions": given.get("default_member_permissions"),
        "type": given.get("type", 1),
        "name": name,
        "name_localizations": None,
        "description": does,
        "description_localizations": None,
        "dm_permission": True,
        "contexts": given.get("contexts"),
        "integration_types": given.get("integration_types", [0]),
        "nsfw": False,
        **({"options": options} if options else {}),
    }


def _own(call: ApiCall, app: str) -> None:
    if app != str(call.world.bot.user_id):
        raise errors.MISSING_ACCESS


def _guild(call: ApiCall, guild: str) -> Guild:
    found = call.world.guilds.get(int(guild)) if guild.isdecimal() else None
    if found is None:
        raise errors.UNKNOWN_GUILD
    return found


def _channel(call: ApiCall, channel: str) -> DiscordChannel:
    if not channel.isdecimal():
        invalid(f'channel_id: Value "{channel}" is not snowflake.')
    found = call.world.channels.get(int(channel))
    if found is None or found.is_gone:
        raise errors.UNKNOWN_CHANNEL
    if not found.may(VIEW):
        raise errors.MISSING_ACCESS
    return found


def _message(place: DiscordChannel, message: str) -> DiscordMessage:
    found = place.messages.get(int(message)) if message.isdecimal() else None
    if found is None:
        raise errors.UNKNOWN_MESSAGE
    return found


def read_content(kind: str, body: bytes) -> JSON:
    """The JSON of a request; a list is under `_list`. Raises ApiRefusal."""
    if not body:
        return {}
    if not kind.startswith("application/json"):
        raise ApiRefusal(400, 50109, f"The request body contains invalid JSON: {kind}")
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        raise ApiRefusal(400, 50109, "The request body contains invalid JSON.") from None
    return {"_list": found} if isinstance(found, list) else dict(found)
