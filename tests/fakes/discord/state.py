"""What the platform holds: people, servers, channels, messages; each as the API tells of it.

The shapes follow the reference of the Discord API, version 10 (resources/*.mdx in the public
repository discord-api-docs), and are held to two client libraries by `clients_check`.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

JSON = dict[str, Any]
EPOCH_MS = 1_420_070_400_000
"""The first millisecond of 2015: ids count from there."""
VIEW, SEND, HISTORY = 1 << 10, 1 << 11, 1 << 16
ALL_PERMISSIONS = str((1 << 50) - 1)


class ChannelType(IntEnum):
    TEXT = 0
    DM = 1
    NEWS_THREAD = 10
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12
    FORUM = 15


THREADS = frozenset(
    {ChannelType.NEWS_THREAD, ChannelType.PUBLIC_THREAD, ChannelType.PRIVATE_THREAD}
)


class Ids:
    """Numbers that grow and hold the time: 22 bits below the milliseconds."""

    def __init__(self) -> None:
        self._last = 0

    def next(self, now: float) -> int:
        made = (int(now * 1000) - EPOCH_MS) << 22
        self._last = max(made, self._last + 1)
        return self._last


def stamp_of(number: int) -> str:
    """When an id was given out."""
    seconds = ((number >> 22) + EPOCH_MS) / 1000
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


@dataclass(slots=True, eq=False)
class DiscordUser:
    user_id: int
    name: str
    is_bot: bool = False
    takes_dms: bool = True

    def as_json(self) -> JSON:
        return {
            "id": str(self.user_id),
            "username": self.name.lower(),
            "discriminator": "0",
            "global_name": self.name,
            "avatar": None,
            "avatar_decoration_data": None,
            "banner": None,
            "accent_color": None,
            "collectibles": None,
            "primary_guild": None,
            "bot": self.is_bot,
            "system": False,
            "public_flags": 0,
        }

    def as_self(self) -> JSON:
        return self.as_json() | {
            "flags": 0,
            "mfa_enabled": False,
            "locale": "en-US",
            "verified": True,
            "email": None,
            "premium_type": 0,
        }

    def as_member(self, joined: str) -> JSON:
        return {
            "nick": None,
            "avatar": None,
            "banner": None,
            "roles": [],
            "joined_at": joined,
            "premium_since": None,
            "deaf": False,
            "mute": False,
            "flags": 0,
            "pending": False,
            "communication_disabled_until": None,
        }


@dataclass(slots=True, eq=False)
class StoredAttachment:
    attachment_id: int
    name: str
    kind: str
    content: bytes

    def as_json(self, address: str) -> JSON:
        return {
            "id": str(self.attachment_id),
            "filename": self.name,
            "size": len(self.content),
            "url": address,
            "proxy_url": address,
            "content_type": self.kind,
        }


@dataclass(slots=True, eq=False)
class DiscordMessage:
    message_id: int
    channel: "DiscordChannel"
    author: DiscordUser
    content: str
    nonce: str | None = None
    kind: int = 0
    mentions: tuple[DiscordUser, ...] = ()
    attachments: tuple[StoredAttachment, ...] = ()
    components: tuple[JSON, ...] = ()
    answers: "DiscordMessage | None" = None
    passes_on: "DiscordMessage | None" = None
    edited: str | None = None
    is_deleted: bool = False
    webhook_id: int | None = None
    at: float = 0.0

    @property
    def text(self) -> str:
        return self.content

    @property
    def is_by_bot(self) -> bool:
        return self.author.is_bot

    @property
    def labels(self) -> list[str]:
        return [button["label"] for row in self.components for button in row["components"]]

    @property
    def reference(self) -> JSON | None:
        pointed = self.answers or self.passes_on
        if pointed is None:
            return None
        found: JSON = {
            "type": 0 if self.answers else 1,
            "message_id": str(pointed.message_id),
            "channel_id": str(pointed.channel.channel_id),
        }
        if pointed.channel.guild is not None:
            found["guild_id"] = str(pointed.channel.guild.guild_id)
        return found


@dataclass(slots=True, eq=False)
class DiscordChannel:
    channel_id: int
    kind: ChannelType
    name: str
    guild: "Guild | None" = None
    parent: "DiscordChannel | None" = None
    recipient: DiscordUser | None = None
    owner: DiscordUser | None = None
    messages: dict[int, DiscordMessage] = field(default_factory=dict)
    last_message_id: int | None = None
    typed: int = 0
    is_archived: bool = False
    is_locked: bool = False
    is_gone: bool = False
    denied: int = 0
    """Permissions that the bot lacks here."""

    @property
    def is_thread(self) -> bool:
        return self.kind in THREADS

    def may(self, permission: int) -> bool:
        above = self.parent.denied if self.parent is not None else 0
        return not permission & (self.denied | above)

    def as_json(self) -> JSON:
        shown: JSON = {
            "id": str(self.channel_id),
            "type": int(self.kind),
            "last_message_id": None if self.last_message_id is None else str(self.last_message_id),
            "flags": 0,
        }
        if self.recipient is not None:
            return shown | {"recipients": [self.recipient.as_json()]}
        assert self.guild is not None
        shown |= {"guild_id": str(self.guild.guild_id), "name": self.name}
        if self.is_thread:
            return shown | self._as_thread()
        shown |= {
            "position": 0,
            "permission_overwrites": [],
            "parent_id": None,
            "topic": None,
            "nsfw": False,
            "rate_limit_per_user": 0,
            "last_pin_timestamp": None,
        }
        if self.kind is ChannelType.FORUM:
            shown |= {
                "available_tags": [],
                "default_reaction_emoji": None,
                "default_sort_order": None,
                "default_forum_layout": 0,
                "default_auto_archive_duration": 1440,
                "default_thread_rate_limit_per_user": 0,
            }
        return shown

    def _as_thread(self) -> JSON:
        assert self.parent is not None
        assert self.owner is not None
        return {
            "parent_id": str(self.parent.channel_id),
            "owner_id": str(self.owner.user_id),
            "message_count": len(self.messages),
            "total_message_sent": len(self.messages),
            "member_count": 1,
            "rate_limit_per_user": 0,
            "applied_tags": [],
            "thread_metadata": {
                "archived": self.is_archived,
                "auto_archive_duration": 1440,
                "archive_timestamp": stamp_of(self.channel_id),
                "locked": self.is_locked,
                "create_timestamp": stamp_of(self.channel_id),
            },
        }


@dataclass(slots=True, eq=False)
class Guild:
    guild_id: int
    name: str
    owner: DiscordUser
    bot: DiscordUser
    joined: str
    channels: list[DiscordChannel] = field(default_factory=list)
    people: list[DiscordUser] = field(default_factory=list)

    @property
    def threads(self) -> list[DiscordChannel]:
        """Those that are active and that the bot can see."""
        return [each for each in self._seen() if each.is_thread and not each.is_archived]

    @property
    def places(self) -> list[DiscordChannel]:
        """Channels are listed whether the bot can see into them or not."""
        return [each for each in self.channels if not each.is_thread and not each.is_gone]

    def _seen(self) -> list[DiscordChannel]:
        return [each for each in self.channels if each.may(VIEW) and not each.is_gone]

    def as_json(self) -> JSON:
        return {
            "id": str(self.guild_id),
            "name": self.name,
            "icon": None,
            "splash": None,
            "discovery_splash": None,
            "owner_id": str(self.owner.user_id),
            "afk_channel_id": None,
            "afk_timeout": 300,
            "widget_enabled": False,
            "widget_channel_id": None,
            "verification_level": 0,
            "default_message_notifications": 0,
            "explicit_content_filter": 0,
            "roles": [self._everyone()],
            "emojis": [],
            "stickers": [],
            "features": [],
            "mfa_level": 0,
            "application_id": None,
            "system_channel_id": None,
            "system_channel_flags": 0,
            "rules_channel_id": None,
            "max_presences": None,
            "max_members": 500_000,
            "vanity_url_code": None,
            "description": None,
            "banner": None,
            "premium_tier": 0,
            "premium_subscription_count": 0,
            "preferred_locale": "en-US",
            "public_updates_channel_id": None,
            "max_video_channel_users": 25,
            "max_stage_video_channel_users": 50,
            "nsfw_level": 0,
            "premium_progress_bar_enabled": False,
            "safety_alerts_channel_id": None,
            "incidents_data": None,
        }

    def as_created(self) -> JSON:
        """What GUILD_CREATE holds."""
        return self.as_json() | {
            "joined_at": self.joined,
            "large": False,
            "unavailable": False,
            "member_count": 1 + len(self.people),
            "voice_states": [],
            "members": [self.bot.as_member(self.joined) | {"user": self.bot.as_json()}],
            "channels": [each.as_json() for each in self.places],
            "threads": [each.as_json() for each in self.threads],
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
        }

    def _everyone(self) -> JSON:
        return {
            "id": str(self.guild_id),
            "name": "@everyone",
            "color": 0,
            "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
            "hoist": False,
            "icon": None,
            "unicode_emoji": None,
            "position": 0,
            "permissions": ALL_PERMISSIONS,
            "managed": False,
            "mentionable": False,
            "flags": 0,
        }
