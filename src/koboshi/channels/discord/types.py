"""What the gateway and the REST API tell, as far as it matters here. Unknown fields are ignored.

Names of fields follow `resources/*.mdx` and `events/gateway-events.mdx` of the API documentation.
"""

from typing import Any

from msgspec import Raw, Struct, field

NOTHING = Raw(b"null")


class GatewayFrame(Struct, frozen=True):
    op: int
    content: Raw = field(default=NOTHING, name="d")
    seq: int | None = field(default=None, name="s")
    event: str | None = field(default=None, name="t")


class Hello(Struct, frozen=True):
    heartbeat_interval: int


class DiscordPerson(Struct, frozen=True):
    id: str
    username: str = ""
    global_name: str | None = None
    is_bot: bool = field(default=False, name="bot")

    @property
    def name(self) -> str:
        return self.global_name or self.username


class ReadyEvent(Struct, frozen=True):
    session_id: str
    resume_gateway_url: str
    guilds: "tuple[GuildStub, ...]" = ()


class GuildStub(Struct, frozen=True):
    id: str
    unavailable: bool = False


class DiscordPlace(Struct, frozen=True):
    """A channel of a server, a thread, or a private channel."""

    id: str
    kind: int = field(default=0, name="type")
    guild_id: str | None = None
    parent_id: str | None = None
    last_message_id: str | None = None


class GuildCreated(Struct, frozen=True):
    id: str
    joined_at: str = ""
    unavailable: bool = False
    channels: tuple[DiscordPlace, ...] = ()
    threads: tuple[DiscordPlace, ...] = ()


class DiscordFile(Struct, frozen=True):
    id: str
    filename: str = ""
    size: int = 0
    url: str = ""
    content_type: str | None = None


class Reference(Struct, frozen=True):
    kind: int = field(default=0, name="type")
    message_id: str | None = None


class StickerItem(Struct, frozen=True):
    name: str = ""


class PollQuestion(Struct, frozen=True):
    text: str | None = None


class PollAnswer(Struct, frozen=True):
    poll_media: PollQuestion


class DiscordPoll(Struct, frozen=True):
    question: PollQuestion
    answers: tuple[PollAnswer, ...] = ()


class SnapshotWords(Struct, frozen=True):
    content: str = ""
    attachments: tuple[DiscordFile, ...] = ()


class Snapshot(Struct, frozen=True):
    """A message that was passed on."""

    message: SnapshotWords


class ChannelMessage(Struct, frozen=True):
    id: str
    channel_id: str
    author: DiscordPerson | None = None
    content: str = ""
    kind: int = field(default=0, name="type")
    guild_id: str | None = None
    webhook_id: str | None = None
    channel_type: int | None = None
    mentions: tuple[DiscordPerson, ...] = ()
    attachments: tuple[DiscordFile, ...] = ()
    sticker_items: tuple[StickerItem, ...] = ()
    poll: DiscordPoll | None = None
    embeds: tuple[Raw, ...] = ()
    components: tuple[Raw, ...] = ()
    message_reference: Reference | None = None
    referenced_message: "ChannelMessage | None" = None
    message_snapshots: tuple[Snapshot, ...] = ()
    edited_timestamp: str | None = None
    nonce: str | int | None = None


class CommandOption(Struct, frozen=True):
    name: str
    value: Any = None


class Used(Struct, frozen=True):
    """What a person used: the button, or the command and what was written behind it."""

    custom_id: str = ""
    name: str = ""
    options: tuple[CommandOption, ...] = ()


class Member(Struct, frozen=True):
    user: DiscordPerson | None = None


class Interaction(Struct, frozen=True):
    id: str
    token: str
    kind: int = field(default=0, name="type")
    used: Used | None = field(default=None, name="data")
    channel_id: str | None = None
    guild_id: str | None = None
    channel: DiscordPlace | None = None
    member: Member | None = None
    user: DiscordPerson | None = None
    message: ChannelMessage | None = None

    @property
    def person(self) -> DiscordPerson | None:
        """Who pressed or asked: within a server it is the member's."""
        return self.member.user if self.member is not None else self.user


class OnlyId(Struct, frozen=True):
    id: str


class GoneMessages(Struct, frozen=True):
    """Messages that were deleted: one, or many at once."""

    channel_id: str
    id: str = ""
    ids: tuple[str, ...] = ()


class RefusedCall(Struct, frozen=True):
    """What the API says with a status that is no success."""

    message: str = ""
    code: int = 0
    retry_after: float = 0.0
    is_global: bool = field(default=False, name="global")


class StartLimit(Struct, frozen=True):
    remaining: int = 1000
    reset_after: int = 0


class GatewayAddress(Struct, frozen=True):
    url: str
    session_start_limit: StartLimit = StartLimit()


class DiscordApplication(Struct, frozen=True):
    id: str
    marks: int = field(default=0, name="flags")
