"""Everything else that reads what others wrote: it comes to an answer, and that is harmless."""

import json
import unicodedata
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from koboshi.channels.web.codec import Post, Unacceptable, draft_frame, read_post, typing_frame
from koboshi.channels.web.limits import WebLimits
from koboshi.cli.chat.render import safe
from koboshi.commands.parse import message_in, parse_command
from koboshi.domain.files import NAME_BYTES_MAX, safe_name
from koboshi.domain.ids import ChannelName, EntryId, ProcessId, TurnId
from koboshi.domain.route import Route
from koboshi.domain.text import visible
from koboshi.domain.transcript import Body, Message
from koboshi.kernel.decode import body_of, encoded
from koboshi.ports.runners import Life
from koboshi.processes.runners import LocalRunners
from koboshi.tools.mcp.listing import ListedTool, Unlisted, listed_tool
from koboshi.tools.mcp.results import answer_text, harmless
from tests.hostile.wild import JSON, NUMBERS, TEXTS, as_bytes, fuzzed, objects

WEB = ChannelName("web:main")
STORABLE = TEXTS.map(lambda text: text.encode("utf-8", "replace").decode())
POSTS = objects(
    text=TEXTS, thread=TEXTS, sender=TEXTS, question=NUMBERS, choice=TEXTS, another=JSON
)


# ── the web channel ─────────────────────────────────────────────────────────────────────────────


def post_in(body: bytes) -> Post | Unacceptable:
    try:
        return read_post(body, WebLimits())
    except Unacceptable as refusal:
        return refusal


@fuzzed(60)
@example(b"[" * 100_000)
@example(b'{"text": ' * 10_000)
@example(b'{"text": "' + b"a" * 70_000 + b'"}')
@example(b'{"text": "\\ud800"}')
@example(b'{"text": "a", "question": 9223372036854775808}')
@given(body=POSTS.map(as_bytes) | JSON.map(as_bytes) | st.binary(max_size=60))
def test_any_body_is_a_message_or_refused_with_words(body: bytes) -> None:
    post = post_in(body)
    if isinstance(post, Unacceptable):
        assert post.status in (400, 413)
        assert post.message.encode()
        return
    assert msgspec.json.decode(msgspec.json.encode(post), type=Post) == post
    assert post.text.strip() or post.choice
    assert "\0" not in post.text
    for name in (post.thread, post.sender, post.choice or "x"):
        assert name.isprintable()


@fuzzed(40)
@given(text=STORABLE, thread=STORABLE)
def test_no_words_break_out_of_their_event(text: str, thread: str) -> None:
    route = Route(channel=WEB, chat="a", thread=thread)
    for frame in (draft_frame(route, TurnId(1), text, 0), typing_frame(route, 0)):
        assert "\r" not in frame.decode()
        event, said, *rest = frame.decode().split("\n")
        assert event in ("event: draft", "event: typing")
        assert rest == ["", ""]
        told = json.loads(said.removeprefix("data: "))
        assert told["thread"] == thread


# ── names, commands and what is stored ──────────────────────────────────────────────────────────


@fuzzed(100)
@example("../../.ssh/authorized_keys")
@example("..\\..\\boot.ini")
@example(".bashrc")
@example("\u202egnp.exe")
@example("a" * 300 + ".tar.gz")
@example("." * 40 + "/" + "." * 40)
@example("x." + "é" * 12)
@given(name=TEXTS | st.text(alphabet="./\\-_ aé\0\n", max_size=20))
def test_any_name_of_a_file_becomes_one_plain_name(name: str) -> None:
    made = safe_name(name, "file")

    assert made
    assert made == Path(made).name
    assert made not in (".", "..")
    assert made[0] not in ".-~ "
    assert made.isprintable()
    assert len(made.encode()) <= NAME_BYTES_MAX
    assert safe_name(made, "file") == made


@fuzzed(100)
@given(text=TEXTS | TEXTS.map("/jobs log {}".format) | TEXTS.map("/{}".format))
def test_any_words_are_a_command_or_a_message(text: str) -> None:
    command = parse_command(text)
    if command is None:
        return
    assert text.strip().startswith("/")
    assert command.argument == command.argument.strip()
    carried = message_in(command)
    assert carried is None or carried[0]


@fuzzed(40)
@given(text=STORABLE, sender=STORABLE)
def test_whatever_was_said_is_read_as_it_was_stored(text: str, sender: str) -> None:
    said = Message(text=text, sender=sender, entry_id=EntryId(1), sent_ms=0)

    assert body_of("message", encoded(said)) == said


KINDS = ["message", "reply", "result", "note", "summary"]


@fuzzed(60)
@given(kind=st.sampled_from(KINDS), body=JSON.map(lambda value: as_bytes(value).decode()) | TEXTS)
def test_a_step_that_is_none_is_an_error_that_names_itself(kind: str, body: str) -> None:
    """A database that a person wrote into by hand."""
    try:
        assert isinstance(body_of(kind, body), get_args(Body))
    except (msgspec.MsgspecError, ValueError, KeyError):
        return


# ── servers of others ───────────────────────────────────────────────────────────────────────────

PARTS = objects(
    type=st.sampled_from(["text", "image", "audio", "resource", "resource_link", "odd"]),
    text=TEXTS,
    data=TEXTS,
    mimeType=TEXTS,
    uri=TEXTS,
    name=TEXTS,
    resource=objects(uri=TEXTS, text=TEXTS, blob=TEXTS, mimeType=TEXTS),
)
RESULTS = objects(
    content=st.lists(PARTS | JSON, max_size=4),
    structuredContent=JSON,
    isError=st.booleans() | JSON,
)


def is_plain(text: str) -> bool:
    """Nothing in it that a terminal obeys, that hides or turns text, or that cannot be sent."""
    return visible(text) == text


@fuzzed(100)
@given(result=RESULTS | JSON)
def test_any_answer_of_a_server_is_one_plain_result(result: Any) -> None:
    told = json.loads(answer_text(result))

    assert told["status"] in ("ok", "error")
    assert is_plain(told["output"])
    assert len(told["output"]) <= 40_000


SCHEMAS = objects(
    type=st.just("object"),
    properties=st.dictionaries(TEXTS, objects(type=TEXTS, description=TEXTS), max_size=3) | JSON,
    required=st.lists(TEXTS, max_size=3),
    additionalProperties=st.booleans(),
)
LISTED = st.fixed_dictionaries(
    {"name": TEXTS, "inputSchema": SCHEMAS},
    optional={"description": TEXTS, "title": TEXTS, "annotations": JSON},
)


@fuzzed(100)
@example({"name": "a", "inputSchema": {}, "description": "half \ud800"})
@example({"name": "half \ud800", "inputSchema": {}})
@given(raw=LISTED | JSON)
def test_any_tool_of_a_server_is_offered_plainly_or_not_at_all(raw: Any) -> None:
    try:
        tool = listed_tool(raw)
    except Unlisted:
        return
    assert isinstance(tool, ListedTool)
    assert is_plain(tool.description)
    assert isinstance(msgspec.json.decode(tool.parameters), dict)
    msgspec.json.encode([tool.name, tool.description])


@fuzzed(60)
@given(words=TEXTS)
def test_words_of_others_stand_in_one_line(words: str) -> None:
    said = harmless(words, 50)

    assert len(said) <= 50
    assert "\n" not in said
    assert is_plain(said)


@fuzzed(60)
@given(words=TEXTS)
def test_what_is_printed_at_a_terminal_cannot_control_it(words: str) -> None:
    said = safe(words)

    assert all(char in "\n\t" or unicodedata.category(char) != "Cc" for char in said)
    assert not any(unicodedata.bidirectional(char) in TURNING for char in said)
    assert safe(said) == said


TURNING = frozenset("LRE RLE LRO RLO PDF LRI RLI FSI PDI".split())


# ── what a command can write beside its own output ──────────────────────────────────────────────


@fuzzed(40)
@given(
    born=JSON.map(as_bytes) | st.binary(max_size=40) | st.none(),
    exited=objects(code=NUMBERS, reason=TEXTS).map(as_bytes) | JSON.map(as_bytes) | st.none(),
)
def test_any_record_of_a_process_is_looked_at_calmly(
    tmp_path_factory: pytest.TempPathFactory, born: bytes | None, exited: bytes | None
) -> None:
    folder = tmp_path_factory.mktemp("processes")
    (folder / "1").mkdir()
    for name, content in (("born.json", born), ("exit.json", exited)):
        if content is not None:
            (folder / "1" / name).write_bytes(content)
    runners = LocalRunners(folder)

    assert runners.look(ProcessId(1)).life in Life
    assert runners.look(ProcessId(1)).life is not Life.ALIVE
    assert runners.log_size(ProcessId(1)) >= 0
