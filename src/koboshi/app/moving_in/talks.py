"""What was said with the other gateway, read from a copy of its database.

Only private talk is taken, and each person gets their own alone: people who move in, by their
stable ids, and the user of its own terminal and page, who is the owner of ours. What was said in
groups, by others, or by several people in one conversation stays where it is.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from koboshi.app.moving_in.found import NotMovable, OtherHome, json_of, list_in, table_in, text_in
from koboshi.domain.ids import ChannelName
from koboshi.domain.talk_elsewhere import (
    GATEWAYS,
    SAID_CHARS_MAX,
    TIMES_END_MS,
    SaidElsewhere,
    is_time,
)

DATABASE_BYTES_MAX = 2_000_000_000
MILLISECONDS_FROM = 10**11
"""A time that is greater is told in milliseconds; else in seconds."""
LOCAL = (ChannelName(""), "")
"""The user of its own terminal and page."""
_TERMINALS = ("cli", "tui")
_PAGES = ("main", "dashboard", "webchat", "tui")
_OWN_CHANNELS = ("webchat", "cli", "internal")
_MANY = (":group:", ":channel:", ":room:")
_STRUCTURED = "\x00json:"
"""How Hermes begins a message that is more than text."""

Whose = tuple[ChannelName, str]


@contextmanager
def copied(file: Path) -> Iterator[apsw.Connection]:
    """A copy of a database: opening the file itself would write beside it. Raises OSError, and what
    the library raises."""
    with tempfile.TemporaryDirectory(prefix="koboshi-") as place:
        for suffix in ("", "-wal"):
            if Path(f"{file}{suffix}").exists():
                shutil.copyfile(f"{file}{suffix}", Path(place, f"{file.name}{suffix}"))
        connection = apsw.Connection(str(Path(place, file.name)))
        try:
            yield connection
        finally:
            connection.close()


def take_hermes_talks(found: OtherHome) -> None:
    """From `state.db`, newest first."""
    file = found.folder / "state.db"
    with _readable(found, file) as connection:
        if connection is None:
            return
        asked = connection.execute(
            "SELECT s.source, s.user_id, s.chat_type, m.role, m.content, m.timestamp "
            "FROM messages AS m JOIN sessions AS s ON s.id = m.session_id "
            "WHERE m.role IN ('user', 'assistant') AND m.content <> '' "
            "ORDER BY m.timestamp DESC, m.id DESC"
        )
        for source, user, kind, role, content, at in asked:
            whose = _person(found, str(source), str(user or ""))
            if source in _TERMINALS:
                whose = LOCAL
            elif kind != "dm":
                whose = None
            _take(found, whose, role, _hermes_text(content), at)


def take_openclaw_talks(found: OtherHome) -> None:
    """From the database of each of its agents, newest first."""
    for file in sorted(found.folder.glob("agents/*/agent/openclaw-agent.sqlite")):
        with _readable(found, file) as connection:
            if connection is None:
                continue
            whose = _openclaw_people(found, connection)
            packed = "SELECT count(*) FROM transcript_events WHERE event_json IS NULL"
            if count := connection.execute(packed).get:
                found.leave(f"conversations: {count} messages in {file}", "they are packed")
            asked = connection.execute(
                "SELECT session_id, event_json, created_at FROM transcript_events "
                "WHERE event_json IS NOT NULL ORDER BY created_at DESC, seq DESC"
            )
            for session, stored, at in asked:
                try:
                    message = table_in(json_of(str(stored), "an event"), "message")
                except NotMovable:
                    continue
                told = message.get("timestamp")
                when = told if isinstance(told, int) else at
                said = _parts(message.get("content"))
                _take(found, whose.get(str(session)), text_in(message, "role"), said, when)


@contextmanager
def _readable(found: OtherHome, file: Path) -> Iterator[apsw.Connection | None]:
    """The database, if there is one. What cannot be read is left, and the rest moves in."""
    what = f"conversations in {file}"
    if not file.is_file() or file.is_symlink():
        yield None
        return
    if file.stat().st_size > DATABASE_BYTES_MAX:
        found.leave(what, "the file is too large")
        yield None
        return
    try:
        with copied(file) as connection:
            yield connection
    except (apsw.Error, OSError, UnicodeDecodeError) as error:
        found.leave(what, f"it cannot be read: {error}")


def _openclaw_people(found: OtherHome, connection: apsw.Connection) -> dict[str, Whose | None]:
    """Whose each conversation is; None for those of groups and of several people."""
    peers: dict[str, set[Whose | None]] = {}
    asked = connection.execute(
        "SELECT s.session_id, c.channel, c.kind, c.peer_id FROM session_conversations AS s "
        "JOIN conversations AS c USING (conversation_id)"
    )
    for session, channel, kind, peer in asked:
        if channel not in _OWN_CHANNELS:
            whose = _person(found, str(channel), str(peer)) if kind == "direct" else None
            peers.setdefault(str(session), set()).add(whose)
    # Several people may talk in the main conversation without being named there.
    asked = connection.execute(
        "SELECT DISTINCT session_id FROM transcript_events "
        "WHERE event_json LIKE '%\"senderIsOwner\":false%'"
    )
    of_others = {str(session) for (session,) in asked}
    people: dict[str, Whose | None] = {}
    windows = connection.execute("SELECT session_id, session_key FROM session_windows")
    for session, key in ((str(a), str(b)) for a, b in windows):
        named = peers.get(session, set())
        parts = key.split(":")
        if any(sign in key for sign in _MANY) or len(named) > 1:
            people[session] = None
        elif named:
            people[session] = next(iter(named))
        elif len(parts) > 4 and parts[-2] in ("direct", "dm"):
            people[session] = _person(found, parts[2], parts[-1])
        else:
            is_own = len(parts) > 2 and parts[2] in _PAGES and session not in of_others
            people[session] = LOCAL if is_own else None
    return people


def _person(found: OtherHome, platform: str, person: str) -> Whose | None:
    """The person, if they move in."""
    whose = (ChannelName(f"{platform}:main"), person.removeprefix(f"{platform}:"))
    return whose if any((each.channel, each.person) == whose for each in found.people) else None


def _hermes_text(content: object) -> str:
    words = str(content)
    if not words.startswith(_STRUCTURED):
        return words
    try:
        return _parts(json_of(words.removeprefix(_STRUCTURED), "a message"))
    except NotMovable:
        return ""


def _parts(content: object) -> str:
    """The words of a message that may have other parts."""
    if isinstance(content, str):
        return content
    parts = list_in({"parts": content}, "parts")
    texts = (text_in(part, "text") for part in parts if text_in(part, "type") == "text")
    return "\n\n".join(filter(None, texts))


def _take(found: OtherHome, whose: Whose | None, role: object, words: str, at: object) -> None:
    text = words.encode("utf-8", "replace").decode().strip()[:SAID_CHARS_MAX]
    if role not in ("user", "assistant") or not text or not isinstance(at, int | float):
        return
    if whose is None:
        found.others_said += 1
        return
    at_ms = int(min(at if at > MILLISECONDS_FROM else at * 1000, TIMES_END_MS))
    if not is_time(at_ms):
        return
    gateway = GATEWAYS[found.source]
    found.hear(
        whose,
        SaidElsewhere(gateway=gateway, at_ms=at_ms, is_persons=role == "user", text=text),
    )
