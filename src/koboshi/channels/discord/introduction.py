"""Who we are on Discord, where its gateway is, and which commands people are offered."""

from contextlib import suppress
from dataclasses import dataclass

import structlog

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.discord.client import ApiAnswer, DiscordApi
from koboshi.channels.discord.options import DiscordOptions
from koboshi.channels.discord.places import id_at
from koboshi.channels.discord.types import DiscordApplication, DiscordPerson, GatewayAddress
from koboshi.domain.errors import ChannelUnusable

log = structlog.get_logger()

STARTS_LEFT_MIN = 5
"""Who begins a thousand sessions in a day loses the token (`gateway.mdx`, Identifying)."""
WORDS = "words"
"""The name of what people write behind a command."""
READS_MESSAGES = (1 << 18) | (1 << 19)
"""Either mark of an application says that it may read messages."""
LINE_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    api: DiscordApi
    options: DiscordOptions

    async def me(self) -> tuple[DiscordPerson, int]:
        """Who we are, and the moment by the platform's own clock, as an id; 0 if it does not tell
        it. Raises ChannelUnusable for a token that is refused, NotReached or NoAnswer."""
        answer = self._checked(await self.api.call("GET", "/users/@me", kind="getMe"))
        me = answer.read(DiscordPerson)
        log.info("discord_connected", channel=self.options.name, bot=me.username)
        return me, id_at(answer.sent_ms)

    async def gateway(self) -> str:
        """Where a new session is begun."""
        answer = self._checked(await self.api.call("GET", "/gateway/bot", kind="getGateway"))
        found = answer.read(GatewayAddress)
        limit = found.session_start_limit
        if limit.remaining <= STARTS_LEFT_MIN:
            minutes = limit.reset_after // 60_000 + 1
            raise ChannelUnusable(
                f"{self.options.name}: Discord allows no more sessions for {minutes} minutes; a "
                "bot that begins more loses its token. Does another program use it?"
            )
        return found.url

    async def may_read(self) -> bool:
        """Whether the application may read messages."""
        answer = self._checked(
            await self.api.call("GET", "/applications/@me", kind="getApplication")
        )
        return bool(answer.read(DiscordApplication).marks & READS_MESSAGES)

    async def register(self) -> None:
        """Offer our commands, unless they are offered already. Best effort."""
        if not self.options.commands:
            return
        path = f"/applications/{self.options.account}/commands"
        wanted = [_command(name, line) for name, line in self.options.commands]
        with suppress(NotReached, NoAnswer):
            answer = await self.api.call("GET", path, kind="getCommands")
            if not answer.is_good:
                return
            found = [_kept(each) for each in answer.read(list[dict[str, object]])]
            if sorted(found, key=_name_of) != sorted(wanted, key=_name_of):
                put = await self.api.call("PUT", path, wanted, kind="putCommands")
                log.info("discord_commands_registered", count=len(wanted), status=put.status)

    def _checked(self, answer: ApiAnswer) -> ApiAnswer:
        if answer.is_good:
            return answer
        words = answer.refusal.message
        if answer.status == 401:
            raise ChannelUnusable(
                f"Discord refuses the token of {self.options.name} ({words}); the page of the bot "
                "in the Developer Portal has the right one"
            )
        raise NoAnswer(words)


def _command(name: str, line: str) -> dict[str, object]:
    """As it is registered, and as the platform tells it back."""
    option = {"type": 3, "name": WORDS, "description": "what you want to say with it"}
    return {"name": name, "description": line[:LINE_MAX], "type": 1, "options": [option]}


def _name_of(command: dict[str, object]) -> str:
    """The platform promises no order."""
    return str(command["name"])


def _kept(told: dict[str, object]) -> dict[str, object]:
    """Of a command that the platform tells of, what we register. It leaves out what is not so."""
    kept = {name: told.get(name) for name in ("name", "description", "type")}
    options = told.get("options")
    shown = [
        {name: each.get(name) for name in ("type", "name", "description")}
        for each in (options if isinstance(options, list) else [])
        if isinstance(each, dict)
    ]
    return kept | {"options": shown}
