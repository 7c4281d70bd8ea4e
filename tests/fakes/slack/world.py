"""A workspace: people in conversations with one app, and what the app is told of them."""

import itertools
import time
from collections.abc import Sequence

from tests.fakes.slack.happenings import Fate, Happening, Happenings, event_payload
from tests.fakes.slack.state import JSON, Conversation, Kind, Member, Post, Upload

TEAM = "T0TEAM"
APP = "A0KOBOSHI"
BOT_USER = "U0KOBOSHI"
BOT_ID = "B0KOBOSHI"
SCOPES = (
    "app_mentions:read assistant:write channels:history channels:read chat:write commands"
    " files:read files:write groups:history groups:read im:history im:read im:write"
    " metadata.message:read mpim:history mpim:read reactions:write users:read"
).split()


class SlackWorld:
    def __init__(self) -> None:
        self.clock = time.time
        self.scopes = set(SCOPES)
        self.happenings = Happenings()
        self.bot = Member(user_id=BOT_USER, name="koboshi", is_bot=True)
        self.members: dict[str, Member] = {BOT_USER: self.bot}
        self.conversations: dict[str, Conversation] = {}
        self.files: dict[str, Upload] = {}
        self.base = ""
        """Where the platform is reached; addresses of files begin with it."""
        self._numbers = itertools.count(1)
        self._newest = 0

    # ----- people -----

    def user(self, name: str = "Ann") -> Member:
        member = Member(user_id=f"U{next(self._numbers):08d}", name=name)
        self.members[member.user_id] = member
        return member

    def im(self, user: Member) -> Conversation:
        """The conversation of the app with one person; there is only one."""
        for each in self.conversations.values():
            if each.kind is Kind.IM and each.person == user.user_id:
                return each
        return self._made("D", Kind.IM, person=user.user_id, members={user.user_id, BOT_USER})

    def channel(self, name: str = "general", *, is_private: bool = False) -> Conversation:
        kind = Kind.GROUP if is_private else Kind.CHANNEL
        return self._made("C", kind, name=name, members={*self.members})

    def say(
        self,
        place: Conversation,
        user: Member,
        text: str,
        *,
        thread: Post | str = "",
        files: Sequence[Upload] = (),
        is_broadcast: bool = False,
    ) -> Post:
        """A person writes. Channels tell of it twice where the app is named."""
        root = thread.ts if isinstance(thread, Post) else thread
        post = self.put(place, user.user_id, {"text": text}, thread_ts=root)
        if user.user_id not in place.members:
            place.members.add(user.user_id)
        post.body["client_msg_id"] = f"msg-{post.ts}"
        if files:
            post.body |= {"subtype": "file_share", "upload": False}
            post.body["files"] = [each.as_json(self.base) for each in files]
            for each in files:
                each.shared_in.append(place.channel_id)
        if is_broadcast:
            post.body["subtype"] = "thread_broadcast"
        self._tell_of(post)
        return post

    def edit(self, post: Post, text: str) -> Happening:
        before = post.as_json()
        post.body["text"] = text
        post.body["edited"] = {"user": post.user, "ts": self.new_ts()}
        return self.tell(
            {
                "type": "message",
                "subtype": "message_changed",
                "hidden": True,
                "channel": post.conversation.channel_id,
                "channel_type": post.conversation.kind.value,
                "ts": post.body["edited"]["ts"],
                "event_ts": post.body["edited"]["ts"],
                "message": post.as_json(),
                "previous_message": before,
            }
        )

    def delete(self, post: Post) -> Happening:
        post.is_deleted = True
        ts = self.new_ts()
        return self.tell(
            {
                "type": "message",
                "subtype": "message_deleted",
                "hidden": True,
                "channel": post.conversation.channel_id,
                "channel_type": post.conversation.kind.value,
                "deleted_ts": post.ts,
                "ts": ts,
                "event_ts": ts,
                "previous_message": post.as_json(),
            }
        )

    def press(self, post: Post, label: str, user: Member) -> Happening:
        """A person presses a button below a message of the app."""
        (button,) = [each for each in post.buttons if each["text"]["text"] == label]
        place = post.conversation
        container = {
            "type": "message",
            "message_ts": post.ts,
            "channel_id": place.channel_id,
            "is_ephemeral": False,
        }
        if post.thread_ts:
            container["thread_ts"] = post.thread_ts
        pressed = {
            "type": "block_actions",
            "user": {
                "id": user.user_id,
                "username": user.name.lower(),
                "name": user.name.lower(),
                "team_id": TEAM,
            },
            "api_app_id": APP,
            "container": container,
            "trigger_id": f"{self.new_ts()}.press",
            "team": {"id": TEAM, "domain": "loopback"},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": place.channel_id, "name": place.name or "directmessage"},
            "message": post.as_json(),
            "response_url": f"{self.base}/actions/unused",
            "actions": [{**button, "block_id": "b", "action_ts": self.new_ts()}],
        }
        return self.happenings.add("interactive", pressed)

    def command(self, place: Conversation, user: Member, text: str) -> Happening:
        """A person gives the slash command of the app."""
        given = {
            "token": "unused-verification-token",
            "team_id": TEAM,
            "team_domain": "loopback",
            "channel_id": place.channel_id,
            "channel_name": place.name or "directmessage",
            "user_id": user.user_id,
            "user_name": user.name.lower(),
            "command": "/koboshi",
            "text": text,
            "api_app_id": APP,
            "is_enterprise_install": "false",
            "response_url": f"{self.base}/commands/unused",
            "trigger_id": f"{self.new_ts()}.command",
        }
        return self.happenings.add("slash_commands", given)

    def upload(self, user: Member, name: str, content: bytes, kind: str = "text/plain") -> Upload:
        made = self.new_file(name, len(content), user.user_id)
        made.content, made.mimetype, made.is_completed = content, kind, True
        return made

    def open_assistant(self, user: Member) -> tuple[Conversation, Post]:
        """A person opens a new thread with the assistant."""
        place = self.im(user)
        root = self.put(place, BOT_USER, {"text": "New Assistant Thread", "bot_id": BOT_ID})
        root.body["subtype"] = "assistant_app_thread"
        self.tell(
            {
                "type": "assistant_thread_started",
                "assistant_thread": {
                    "user_id": user.user_id,
                    "context": {},
                    "channel_id": place.channel_id,
                    "thread_ts": root.ts,
                },
                "event_ts": self.new_ts(),
            }
        )
        return place, root

    # ----- what tests look at -----

    def posts(self, place: Conversation, thread: str = "") -> list[Post]:
        """What stands in a place, the oldest first; all of it, or one thread."""
        seen = [each for each in place.posts.values() if not each.is_deleted]
        return [each for each in seen if not thread or thread in (each.thread_ts, each.ts)]

    def said(self, place: Conversation) -> list[Post]:
        """What the app has said there."""
        return [each for each in self.posts(place) if each.is_by_bot]

    def copies(self, text: str) -> list[Post]:
        """All messages of the app anywhere that hold these words."""
        places = self.conversations.values()
        return [each for place in places for each in self.said(place) if text in each.shown]

    def event_of(self, post: Post) -> Happening:
        """The first event that told of a message."""
        return next(each for each in self.happenings.all if each.event.get("ts") == post.ts)

    @property
    def lost(self) -> list[Happening]:
        return [each for each in self.happenings.all if each.fate is Fate.LOST]

    # ----- how it works -----

    def tell(self, event: JSON) -> Happening:
        number = next(self._numbers)
        payload = event_payload(event, team_id=TEAM, app_id=APP, number=number, bot=BOT_USER)
        return self.happenings.add("events_api", payload)

    def put(self, place: Conversation, user: str, body: JSON, *, thread_ts: str = "") -> Post:
        """A message stands in a conversation."""
        post = Post(conversation=place, ts=self.new_ts(), user=user, body=body, thread_ts=thread_ts)
        place.posts[post.ts] = post
        root = place.posts.get(thread_ts)
        if root is not None:
            root.replies.append(post)
        return post

    def tell_of_own(self, post: Post) -> None:
        """The app hears its own words, too."""
        self._tell_of(post)

    def new_ts(self) -> str:
        """Times of messages are unique in a workspace and grow."""
        self._newest = max(self._newest + 1, int(self.clock() * 1_000_000))
        return f"{self._newest // 1_000_000}.{self._newest % 1_000_000:06d}"

    def new_file(self, name: str, length: int, owner: str) -> Upload:
        file_id = f"F{next(self._numbers):08d}"
        made = Upload(
            file_id=file_id,
            name=name,
            mimetype="application/octet-stream",
            owner=owner,
            length=length,
        )
        self.files[file_id] = made
        return made

    def _made(self, letter: str, kind: Kind, **fields: object) -> Conversation:
        channel_id = f"{letter}{next(self._numbers):08d}"
        made = Conversation(
            channel_id=channel_id,
            kind=kind,
            created=int(self.clock()),
            **fields,  # type: ignore[arg-type]
        )
        self.conversations[channel_id] = made
        return made

    def _tell_of(self, post: Post) -> None:
        place = post.conversation
        if BOT_USER not in place.members:
            return
        told = {
            **post.as_json(),
            "channel": place.channel_id,
            "event_ts": post.ts,
            "team": TEAM,
        }
        self.tell({**told, "channel_type": place.kind.value})
        is_person = not post.is_by_bot
        if is_person and place.kind is not Kind.IM and f"<@{BOT_USER}>" in post.text:
            self.tell({**told, "type": "app_mention"})
