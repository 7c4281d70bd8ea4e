"""Lines of an agent, read with the types of `agent-client-protocol`.

An agent may write anything. What is no message of the protocol becomes an event, and ends nothing.
"""

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from acp import schema
from pydantic import ValidationError

from koboshi.domain.agent_talk import (
    EVENT_CHARS_MAX,
    RESULT_CHARS_MAX,
    TITLE_CHARS_MAX,
    Asked,
    CallBegan,
    CallEnded,
    Echoed,
    Heard,
    Said,
    Settled,
    ToldMore,
)
from koboshi.domain.marks import unmarked
from koboshi.domain.text import head_and_tail, plain

DIFF_CHARS_MAX = 100_000
DIFF_PAIRS_MAX = 1_000_000
"""Lines before times lines after, of what differs. The search for what is equal in both may take
the third power of their number."""
DIFF_AROUND = 2
"""Equal lines that are shown beside those that differ."""
ID_CHARS_MAX = 1_000
"""A name that the agent gives to a request or to a session: each answer repeats it."""
TOKENS_MAX = 10**12
"""More than any turn uses."""
GARBAGE = "not-a-message"
ENDED = ("completed", "failed")


class _Line(msgspec.Struct, frozen=True):
    """A message of JSON-RPC, whatever it is."""

    method: str | None = None
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")


_lines = msgspec.json.Decoder(_Line)


def hear(offset: int, content: bytes) -> list[Heard]:
    """What whole lines say. Words that follow each other are joined."""
    found: list[Heard] = []
    for line in content.split(b"\n")[:-1]:
        if line.strip():
            for each in _heard(offset, line):
                _join(found, each)
        offset += len(line) + 1
    return found


def _join(found: list[Heard], new: Heard) -> None:
    last = found[-1] if found else None
    match last, new:
        case (Said(), Said()) if last.session == new.session:
            text = last.text + new.text
            found[-1] = Said(offset=last.offset, session=last.session, text=text)
        case (ToldMore(kind=kind), ToldMore()) if kind == new.kind == "thought" and (
            len(last.text) < EVENT_CHARS_MAX
        ):
            text = last.text + new.text
            found[-1] = ToldMore(offset=last.offset, session=last.session, kind=kind, text=text)
        case (ToldMore(kind=kind), ToldMore()) if kind == new.kind == GARBAGE:
            return  # one of them says enough
        case _:
            found.append(new)


def _heard(offset: int, line: bytes) -> Iterator[Heard]:
    message = _message(line)
    if message is None:
        text = plain(line[:EVENT_CHARS_MAX].decode("utf-8", "replace"))
        yield ToldMore(offset=offset, session="", kind=GARBAGE, text=text)
        return
    if message.method is None:
        yield from _answered(offset, message)
    elif message.method == "session/update":
        yield from _updated(offset, bytes(message.params))
    elif message.id is None:
        text = _storable(message.method[:200])
        yield ToldMore(offset=offset, session="", kind="notification", text=text)
    elif isinstance(message.id, str) and len(message.id) > ID_CHARS_MAX:
        yield ToldMore(offset=offset, session="", kind=GARBAGE, text="a request with a long id")
    else:
        yield _asked(offset, message)


def _message(line: bytes) -> _Line | None:
    """The message; None if it is none. Half of a surrogate pair, as agents write it that cut words
    anywhere, is not taken by the fast reader: it is replaced, so that nothing else is lost."""
    with suppress(msgspec.DecodeError, ValueError, RecursionError):
        return _lines.decode(line)
    try:
        mended = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")
        return _lines.decode(mended)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _asked(offset: int, message: _Line) -> Asked:
    params = bytes(message.params)
    session = ""
    try:
        known = msgspec.json.decode(params, type=dict[str, Any])
        session = str(known.get("sessionId") or "")
    except (msgspec.DecodeError, ValueError, RecursionError):
        params = b"{}"
    return Asked(
        offset=offset,
        session=session,
        external_id=json.dumps(message.id),
        method=_storable(str(message.method)[:200]),
        params=_storable(params.decode("utf-8", "replace")),
    )


def _answered(offset: int, message: _Line) -> Iterator[Heard]:
    if not isinstance(message.id, int):
        yield ToldMore(offset=offset, session="", kind=GARBAGE, text="an answer to no question")
        return
    if message.error and bytes(message.error) != b"null":
        yield Settled(offset=offset, number=message.id, error=_error(bytes(message.error)))
        return
    try:
        result = msgspec.json.decode(message.result or b"null")
    except (msgspec.DecodeError, ValueError, RecursionError):
        result = None
    fields = result if isinstance(result, dict) else {}
    try:
        yield _settled(offset, message.id, fields)
    except ValidationError as error:
        words = f"its answer cannot be understood: {error.errors()[0]['msg']}"
        yield Settled(offset=offset, number=message.id, error=words[:500])


def _settled(offset: int, number: int, fields: dict[str, Any]) -> Settled:
    """What is answered is known by what the answer has."""
    if "protocolVersion" in fields:
        greeted = schema.InitializeResponse.model_validate(fields)
        can = greeted.agent_capabilities
        can_load = can is not None and bool(can.load_session)
        return Settled(offset=offset, number=number, can_load=can_load)
    if "stopReason" in fields:
        done = schema.PromptResponse.model_validate(fields)
        used = done.usage
        return Settled(
            offset=offset,
            number=number,
            stop=str(done.stop_reason),
            # Some count what was cached apart from the input.
            tokens_in=0
            if used is None
            else _tokens(max(used.input_tokens, used.total_tokens - used.output_tokens)),
            tokens_out=0 if used is None else _tokens(used.output_tokens),
        )
    if "sessionId" in fields:
        name = schema.NewSessionResponse.model_validate(fields).session_id
        if not 0 < len(name) <= ID_CHARS_MAX or name != _storable(name):
            words = "its answer cannot be understood: no session has such a name"
            return Settled(offset=offset, number=number, error=words)
        return Settled(offset=offset, number=number, external_id=name)
    return Settled(offset=offset, number=number)


def _tokens(told: int) -> int:
    return max(0, min(told, TOKENS_MAX))


def _error(raw: bytes) -> str:
    try:
        error = schema.Error.model_validate_json(raw)
    except ValidationError:
        return "an error without words"
    details = error.data
    more = f" ({details})" if isinstance(details, str) else ""
    if isinstance(details, dict) and isinstance(details.get("details"), str):
        more = f" ({details['details']})"
    words = f"{error.message}{more} (code {error.code})"
    return unmarked(plain(_storable(words)))[:500]


def _updated(offset: int, params: bytes) -> Iterator[Heard]:
    try:
        told = schema.SessionNotification.model_validate_json(params)
    except ValidationError:
        yield _unknown_update(offset, params)
        return
    session, update = told.session_id, told.update
    match update:
        case schema.AgentMessageChunk(content=content):
            yield Said(offset=offset, session=session, text=unmarked(_text_of(content)))
        case schema.UserMessageChunk(content=content):
            yield Echoed(offset=offset, session=session, text=_text_of(content))
        case schema.AgentThoughtChunk(content=content):
            yield ToldMore(offset=offset, session=session, kind="thought", text=_text_of(content))
        case schema.ToolCallStart():
            yield _began(offset, session, update)
            if update.status in ENDED:
                yield _ended(offset, session, update)
        case schema.ToolCallProgress() if update.status in ENDED:
            yield _ended(offset, session, update)
        case schema.ToolCallProgress():
            words = _storable(update.title or update.tool_call_id)
            yield ToldMore(
                offset=offset, session=session, kind="call", text=words[:TITLE_CHARS_MAX]
            )
        case schema.AgentPlanUpdate(entries=entries):
            lines = [f"[{entry.status}] {entry.content}" for entry in entries]
            text = _storable("\n".join(lines))
            yield ToldMore(offset=offset, session=session, kind="plan", text=text)
        case _:
            kind = update.session_update
            text = update.model_dump_json(exclude_none=True)[:EVENT_CHARS_MAX]
            yield ToldMore(offset=offset, session=session, kind=kind, text=text)


def _unknown_update(offset: int, params: bytes) -> ToldMore:
    text = plain(params[:EVENT_CHARS_MAX].decode("utf-8", "replace"))
    return ToldMore(offset=offset, session="", kind="unknown-update", text=text)


def _text_of(content: object) -> str:
    match content:
        case schema.TextContentBlock(text=text):
            return _storable(text)
        case schema.ResourceContentBlock(uri=uri):
            return f"<{_storable(uri)}>"
        case _:
            return f"({getattr(content, 'type', 'content')})"


def _began(offset: int, session: str, call: schema.ToolCallStart) -> CallBegan:
    title = plain(_storable(call.title))[:TITLE_CHARS_MAX]
    shown: dict[str, object] = {"title": title}
    if call.locations:
        shown["locations"] = [_storable(each.path) for each in call.locations[:20]]
    if call.raw_input is not None:
        shown["input"] = call.raw_input
    try:
        arguments = _storable(json.dumps(shown))
    except (TypeError, ValueError):
        arguments = json.dumps({"title": title})
    if len(arguments) > RESULT_CHARS_MAX:
        arguments = json.dumps({"title": title, "input": "(too long to keep)"})
    return CallBegan(
        offset=offset,
        session=session,
        external_id=_storable(call.tool_call_id)[:TITLE_CHARS_MAX],
        kind=str(call.kind or "other"),
        title=title,
        arguments=arguments,
    )


def _ended(
    offset: int, session: str, call: schema.ToolCallStart | schema.ToolCallProgress
) -> CallEnded:
    parts = [_part(each) for each in call.content or ()]
    if not any(parts) and call.raw_output is not None:
        raw = call.raw_output
        parts = [raw if isinstance(raw, str) else json.dumps(raw, default=str)]
    text = "\n".join(part for part in parts if part) or "(no output)"
    return CallEnded(
        offset=offset,
        session=session,
        external_id=_storable(call.tool_call_id)[:TITLE_CHARS_MAX],
        is_ok=call.status == "completed",
        text=unmarked(head_and_tail(plain(_storable(text)), RESULT_CHARS_MAX)),
    )


def _part(content: object) -> str:
    match content:
        case schema.ContentToolCallContent(content=inner):
            return _text_of(inner)
        case schema.FileEditToolCallContent(path=path, old_text=old, new_text=new):
            return _diff(path, old or "", new)
        case schema.TerminalToolCallContent(terminal_id=terminal_id):
            return f"(terminal {terminal_id})"
        case _:
            return ""


def _diff(path: str, old: str, new: str) -> str:
    if len(old) + len(new) > DIFF_CHARS_MAX:
        return f"{path}: changed ({len(old)} → {len(new)} characters)"
    before, after = old.splitlines(), new.splitlines()
    start = max(0, _equal(before, after) - DIFF_AROUND)
    end = max(0, _equal(before[start:][::-1], after[start:][::-1]) - DIFF_AROUND)
    before, after = before[start : len(before) - end], after[start : len(after) - end]
    if len(before) * len(after) > DIFF_PAIRS_MAX:
        return f"{path}: changed ({len(old)} → {len(new)} characters)"
    lines = difflib.unified_diff(before, after, f"a{path}", f"b{path}", lineterm="", n=DIFF_AROUND)
    return "\n".join(_moved(line, start) if line.startswith("@@") else line for line in lines)


def _equal(before: Sequence[str], after: Sequence[str]) -> int:
    """With how many lines both begin."""
    pairs = zip(before, after, strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if one != other), min(len(before), len(after))
    )


def _moved(head: str, by: int) -> str:
    """The head of a part of a diff, `@@ -1,5 +1,5 @@`, so many lines further down."""
    return re.sub(r"(?<=[-+])\d+", lambda found: str(int(found[0]) + by), head)


def _storable(text: str) -> str:
    """Without what no database and no channel takes: NUL, and halves of surrogate pairs."""
    return text.replace("\0", "�").encode("utf-8", "replace").decode()
