"""What discord.py must understand of the fake, and the fake of discord.py."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import discord
import yarl
from discord import app_commands
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.fakes.telegram.remote import Remote

Check = Callable[["DpyStage"], Awaitable[None]]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    CHECKS.append(function)
    return function


class Client(discord.Client):  # type: ignore[misc, unused-ignore]
    """Keeps what happens."""

    def __init__(self) -> None:
        intents = discord.Intents.none()
        intents.guilds = intents.messages = intents.message_content = True
        super().__init__(intents=intents)
        self.tree = app_commands.CommandTree(self)
        self.seen: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    async def on_message(self, message: discord.Message) -> None:
        self.seen.put_nowait(("message", message))

    async def on_raw_message_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        self.seen.put_nowait(("edit", event))

    async def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        self.seen.put_nowait(("delete", event))

    async def on_thread_create(self, thread: discord.Thread) -> None:
        self.seen.put_nowait(("thread", thread))

    async def on_resumed(self) -> None:
        self.seen.put_nowait(("resumed", None))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        self.seen.put_nowait(("interaction", interaction))


@dataclass
class DpyStage:
    client: Client
    remote: Remote
    ada: int
    guild: int
    place: int
    seen: list[tuple[str, Any]] = field(default_factory=list)

    def people(self, verb: str, **arguments: Any) -> Any:
        return self.remote.call(verb, **arguments)

    async def next(self, kind: str) -> Any:
        """The next thing of this kind; what comes before it is passed over."""
        while True:
            what, thing = await self.client.seen.get()
            if what == kind:
                return thing

    async def message(self, content: str) -> discord.Message:
        while True:
            found: discord.Message = await self.next("message")
            if found.content == content:
                return found

    @property
    def channel(self) -> discord.TextChannel:
        found = self.client.get_channel(self.place)
        assert isinstance(found, discord.TextChannel)
        return found


@asynccontextmanager
async def a_client(remote: Remote, url: str, gateway: str, token: str) -> AsyncIterator[DpyStage]:
    Route.BASE = f"{url}/api/v10"
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway)
    ada = remote.call("user", name="Ada")
    guild = remote.call("guild", name="house", owner=ada)
    place = remote.call("text_channel", guild=guild)
    remote.call("thread", parent=place, name="old")
    client = Client()
    async with client:
        await client.login(token)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.connect(reconnect=True))
            async with asyncio.timeout(20):
                await client.wait_until_ready()
            yield DpyStage(client, remote, ada, guild, place)
            await client.close()


@check
async def the_server_is_known_with_its_channels_and_threads(stage: DpyStage) -> None:
    guild = stage.client.get_guild(stage.guild)
    assert guild is not None
    assert [each.id for each in guild.text_channels] == [stage.place]
    assert [each.name for each in guild.threads] == ["old"]
    assert stage.client.user is not None
    assert stage.client.user.bot


@check
async def a_message_is_parsed(stage: DpyStage) -> None:
    me = stage.client.user.id
    stage.people("say", channel=stage.place, user=stage.ada, text=f"hello <@{me}>")
    found = await stage.message(f"hello <@{me}>")
    assert found.author.id == stage.ada
    assert stage.client.user in found.mentions
    assert found.channel == stage.channel


@check
async def a_private_message_is_parsed(stage: DpyStage) -> None:
    dm = stage.people("dm", user=stage.ada)
    stage.people("say", channel=dm, user=stage.ada, text="psst")
    found = await stage.message("psst")
    assert found.guild is None
    assert isinstance(found.channel, discord.DMChannel)


@check
async def an_edit_and_a_deletion_are_parsed(stage: DpyStage) -> None:
    said = stage.people("say", channel=stage.place, user=stage.ada, text="before")
    stage.people("edit", message=[stage.place, said["id"]], text="after")
    assert (await stage.next("edit")).data["content"] == "after"
    stage.people("delete", message=[stage.place, said["id"]])
    assert (await stage.next("delete")).message_id == said["id"]


@check
async def a_forum_post_is_a_thread_with_a_message_of_its_id(stage: DpyStage) -> None:
    forum = stage.people("forum", guild=stage.guild)
    said = stage.people("post", forum=forum, user=stage.ada, title="How?", text="like so")
    thread = await stage.next("thread")
    assert (thread.parent_id, thread.name) == (forum, "How?")
    found = await stage.message("like so")
    assert found.id == said["id"] == thread.id
    assert isinstance(found.channel, discord.Thread)


@check
async def an_attachment_can_be_read(stage: DpyStage) -> None:
    words = {"notes.txt": "read me"}
    stage.people("say", channel=stage.place, user=stage.ada, text="file", files=words)
    (attached,) = (await stage.message("file")).attachments
    assert (attached.filename, attached.size) == ("notes.txt", 7)
    async with stage.client.http._HTTPClient__session.get(attached.url) as response:
        assert await response.read() == b"read me"


@check
async def the_same_nonce_gives_the_same_message(stage: DpyStage) -> None:
    first = await stage.channel.send("once", nonce="key-1")
    again = await stage.channel.send("once", nonce="key-1")
    other = await stage.channel.send("once", nonce="key-2")
    assert first.id == again.id != other.id
    (asked, *_) = stage.people("requests", method="createMessage")
    assert asked["params"]["enforce_nonce"] is True


@check
async def after_some_minutes_the_nonce_is_forgotten(stage: DpyStage) -> None:
    first = await stage.channel.send("late", nonce="key-3")
    stage.people("forward", seconds=600)
    assert (await stage.channel.send("late", nonce="key-3")).id != first.id


@check
async def a_reply_points_to_what_it_answers(stage: DpyStage) -> None:
    said = stage.people("say", channel=stage.place, user=stage.ada, text="question")
    asked = await stage.message("question")
    answer = await asked.reply("answer")
    assert answer.reference.message_id == said["id"]
    back = stage.people(
        "say", channel=stage.place, user=stage.ada, text="thanks", reply_to=answer.id
    )
    found = await stage.message("thanks")
    assert found.id == back["id"]
    assert found.reference.resolved.author == stage.client.user


@check
async def a_file_is_sent(stage: DpyStage) -> None:
    sent = await stage.channel.send("here", file=discord.File(io.BytesIO(b"bytes"), "a.bin"))
    (attached,) = sent.attachments
    assert (attached.filename, attached.size) == ("a.bin", 5)


@check
async def the_history_is_paged_behind_a_message(stage: DpyStage) -> None:
    first = stage.people("say", channel=stage.place, user=stage.ada, text="number 0")
    for number in range(1, 251):
        stage.people("say", channel=stage.place, user=stage.ada, text=f"number {number}")
    after = discord.Object(first["id"])
    found = [each.content async for each in stage.channel.history(limit=None, after=after)]
    assert found == [f"number {number}" for number in range(1, 251)]


@check
async def too_long_a_message_is_refused(stage: DpyStage) -> None:
    answer: tuple[int, int] | None = None
    try:
        await stage.channel.send("x" * 2001)
    except discord.HTTPException as refused:
        answer = refused.status, refused.code
    assert answer == (400, 50035)


@check
async def a_button_is_pressed_and_answered(stage: DpyStage) -> None:
    view = discord.ui.View()
    view.add_item(discord.ui.Button(label="Yes", custom_id="q1:yes"))
    sent = await stage.channel.send("sure?", view=view)
    asked = stage.people("press", message=[stage.place, sent.id], user=stage.ada, label="Yes")
    pressed = await stage.next("interaction")
    assert pressed.type is discord.InteractionType.component
    assert (pressed.user.id, pressed.data["custom_id"]) == (stage.ada, "q1:yes")
    assert pressed.message.id == sent.id
    await pressed.response.send_message("taken", ephemeral=True)
    answer = stage.people("interaction", number=int(asked["id"]))
    assert answer["data"]["flags"] == 64


@check
async def a_slash_command_is_registered_and_used(stage: DpyStage) -> None:
    used: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @stage.client.tree.command(name="why", description="what happened")
    async def why(interaction: discord.Interaction, words: str) -> None:
        used.set_result(words)
        await interaction.response.send_message("taken", ephemeral=True)

    await stage.client.tree.sync()
    stage.people("slash", channel=stage.place, user=stage.ada, name="why", words="t12")
    assert await used == "t12"


@check
async def a_broken_connection_is_resumed_and_nothing_is_missed(stage: DpyStage) -> None:
    before = stage.people("sessions")
    stage.people("drop")
    for number in range(3):
        stage.people("say", channel=stage.place, user=stage.ada, text=f"missed {number}")
    for number in range(3):
        await stage.message(f"missed {number}")
    await stage.next("resumed")
    now = stage.people("sessions")
    assert now["resumed"] == before["resumed"] + 1
    assert now["identified"] == before["identified"]


@check
async def told_to_reconnect_it_resumes(stage: DpyStage) -> None:
    before = stage.people("sessions")
    stage.people("reconnect")
    await stage.next("resumed")
    assert stage.people("sessions")["resumed"] == before["resumed"] + 1


@check
async def told_to_wait_it_comes_back_in_time(stage: DpyStage) -> None:
    stage.people("limit", create=2, history=5, seconds=0.5)
    for number in range(5):
        await stage.channel.send(f"paced {number}")
    stage.people("limit", create=1000, history=1000, seconds=0.5, everything=10_000)
