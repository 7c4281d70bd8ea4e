"""The methods of the Web API, by name. Each does what it says or refuses."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.slack.blocks import TEXT_CHARS_MAX, checked_blocks, checked_metadata
from tests.fakes.slack.errors import refuse
from tests.fakes.slack.limits import Tiers
from tests.fakes.slack.state import JSON, Conversation, Kind, Post
from tests.fakes.slack.world import APP, BOT_ID, BOT_USER, TEAM, SlackWorld

READS_JSON = frozenset(
    "auth.test chat.postMessage chat.update conversations.open files.completeUploadExternal"
    " reactions.add assistant.threads.setStatus apps.connections.open".split()
)
"""Methods that read a body of JSON; the others look at a form only, and miss what is not in it."""
LISTS = {"private_channel": "groups:read", "im": "im:read", "mpim": "mpim:read"}
"""The scope that each kind of conversation is listed with; public channels have their own."""
EMOJI_NAMES = frozenset({"eyes", "white_check_mark", "thumbsup"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call, as far as it can be understood."""

    world: SlackWorld
    tiers: Tiers
    args: JSON

    def text(self, name: str, default: str = "") -> str:
        value = self.args.get(name, default)
        return value if isinstance(value, str) else json.dumps(value)

    def number(self, name: str, default: int) -> int:
        try:
            return int(self.args.get(name, default) or default)
        except (TypeError, ValueError):
            refuse("invalid_arguments")

    def switch(self, name: str) -> bool:
        return str(self.args.get(name, "")).lower() in {"true", "1"}

    def nested(self, name: str) -> Any:
        """A value that is JSON, or a string that holds some."""
        value = self.args.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value) if value else None
        except ValueError:
            refuse(f"invalid_{name}_format" if name != "files" else "invalid_arguments")

    def needs(self, *scopes: str) -> None:
        """At least one of these."""
        if not self.world.scopes & {*scopes}:
            refuse("missing_scope", needed=",".join(scopes), provided=",".join(self.world.scopes))

    def place(self, name: str = "channel") -> Conversation:
        """The conversation, which the app must be in."""
        found = self.world.conversations.get(self.text(name))
        if found is None:
            refuse("channel_not_found")
        return found


def auth_test(call: Call) -> JSON:
    return {
        "url": "https://loopback.slack.com/",
        "team": "Loopback",
        "user": call.world.bot.name,
        "team_id": TEAM,
        "user_id": BOT_USER,
        "bot_id": BOT_ID,
        "is_enterprise_install": False,
    }


def post_message(call: Call) -> JSON:
    call.needs("chat:write")
    place = _writable(call)
    thread = call.text("thread_ts")
    if thread and thread not in place.posts:
        refuse("thread_not_found")
    body = _content(call)
    metadata = checked_metadata(call.nested("metadata"))
    post = call.world.put(place, BOT_USER, body, thread_ts=thread)
    post.metadata = metadata
    place.status.pop(thread, None)
    call.world.tell_of_own(post)
    told = post.as_json(with_metadata=True)
    return {"channel": place.channel_id, "ts": post.ts, "message": told}


def update(call: Call) -> JSON:
    call.needs("chat:write")
    place = _writable(call)
    post = place.posts.get(call.text("ts"))
    if post is None or post.is_deleted:
        refuse("message_not_found")
    if not post.is_by_bot:
        refuse("cant_update_message")
    post.body = _content(call)
    return {"channel": place.channel_id, "ts": post.ts, "text": post.text}


def history(call: Call) -> JSON:
    place = _readable(call)
    roots = [
        each
        for each in place.posts.values()
        if not each.is_deleted
        and (not each.is_reply or each.body.get("subtype") == "thread_broadcast")
    ]
    return _page(call, place, sorted(roots, key=_age, reverse=True), first=())


def replies(call: Call) -> JSON:
    place = _readable(call)
    root = place.posts.get(call.text("ts"))
    if root is None or root.is_deleted:
        refuse("thread_not_found")
    said = [each for each in root.replies if not each.is_deleted]
    return _page(call, place, sorted(said, key=_age), first=(root,))


def list_conversations(call: Call) -> JSON:
    """Both `users.conversations` and `conversations.list`, of which only what the app is in."""
    wanted = set(filter(None, call.text("types", "public_channel").split(",")))
    for kind in sorted(wanted):
        call.needs(LISTS.get(kind, "channels:read"))
    names = {
        Kind.IM: "im",
        Kind.MPIM: "mpim",
        Kind.CHANNEL: "public_channel",
        Kind.GROUP: "private_channel",
    }
    found = [
        each
        for each in call.world.conversations.values()
        if BOT_USER in each.members and names[each.kind] in wanted
        if not (call.switch("exclude_archived") and each.is_archived)
    ]
    begin = call.number("cursor", 0)
    most = min(max(call.number("limit", 100), 1), 999)
    page = found[begin : begin + most]
    more = str(begin + most) if begin + most < len(found) else ""
    return {
        "channels": [each.as_json() for each in page],
        "response_metadata": {"next_cursor": more},
    }


def conversation_info(call: Call) -> JSON:
    return {"channel": call.place().as_json()}


def open_conversation(call: Call) -> JSON:
    call.needs("im:write")
    member = call.world.members.get(call.text("users"))
    if member is None:
        refuse("user_not_found")
    return {"channel": {"id": call.world.im(member).channel_id}}


def user_info(call: Call) -> JSON:
    call.needs("users:read")
    member = call.world.members.get(call.text("user"))
    if member is None:
        refuse("user_not_found")
    return {"user": member.as_json(TEAM)}


def bot_info(call: Call) -> JSON:
    call.needs("users:read")
    if call.text("bot") != BOT_ID:
        refuse("bot_not_found")
    about = {"id": BOT_ID, "app_id": APP, "user_id": BOT_USER, "name": call.world.bot.name}
    return {"bot": {**about, "deleted": False, "updated": 0, "icons": {}}}


def add_reaction(call: Call) -> JSON:
    call.needs("reactions:write")
    post = call.place().posts.get(call.text("timestamp"))
    if post is None or post.is_deleted:
        refuse("message_not_found")
    name = call.text("name")
    if name not in EMOJI_NAMES:
        refuse("invalid_name")
    if (BOT_USER, name) in post.reactions:
        refuse("already_reacted")
    post.reactions.append((BOT_USER, name))
    return {}


def set_status(call: Call) -> JSON:
    call.needs("assistant:write", "chat:write")
    place = call.place("channel_id")
    thread = call.text("thread_ts")
    if thread not in place.posts:
        refuse("invalid_thread_ts")
    place.status[thread] = call.text("status")
    return {}


def get_upload_url(call: Call) -> JSON:
    call.needs("files:write")
    name, length = call.text("filename"), call.number("length", 0)
    if not name or length <= 0:
        refuse("invalid_arguments")
    made = call.world.new_file(name, length, BOT_USER)
    return {"upload_url": f"{call.world.base}/upload/v1/{made.file_id}", "file_id": made.file_id}


def complete_upload(call: Call) -> JSON:
    call.needs("files:write")
    given = call.nested("files")
    if not isinstance(given, list) or not given:
        refuse("invalid_arguments")
    found = [call.world.files.get(str(each.get("id", ""))) for each in given]
    if any(each is None or each.content is None or each.is_completed for each in found):
        refuse("file_not_found")
    uploads = [each for each in found if each is not None]
    for each, said in zip(uploads, given, strict=True):
        each.is_completed = True
        each.title = str(said.get("title") or each.name)
    if call.text("channel_id"):
        place = call.place("channel_id")
        thread = call.text("thread_ts")
        body: JSON = {
            "text": call.text("initial_comment"),
            "bot_id": BOT_ID,
            "subtype": "file_share",
            "files": [each.as_json(call.world.base) for each in uploads],
        }
        call.world.tell_of_own(call.world.put(place, BOT_USER, body, thread_ts=thread))
        for each in uploads:
            each.shared_in.append(place.channel_id)
    return {"files": [{"id": each.file_id, "title": each.title} for each in uploads]}


def file_info(call: Call) -> JSON:
    call.needs("files:read")
    found = call.world.files.get(call.text("file"))
    if found is None or not found.is_completed:
        refuse("file_not_found")
    return {"file": found.as_json(call.world.base)}


def _writable(call: Call) -> Conversation:
    place = call.place()
    if BOT_USER not in place.members:
        refuse("not_in_channel")
    if place.is_archived:
        refuse("is_archived")
    return place


def _readable(call: Call) -> Conversation:
    place = call.place()
    needed = {Kind.IM: "im", Kind.MPIM: "mpim", Kind.CHANNEL: "channels", Kind.GROUP: "groups"}
    call.needs(f"{needed[place.kind]}:history")
    if BOT_USER not in place.members:
        refuse("not_in_channel")
    return place


def _content(call: Call) -> JSON:
    blocks, text = checked_blocks(call.nested("blocks")), call.text("text")
    if not blocks and not text.strip():
        refuse("no_text")
    if len(text) > TEXT_CHARS_MAX:
        refuse("msg_too_long")
    body: JSON = {"text": text, "bot_id": BOT_ID, "app_id": APP}
    return body | ({"blocks": blocks} if blocks else {})


def _page(call: Call, place: Conversation, found: list[Post], *, first: tuple[Post, ...]) -> JSON:
    """One page of messages. In a thread its first message stands on every page."""
    tier = call.tiers.history
    most = min(max(call.number("limit", tier.page_usual), 1), tier.page_max)
    oldest, latest = _micros(call.text("oldest") or "0"), _micros(call.text("latest") or "9" * 10)
    is_inclusive = call.switch("inclusive")
    within = [
        each
        for each in found
        if oldest < _age(each) < latest or (is_inclusive and _age(each) in (oldest, latest))
    ]
    begin = call.number("cursor", 0)
    page = [*first, *within[begin : begin + most]]
    has_more = begin + most < len(within)
    shows_metadata = (
        call.switch("include_all_metadata") and "metadata.message:read" in call.world.scopes
    )
    told: JSON = {
        "messages": [each.as_json(with_metadata=shows_metadata) for each in page],
        "has_more": has_more,
    }
    if has_more:
        told["response_metadata"] = {"next_cursor": str(begin + most)}
    return told


def _age(post: Post) -> int:
    return _micros(post.ts)


def _micros(ts: str) -> int:
    seconds, _, micros = ts.partition(".")
    if not seconds.isdigit() or not (micros or "0").isdigit():
        refuse("invalid_ts_oldest")
    return int(seconds) * 1_000_000 + int((micros + "000000")[:6])


METHODS: dict[str, Callable[[Call], JSON]] = {
    "auth.test": auth_test,
    "chat.postMessage": post_message,
    "chat.update": update,
    "conversations.history": history,
    "conversations.replies": replies,
    "conversations.list": list_conversations,
    "users.conversations": list_conversations,
    "conversations.info": conversation_info,
    "conversations.open": open_conversation,
    "users.info": user_info,
    "bots.info": bot_info,
    "reactions.add": add_reaction,
    "assistant.threads.setStatus": set_status,
    "files.getUploadURLExternal": get_upload_url,
    "files.completeUploadExternal": complete_upload,
    "files.info": file_info,
}
