"""What hikari must understand of the fake: it demands every field that the reference names."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import hikari

from tests.fakes.telegram.remote import Remote

Check = Callable[["HikariStage"], Awaitable[None]]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    CHECKS.append(function)
    return function


@dataclass
class HikariStage:
    bot: hikari.GatewayBot
    remote: Remote
    eve: int
    guild: int
    place: int

    def people(self, verb: str, **arguments: Any) -> Any:
        return self.remote.call(verb, **arguments)

    @asynccontextmanager
    async def hears(self, event: type[hikari.Event]) -> AsyncIterator["asyncio.Future[Any]"]:
        """What is heard of this kind while the block runs."""
        heard: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def hear(told: hikari.Event) -> None:
            if not heard.done():
                heard.set_result(told)

        self.bot.subscribe(event, hear)
        try:
            yield heard
            await asyncio.wait({heard}, timeout=20)
            assert heard.done(), f"no {event.__name__}"
        finally:
            self.bot.unsubscribe(event, hear)


@asynccontextmanager
async def a_client(remote: Remote, url: str, token: str) -> AsyncIterator[HikariStage]:
    eve = remote.call("user", name="Eve")
    guild = remote.call("guild", name="other house", owner=eve)
    place = remote.call("text_channel", guild=guild)
    remote.call("forum", guild=guild)
    remote.call("thread", parent=place, name="old")
    wanted = hikari.Intents.GUILDS | hikari.Intents.GUILD_MESSAGES | hikari.Intents.DM_MESSAGES
    bot = hikari.GatewayBot(
        token,
        rest_url=f"{url}/api/v10",
        intents=wanted | hikari.Intents.MESSAGE_CONTENT,
        banner=None,
        logs=None,
    )
    await bot.start(check_for_updates=False)
    try:
        yield HikariStage(bot, remote, eve, guild, place)
    finally:
        await bot.close()


@check
async def the_server_is_parsed(stage: HikariStage) -> None:
    for _ in range(1000):
        if stage.bot.cache.get_guild(stage.guild) is not None:
            break
        await asyncio.sleep(0.01)
    channels = stage.bot.cache.get_guild_channels_view_for_guild(stage.guild)
    assert stage.place in channels
    threads = await stage.bot.rest.fetch_active_threads(stage.guild)
    assert [each.name for each in threads] == ["old"]


@check
async def every_field_of_a_message_is_there(stage: HikariStage) -> None:
    async with stage.hears(hikari.GuildMessageCreateEvent) as heard:
        files = {"notes.txt": "read me"}
        stage.people("say", channel=stage.place, user=stage.eve, text="hello", files=files)
    message = (await heard).message
    assert (message.content, message.author.id) == ("hello", stage.eve)
    assert [each.filename for each in message.attachments] == ["notes.txt"]


@check
async def every_field_of_a_private_message_is_there(stage: HikariStage) -> None:
    dm = stage.people("dm", user=stage.eve)
    async with stage.hears(hikari.DMMessageCreateEvent) as heard:
        stage.people("say", channel=dm, user=stage.eve, text="psst")
    assert (await heard).message.content == "psst"
    opened = await stage.bot.rest.create_dm_channel(stage.eve)
    assert opened.id == dm
    assert opened.last_message_id is not None


@check
async def the_same_nonce_gives_the_same_message(stage: HikariStage) -> None:
    first = await stage.bot.rest.create_message(stage.place, "once", nonce="hikari-1")
    again = await stage.bot.rest.create_message(stage.place, "once", nonce="hikari-1")
    assert first.id == again.id
    (asked, *_) = stage.people("requests", method="createMessage")[-1:]
    assert asked["params"]["enforce_nonce"] is True


@check
async def the_history_is_parsed(stage: HikariStage) -> None:
    said = stage.people("say", channel=stage.place, user=stage.eve, text="one")
    stage.people("say", channel=stage.place, user=stage.eve, text="two", reply_to=said["id"])
    found = await stage.bot.rest.fetch_messages(stage.place, after=said["id"])
    (two,) = [each for each in found if each.content == "two"]
    assert two.referenced_message is not None
    assert two.referenced_message.id == said["id"]


@check
async def a_button_is_pressed_and_answered(stage: HikariStage) -> None:
    row = stage.bot.rest.build_message_action_row()
    row.add_interactive_button(hikari.ButtonStyle.PRIMARY, "q1:yes", label="Yes")
    sent = await stage.bot.rest.create_message(stage.place, "sure?", component=row)
    async with stage.hears(hikari.InteractionCreateEvent) as heard:
        stage.people("press", message=[stage.place, sent.id], user=stage.eve, label="Yes")
    pressed = (await heard).interaction
    assert isinstance(pressed, hikari.ComponentInteraction)
    assert (pressed.custom_id, pressed.user.id) == ("q1:yes", stage.eve)
    kind = hikari.ResponseType.MESSAGE_CREATE
    mark = hikari.MessageFlag.EPHEMERAL
    await pressed.create_initial_response(kind, "taken", flags=mark)


@check
async def commands_are_registered_and_used(stage: HikariStage) -> None:
    made = stage.bot.rest.slash_command_builder("stop", "stop the turn")
    made.add_option(
        hikari.CommandOption(type=hikari.OptionType.STRING, name="words", description="what")
    )
    mine = (await stage.bot.rest.fetch_my_user()).id
    await stage.bot.rest.set_application_commands(mine, [made])
    (kept,) = await stage.bot.rest.fetch_application_commands(mine)
    assert (kept.name, kept.options[0].name) == ("stop", "words")
    async with stage.hears(hikari.InteractionCreateEvent) as heard:
        dm = stage.people("dm", user=stage.eve)
        stage.people("slash", channel=dm, user=stage.eve, name="stop", words="all")
    used = (await heard).interaction
    assert isinstance(used, hikari.CommandInteraction)
    assert (used.command_name, used.options[0].value) == ("stop", "all")


@check
async def a_session_that_is_over_is_begun_anew(stage: HikariStage) -> None:
    before = stage.people("sessions")
    async with stage.hears(hikari.ShardReadyEvent):
        stage.people("invalidate")
    assert stage.people("sessions")["identified"] == before["identified"] + 1
