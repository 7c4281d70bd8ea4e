"""The things of a workspace: people, conversations, messages, files."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

JSON = dict[str, Any]


class Kind(StrEnum):
    IM = "im"
    MPIM = "mpim"
    CHANNEL = "channel"
    GROUP = "group"  # a private channel


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    user_id: str
    name: str
    is_bot: bool = False
    is_deleted: bool = False
    tz: str = "Europe/Vienna"

    def as_json(self, team_id: str) -> JSON:
        return {
            "id": self.user_id,
            "team_id": team_id,
            "name": self.name.lower(),
            "deleted": self.is_deleted,
            "real_name": self.name,
            "is_bot": self.is_bot,
            "tz": self.tz,
            "profile": {"real_name": self.name, "display_name": self.name, "team": team_id},
        }


@dataclass(slots=True, kw_only=True, eq=False)
class Upload:
    """A file of the platform. Until it is completed, only its uploader knows of it."""

    file_id: str
    name: str
    mimetype: str
    owner: str
    length: int
    content: bytes | None = None
    title: str = ""
    is_completed: bool = False
    shared_in: list[str] = field(default_factory=list)

    def as_json(self, base: str) -> JSON:
        kind = self.name.rpartition(".")[2] if "." in self.name else "binary"
        place = f"{base}/files-pri/T0TEAM-{self.file_id}"
        return {
            "id": self.file_id,
            "name": self.name,
            "title": self.title or self.name,
            "mimetype": self.mimetype,
            "filetype": kind,
            "user": self.owner,
            "size": self.length,
            "mode": "hosted",
            "url_private": f"{place}/{self.name}",
            "url_private_download": f"{place}/download/{self.name}",
            "permalink": f"{base}/files/{self.owner}/{self.file_id}/{self.name}",
        }


@dataclass(slots=True, kw_only=True, eq=False)
class Post:
    """One message. `body` is what the platform shows of it, without metadata."""

    conversation: "Conversation"
    ts: str
    user: str
    body: JSON
    thread_ts: str = ""
    metadata: JSON | None = None
    is_deleted: bool = False
    replies: list["Post"] = field(default_factory=list)
    reactions: list[tuple[str, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return str(self.body.get("text", ""))

    @property
    def is_by_bot(self) -> bool:
        return "bot_id" in self.body

    @property
    def is_reply(self) -> bool:
        return bool(self.thread_ts) and self.thread_ts != self.ts

    @property
    def shown(self) -> str:
        """What people see: the blocks where there are some, else the text."""
        said = "".join(_words(block) for block in self.body.get("blocks", ()))
        return said or self.text

    @property
    def buttons(self) -> list[JSON]:
        return [
            each
            for block in self.body.get("blocks", ())
            if block.get("type") == "actions"
            for each in block["elements"]
        ]

    @property
    def labels(self) -> list[str]:
        return [each["text"]["text"] for each in self.buttons]

    def as_json(self, *, with_metadata: bool = False) -> JSON:
        told: JSON = {"type": "message", "user": self.user, "ts": self.ts, **self.body}
        if self.thread_ts:
            told["thread_ts"] = self.thread_ts
        if self.replies:
            alive = [each for each in self.replies if not each.is_deleted]
            told |= {"reply_count": len(alive), "thread_ts": self.ts}
            if alive:
                told |= {"latest_reply": alive[-1].ts, "reply_users_count": 1}
        if self.is_reply:
            told["parent_user_id"] = self.conversation.posts[self.thread_ts].user
        if self.reactions:
            told["reactions"] = [
                {"name": name, "users": [user], "count": 1} for user, name in self.reactions
            ]
        if with_metadata and self.metadata is not None:
            told["metadata"] = self.metadata
        return told


@dataclass(slots=True, kw_only=True, eq=False)
class Conversation:
    channel_id: str
    kind: Kind
    name: str = ""
    person: str = ""
    """The other one, where there are two."""
    members: set[str] = field(default_factory=set)
    is_archived: bool = False
    created: int = 0
    posts: dict[str, Post] = field(default_factory=dict)
    """By ts, the oldest first, replies among them."""
    status: dict[str, str] = field(default_factory=dict)
    """What the app shows in a thread while it works."""

    def as_json(self) -> JSON:
        told: JSON = {
            "id": self.channel_id,
            "created": self.created,
            "is_archived": self.is_archived,
            "is_im": self.kind is Kind.IM,
            "is_mpim": self.kind is Kind.MPIM,
            "is_channel": self.kind is Kind.CHANNEL,
            "is_group": self.kind is Kind.GROUP,
            "is_private": self.kind is not Kind.CHANNEL,
        }
        if self.kind is Kind.IM:
            return told | {"user": self.person, "is_user_deleted": False}
        return told | {"name": self.name, "is_member": True}


def _words(block: JSON) -> str:
    """The letters of a block that shows text, as they stand there."""
    match block.get("type"):
        case "rich_text":
            return "".join(_words(each) for each in block["elements"])
        case "rich_text_list":
            return "".join(_words(each) + "\n" for each in block["elements"])
        case "rich_text_section" | "rich_text_preformatted" | "rich_text_quote":
            return "".join(_words(each) for each in block["elements"])
        case "link":
            return str(block.get("text") or block["url"])
        case "text":
            return str(block["text"])
        case _:
            return ""
