"""Events of Matrix to what we take in. Pure."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from koboshi.channels.common.choices import number_in
from koboshi.channels.common.reading import DELETED, fitting, media_type
from koboshi.channels.matrix.types import MatrixEvent
from koboshi.domain.files import RECEIVED, Attachment, safe_name
from koboshi.domain.ids import ChannelName, Seq
from koboshi.domain.inbox import Words
from koboshi.domain.route import Route
from koboshi.ports.channel import Inbound

MESSAGE, REACTION, ENCRYPTED, MEMBER, ENCRYPTION = (
    "m.room.message",
    "m.reaction",
    "m.room.encrypted",
    "m.room.member",
    "m.room.encryption",
)
STICKER, REDACTION = "m.sticker", "m.room.redaction"
KINDS = (MESSAGE, REACTION, ENCRYPTED, MEMBER, STICKER, ENCRYPTION, REDACTION)
"""What of a room is asked for."""
ASKED = "app.koboshi.question"
"""Where a question of ours carries its number and its choices."""
SENDS_KEY = "app.koboshi.key"
"""Where an event of ours carries its send key."""
MS_MAX = 1 << 53

_FILES = {"m.image": "image", "m.file": "file", "m.audio": "audio", "m.video": "video"}
_EVENT_ID = re.compile(r"\$[!-~]{1,254}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_=-]{1,90}")
_QUOTED = re.compile(r"\A(?:>[^\n]*\n)+\n?")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomFacts:
    """What must be known of a room to read its events."""

    is_private: bool
    """No more than one person is in it beside us."""
    names: Mapping[str, str] = field(default_factory=dict)
    members: tuple[str, ...] = ()
    is_encrypted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixReader:
    channel: ChannelName
    me: str
    my_name: str = ""
    """The name that we show, which people may call us by."""
    chars_max: int = 64_000
    commands: frozenset[str] = frozenset()

    def read(
        self, room: str, event: MatrixEvent, facts: RoomFacts, target: MatrixEvent | None = None
    ) -> Inbound | None:
        """What an event says to us; None if it says nothing to anyone. `target` is what a reaction
        marks."""
        if event.sender == self.me or not event.event_id:
            return None
        if event.type == ENCRYPTED and event.content:
            return self._nothing(room, event, "encrypted", facts)
        if event.type == REACTION:
            return self._reaction(room, event, facts, target)
        if event.type == REDACTION:
            return self._deletion(room, event, facts)
        if event.type not in (MESSAGE, STICKER, ENCRYPTED):
            return None
        edited = _edited(event)
        content = edited or _as_it_is_now(event)
        if not content:
            return self._nothing(room, event, "deleted", facts)
        if content.get("msgtype") == "m.notice":
            # Programs speak in notices. Those that answered each other would never end.
            return self._nothing(room, event, "not-from-a-person", facts)
        read = self._message(room, event, content, facts)
        if edited is None:
            return read
        return replace(read, edits=_related(event) or "nothing")

    def _message(
        self, room: str, event: MatrixEvent, content: Mapping[str, Any], facts: RoomFacts
    ) -> Inbound:
        files = attachments_of(content, event, self.channel)
        text, is_named = self._said(content, event)
        if not text and not files:
            return self._nothing(room, event, "nothing-said", facts)
        words = Words(
            text=fitting(text, self.chars_max),
            sent_ms=_sent_ms(event),
            anchor=event.event_id,
            files=files,
            replies_to=_answered(event),
        )
        is_addressed = facts.is_private or is_named or text.startswith("/")
        return replace(self._empty(room, event, facts), words=words, is_addressed=is_addressed)

    def _said(self, content: Mapping[str, Any], event: MatrixEvent) -> tuple[str, bool]:
        """The words without our name, and whether we are named."""
        if event.type == STICKER:
            return f"[sticker {_text(content, 'body')}]".replace(" ]", "]"), False
        body = _text(content, "body").strip()
        if "m.in_reply_to" in event.relation:
            body = _QUOTED.sub("", body).strip()
        if _text(content, "msgtype") in _FILES:
            name = _text(content, "filename")
            body = body if name and name != body else ""
        elif _text(content, "msgtype") == "m.location":
            body = f"[location {_text(content, 'geo_uri')}]"
        mentions = content.get("m.mentions")
        named = mentions.get("user_ids") if isinstance(mentions, dict) else None
        is_named = isinstance(named, list) and self.me in named
        text = self._without_our_name(body)
        if text[:1] == "!" and text[1:].split(maxsplit=1)[:1] in [[name] for name in self.commands]:
            text = f"/{text[1:]}"  # clients keep lines that begin with a slash for themselves
        return text, is_named or text != body or self.me in body

    def _without_our_name(self, body: str) -> str:
        local = self.me[1:].partition(":")[0]
        for name in filter(None, (self.me, self.my_name, f"@{local}", local)):
            if body.casefold().startswith(name.casefold()):
                rest = body[len(name) :]
                if rest[:1] in (":", ",", " ", "\n"):
                    return rest.lstrip(":, \n")
        return body

    def _reaction(
        self, room: str, event: MatrixEvent, facts: RoomFacts, target: MatrixEvent | None
    ) -> Inbound | None:
        """A mark on a question of ours chooses; any other mark says nothing."""
        asked = target.content.get(ASKED) if target and target.sender == self.me else None
        number = number_in(_text(event.relation, "key"))
        if target is None or not isinstance(asked, dict) or number is None:
            return None
        question, choices = asked.get("question"), asked.get("choices")
        if not isinstance(question, int) or not isinstance(choices, list):
            return None
        if not 1 <= number <= len(choices):
            return None
        words = Words(
            text="",
            sent_ms=0,
            anchor=target.event_id,
            question=Seq(question),
            choice_id=str(choices[number - 1]),
        )
        read = replace(self._empty(room, event, facts), words=words)
        return replace(read, route=replace(read.route, thread=thread_of(target)))

    def _deletion(self, room: str, event: MatrixEvent, facts: RoomFacts) -> Inbound | None:
        """A message that still waits is not to be acted on any more, if its author says so."""
        gone = event.redacts or _text(event.content, "redacts")
        if not _EVENT_ID.fullmatch(gone):
            return None
        words = Words(text=DELETED, sent_ms=_sent_ms(event))
        return replace(self._empty(room, event, facts), words=words, edits=gone)

    def _nothing(self, room: str, event: MatrixEvent, why: str, facts: RoomFacts) -> Inbound:
        """It is not for us: that it was there is kept, its words are not."""
        return replace(self._empty(room, event, facts), ignored=why)

    def _empty(self, room: str, event: MatrixEvent, facts: RoomFacts) -> Inbound:
        return Inbound(
            route=Route(channel=self.channel, chat=room, thread=thread_of(event)),
            external_id=event.event_id,
            sender=event.sender,
            words=Words(text="", sent_ms=_sent_ms(event)),
            sender_name=facts.names.get(event.sender, ""),
            is_private=facts.is_private,
            is_group=not facts.is_private,
        )


def _answered(event: MatrixEvent) -> str:
    """The event that it replies to; empty if none."""
    answered = event.relation.get("m.in_reply_to")
    found = answered.get("event_id") if isinstance(answered, dict) else None
    is_one = isinstance(found, str) and _EVENT_ID.fullmatch(found)
    return str(found) if is_one else ""


def thread_of(event: MatrixEvent) -> str:
    """The root of the thread that an event is in; empty for the room itself."""
    return _related(event) if event.relation.get("rel_type") == "m.thread" else ""


def wants_target(event: MatrixEvent, me: str) -> str:
    """The event that must be known to read a reaction; empty if none has to be."""
    is_mark = event.type == REACTION and event.sender != me
    if not is_mark or number_in(_text(event.relation, "key")) is None:
        return ""
    return _related(event)


def since_invited(events: Sequence[MatrixEvent], me: str) -> tuple[Sequence[MatrixEvent], bool]:
    """Of the events of a room, those behind the invitation that we have just followed, and whether
    it is among them. All of them if we did not join just now. Of a room that we joined without an
    invitation, those behind the join."""
    joined = next((at for at, event in enumerate(events) if is_new_join(event, me)), None)
    if joined is None:
        return events, True
    for at in range(joined, -1, -1):
        if _membership(events[at], me) == "invite":
            return events[at + 1 :], True
    was = _before(events[joined])
    return (events, False) if was == "invite" else (events[joined + 1 :], True)


def with_edits(events: Sequence[MatrixEvent]) -> Sequence[MatrixEvent]:
    """The events with the words that their senders gave them later: what was changed before it was
    read is read as it is now."""
    latest = {(_related(event), event.sender): new for event in events if (new := _edited(event))}
    return [
        msgspec.structs.replace(event, content={**event.content, **new})
        if (new := latest.get((event.event_id, event.sender))) and event.content
        else event
        for event in events
    ]


def is_new_join(event: MatrixEvent, me: str) -> bool:
    """Whether we came into the room by this event: a new name or picture is no join."""
    return _membership(event, me) == "join" and _before(event) != "join"


def invited_by(events: Sequence[MatrixEvent], me: str) -> str:
    """Who has invited us; empty if that is not said."""
    senders = [event.sender for event in events if _membership(event, me) == "invite"]
    return senders[-1] if senders else ""


def attachments_of(
    content: Mapping[str, Any], event: MatrixEvent, channel: ChannelName
) -> tuple[Attachment, ...]:
    """The file of a message, with a place of its own."""
    kind = _FILES.get(_text(content, "msgtype"))
    address = _text(content, "url") or _encrypted_address(content.get("file"))
    if kind is None or not address.startswith("mxc://"):
        return ()
    info = content.get("info")
    info = info if isinstance(info, dict) else {}
    size, mime = info.get("size"), _text(info, "mimetype")
    folder = f"{RECEIVED}/{safe_name(channel.replace(':', '-'), 'matrix')}"
    number = hashlib.sha256(event.event_id.encode()).hexdigest()[:16]
    name = safe_name(_text(content, "filename") or _text(content, "body"), kind)
    return (
        Attachment(
            reference=address,
            path=f"{folder}/{number}-{name}",
            kind=media_type(mime) or kind,
            size=size if isinstance(size, int) and size > 0 else 0,
        ),
    )


def opening_of(reference: str) -> tuple[str, tuple[str, str, str] | None]:
    """The address in the reference of an attachment, and key, first counter and checksum of one
    that is encrypted."""
    address, _, opening = reference.partition("#")
    parts = opening.split(".")
    return address, (parts[0], parts[1], parts[2]) if len(parts) == 3 else None


def _encrypted_address(file: object) -> str:
    """The address of an encrypted file with what opens it; empty for what is none."""
    if not isinstance(file, dict):
        return ""
    key, hashes = file.get("key"), file.get("hashes")
    if not isinstance(key, dict) or not isinstance(hashes, dict):
        return ""
    parts = (_text(key, "k"), _text(file, "iv"), _text(hashes, "sha256"))
    address = _text(file, "url")
    if "#" in address or not all(_BASE64.fullmatch(part) for part in parts):
        return ""
    return f"{address}#{'.'.join(parts)}"


def _membership(event: MatrixEvent, me: str) -> str:
    is_ours = event.type == MEMBER and event.state_key == me
    return _text(event.content, "membership") if is_ours else ""


def _before(event: MatrixEvent) -> str:
    before = event.unsigned.get("prev_content")
    return _text(before, "membership") if isinstance(before, dict) else ""


def _edited(event: MatrixEvent) -> Mapping[str, Any] | None:
    """The new content, if the event replaces another one."""
    if event.relation.get("rel_type") != "m.replace":
        return None
    new = event.content.get("m.new_content")
    return new if isinstance(new, dict) else {}


def _as_it_is_now(event: MatrixEvent) -> Mapping[str, Any]:
    """The content with the edits that the homeserver knows of already."""
    relations = event.unsigned.get("m.relations")
    latest = relations.get("m.replace") if isinstance(relations, dict) else None
    if isinstance(latest, dict) and latest.get("sender") == event.sender:
        content = latest.get("content")
        new = content.get("m.new_content") if isinstance(content, dict) else None
        if isinstance(new, dict):
            return new
    return event.content


def _related(event: MatrixEvent) -> str:
    """The event that it relates to; empty for what cannot be one. People write that themselves, on
    any server, and it becomes part of keys."""
    named = _text(event.relation, "event_id")
    return named if _EVENT_ID.fullmatch(named) else ""


def _text(content: Mapping[str, Any], key: str) -> str:
    value = content.get(key)
    return value if isinstance(value, str) else ""


def _sent_ms(event: MatrixEvent) -> int:
    return event.origin_server_ts if 0 < event.origin_server_ts < MS_MAX else 0
