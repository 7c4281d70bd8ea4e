"""What we read of Slack's objects: the fields we use, everything else is passed over."""

from typing import Any

from msgspec import Raw, Struct, field


class SlackEdited(Struct, frozen=True):
    user: str = ""
    ts: str = ""


class SlackFile(Struct, frozen=True):
    id: str
    name: str | None = None
    title: str | None = None
    mimetype: str = ""
    size: int = 0
    mode: str = ""
    url_private_download: str = ""

    @property
    def is_gone(self) -> bool:
        """It was deleted, or is hidden from us."""
        return self.mode in {"tombstone", "hidden_by_limit"}


class SlackMetadata(Struct, frozen=True):
    event_type: str = ""
    event_payload: dict[str, Any] = field(default_factory=dict)


class SlackShared(Struct, frozen=True):
    """What hangs below a message: a message of another person that is passed on, or else."""

    is_share: bool = False
    text: str | None = ""
    author_name: str | None = ""


class SlackMessage(Struct, frozen=True):
    """A message, of an event or of the history. Events name their conversation."""

    type: str = ""
    subtype: str = ""
    channel: str = ""
    user: str = ""
    bot_id: str = ""
    text: str | None = ""
    ts: str = ""
    thread_ts: str = ""
    parent_user_id: str = ""
    latest_reply: str = ""
    edited: SlackEdited | None = None
    files: tuple[SlackFile, ...] | None = ()
    attachments: tuple[SlackShared, ...] | None = ()
    metadata: SlackMetadata | None = None

    @property
    def words(self) -> str:
        return self.text or ""

    @property
    def attached(self) -> tuple[SlackFile, ...]:
        return tuple(file for file in self.files or () if not file.is_gone)

    @property
    def shared(self) -> tuple[SlackShared, ...]:
        """Messages of others that are passed on with it."""
        return tuple(each for each in self.attachments or () if each.is_share and each.text)


class SlackEvent(SlackMessage, frozen=True):
    """A message event; a change carries the message as it is now and as it was."""

    message: SlackMessage | None = None
    previous_message: SlackMessage | None = None
    deleted_ts: str = ""


class EventCallback(Struct, frozen=True):
    """The outer part of what the Events API tells."""

    type: str = ""
    event_id: str = ""
    challenge: str = ""
    event: Raw = Raw(b"{}")


class EventKind(Struct, frozen=True):
    type: str = ""


class SlackUser(Struct, frozen=True):
    id: str = ""
    name: str = ""
    username: str = ""


class SlackPlace(Struct, frozen=True):
    id: str = ""


class SlackContainer(Struct, frozen=True):
    message_ts: str = ""
    channel_id: str = ""
    thread_ts: str = ""


class SlackAction(Struct, frozen=True):
    action_id: str = ""
    value: str = ""
    action_ts: str = ""


class SlackPress(Struct, frozen=True):
    """A button below a message was pressed."""

    type: str = ""
    user: SlackUser = SlackUser()
    channel: SlackPlace = SlackPlace()
    container: SlackContainer = SlackContainer()
    actions: tuple[SlackAction, ...] = ()


class SlackCommand(Struct, frozen=True):
    """Our slash command was given."""

    command: str = ""
    text: str = ""
    user_id: str = ""
    user_name: str = ""
    channel_id: str = ""
    trigger_id: str = ""


class SlackAppOf(Struct, frozen=True):
    """Which app a connection or a bot is of."""

    app_id: str = ""


class SlackEnvelope(Struct, frozen=True):
    """What comes over a socket."""

    type: str = ""
    envelope_id: str = ""
    reason: str = ""
    greets: SlackAppOf = field(default=SlackAppOf(), name="connection_info")
    payload: Raw = Raw(b"{}")


class SlackPaging(Struct, frozen=True):
    next_cursor: str = ""


class SlackReply(Struct, frozen=True):
    """What every method answers, and the few results of those that we call."""

    ok: bool = False
    error: str = ""
    needed: str = ""
    url: str = ""
    ts: str = ""
    user_id: str = ""
    bot_id: str = ""
    team_id: str = ""
    team: str | None = None
    upload_url: str = ""
    file_id: str = ""
    has_more: bool = False
    response_metadata: SlackPaging | None = None

    @property
    def next_cursor(self) -> str:
        return self.response_metadata.next_cursor if self.response_metadata is not None else ""


class SlackBotReply(SlackReply, frozen=True):
    bot: SlackAppOf = SlackAppOf()


class SlackRawPage(SlackReply, frozen=True):
    """A page of the history. One message that cannot be read must not hide the others."""

    messages: tuple[Raw, ...] = ()


class SlackHistoryPage(Struct, frozen=True):
    """The messages of a page that can be read."""

    messages: tuple[SlackMessage, ...] = ()
    has_more: bool = False
    next_cursor: str = ""


class SlackConversation(Struct, frozen=True):
    id: str
    is_archived: bool = False


class SlackConversationPage(SlackReply, frozen=True):
    channels: tuple[SlackConversation, ...] = ()


class SlackProfile(Struct, frozen=True):
    display_name: str = ""
    real_name: str = ""


class SlackPerson(Struct, frozen=True):
    name: str = ""
    tz: str | None = None
    profile: SlackProfile = SlackProfile()

    @property
    def shown(self) -> str:
        return self.profile.display_name or self.profile.real_name or self.name


class SlackPersonReply(SlackReply, frozen=True):
    user: SlackPerson = SlackPerson()


class SlackFileReply(SlackReply, frozen=True):
    file: SlackFile | None = None
