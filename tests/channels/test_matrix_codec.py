"""Events of Matrix, read without a homeserver: what they say to us, whatever is in them."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.channels.matrix.client import MatrixRefused
from koboshi.channels.matrix.codec import (
    ASKED,
    MatrixReader,
    RoomFacts,
    invited_by,
    since_invited,
    wants_target,
    with_edits,
)
from koboshi.channels.matrix.messages import content_of, outcome_of, relation_of
from koboshi.channels.matrix.types import ErrorAnswer, MatrixEvent, event_of
from koboshi.domain.ids import ChannelName
from koboshi.domain.outbox import Later, Refused
from koboshi.domain.route import Route
from tests.channels.telegram_rig import YES_NO, owed

ME, ANN, ROOM = "@bot:example.org", "@ann:example.org", "!room:example.org"
MAIN = ChannelName("matrix:main")
READER = MatrixReader(channel=MAIN, me=ME, my_name="Koboshi", commands=frozenset({"stop"}))
ALONE, GROUP = RoomFacts(is_private=True), RoomFacts(is_private=False)


def event(kind: str = "m.room.message", **fields: Any) -> MatrixEvent:
    given_fields: dict[str, Any] = {"event_id": "$1", "sender": ANN, "type": kind, **fields}
    return MatrixEvent(**given_fields)


def text(body: str, **more: Any) -> dict[str, Any]:
    return {"msgtype": "m.text", "body": body, **more}


def member(user: str, membership: str, *, by: str = ANN, was: str = "") -> MatrixEvent:
    unsigned = {"prev_content": {"membership": was}} if was else {}
    content = {"membership": membership}
    kind = "m.room.member"
    return event(kind, sender=by, state_key=user, content=content, unsigned=unsigned)


@pytest.mark.parametrize(
    "body, said, is_named",
    [
        ("hello", "hello", False),
        ("Koboshi: hello", "hello", True),
        ("@bot:example.org hello", "hello", True),
        ("bot, hello", "hello", True),
        ("bottle of milk", "bottle of milk", False),
        ("!stop now", "/stop now", True),
        ("!important", "!important", False),
        ("/stop", "/stop", True),
    ],
)
def test_our_name_and_our_commands_address_us(body: str, said: str, is_named: bool) -> None:
    read = READER.read(ROOM, event(content=text(body)), GROUP)

    assert read is not None
    assert (read.words.text, read.is_addressed) == (said, is_named)


def test_the_quote_of_an_answered_message_is_left_out() -> None:
    relation = {"m.in_reply_to": {"event_id": "$0"}}
    body = "> <@ann:example.org> what?\n> more\n\nthis"
    read = READER.read(ROOM, event(content=text(body, **{"m.relates_to": relation})), ALONE)

    assert read is not None
    assert read.words.text == "this"


@pytest.mark.parametrize(
    "given_event, why",
    [
        (event(content={}), "deleted"),
        (event(content={"msgtype": "m.notice", "body": "beep"}), "not-from-a-person"),
        (event("m.room.encrypted", content={"ciphertext": "x"}), "encrypted"),
        (event(content=text("  ")), "nothing-said"),
    ],
)
def test_what_is_not_for_us_is_noted_without_its_words(given_event: MatrixEvent, why: str) -> None:
    read = READER.read(ROOM, given_event, ALONE)

    assert read is not None
    assert (read.ignored, read.words.text) == (why, "")


def test_what_we_said_ourselves_is_nothing() -> None:
    assert READER.read(ROOM, event(sender=ME, content=text("hello")), ALONE) is None


def test_an_edit_in_the_same_answer_counts_and_a_foreign_one_does_not() -> None:
    def edit(sender: str) -> MatrixEvent:
        relation = {"rel_type": "m.replace", "event_id": "$1"}
        new = {"m.new_content": text("new"), "m.relates_to": relation}
        return event(event_id="$2", sender=sender, content=text("* new", **new))

    for sender, said in ((ANN, "new"), ("@eve:example.org", "old")):
        first, _ = with_edits([event(content=text("old")), edit(sender)])
        read = READER.read(ROOM, first, ALONE)
        assert read is not None
        assert read.words.text == said


def test_a_thread_that_is_no_event_is_the_room_itself() -> None:
    for root in ("x" * 70_000, "$with space", "$\0", 7):
        relation = {"rel_type": "m.thread", "event_id": root}
        read = READER.read(ROOM, event(content=text("hi", **{"m.relates_to": relation})), ALONE)
        assert read is not None
        assert read.route.thread == ""


def test_a_room_is_read_from_the_invitation_that_we_followed() -> None:
    before, asked, after = event(event_id="$a"), event(event_id="$b"), event(event_id="$c")
    invited, joined = member(ME, "invite"), member(ME, "join", by=ME, was="invite")

    assert since_invited([before, invited, asked, joined, after], ME) == (
        [asked, joined, after], True,
    )  # fmt: skip
    assert since_invited([asked, joined, after], ME)[1] is False, "it is further back"
    assert since_invited([before, member(ME, "join", by=ME), after], ME) == ([after], True)
    renamed = member(ME, "join", by=ME, was="join")
    assert since_invited([before, renamed], ME) == ([before, renamed], True)
    assert invited_by([member(ANN, "join"), invited], ME) == ANN
    assert invited_by([member(ANN, "join")], ME) == ""


def test_a_mark_chooses_only_on_a_question_of_ours() -> None:
    relation = {"rel_type": "m.annotation", "event_id": "$9", "key": "1️⃣"}
    mark = event("m.reaction", content={"m.relates_to": relation})
    asked = {ASKED: {"question": 5, "choices": ["yes", "no"]}}
    ours = event(event_id="$9", sender=ME, content=asked)

    assert wants_target(mark, ME) == "$9"
    read = READER.read(ROOM, mark, ALONE, ours)
    assert read is not None
    assert (read.words.question, read.words.choice_id) == (5, "yes")
    assert READER.read(ROOM, mark, ALONE, event(event_id="$9", content=asked)) is None
    assert READER.read(ROOM, mark, ALONE, None) is None
    heart = event("m.reaction", content={"m.relates_to": {**relation, "key": "❤️"}})
    assert wants_target(heart, ME) == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["body", "msgtype", "m.relates_to", "m.mentions", "user_ids", "info", "url", "size",
             "rel_type", "event_id", "key", "m.new_content", "m.replace", "m.relations", "sender",
             "content", "membership", "prev_content", "m.in_reply_to", "filename", ASKED]
        ),
        inner,
        max_size=6,
    ),
    max_leaves=12,
)  # fmt: skip
TREE = st.dictionaries(
    st.sampled_from(["body", "msgtype", "m.relates_to", "m.mentions", "m.new_content", "url"]), JSON
)


@given(st.sampled_from(["m.room.message", "m.reaction", "m.sticker", "m.room.member"]), TREE, TREE)
def test_whatever_is_in_an_event_it_is_read_or_passed_over(
    kind: str, content: dict[str, Any], unsigned: dict[str, Any]
) -> None:
    made = event(kind, content=content, unsigned=unsigned, state_key=ME)
    for each in with_edits([made]):
        wants_target(each, ME)
        read = READER.read(ROOM, each, GROUP, made)
        assert read is None or len(read.route.thread) + len(read.edits) < 600
    since_invited([made], ME)
    invited_by([made], ME)


@given(st.binary(max_size=60) | JSON.map(msgspec.json.encode))
def test_what_is_no_event_is_passed_over(raw: bytes) -> None:
    event_of(raw)


def test_a_delivery_is_an_event_with_its_key_its_place_and_its_choices() -> None:
    route = Route(channel=MAIN, chat=ROOM, thread="$root")
    asked = owed(route, "Sure?", choices=YES_NO, question=5, anchor="$q", send_key="k-7")
    content = content_of(asked)

    assert content["body"] == "Sure?\n1. Yes\n2. No"
    assert content["app.koboshi.key"] == "k-7"
    assert content[ASKED] == {"question": 5, "choices": ["yes", "no"]}
    assert content["m.relates_to"] == relation_of(route, "$q")
    assert relation_of(Route(channel=MAIN, chat=ROOM), "") == {}
    assert relation_of(route, "")["is_falling_back"] is True


def test_words_in_what_is_approved_cannot_pass_for_ours_without_formatting() -> None:
    """Issue 15: not every client shows it."""
    command = "ls\n\nIt stays inside the boundary.\n\nrm -rf ~"
    asked = f"May I run this?\n\n{command}\n\nAsked by Ann."
    literal = (asked.index(command), asked.index(command) + len(command))
    route = Route(channel=MAIN, chat=ROOM)
    content = content_of(owed(route, asked, literal=literal, choices=YES_NO, question=5))

    lines = str(content["body"]).split("\n")
    assert [line[2:] for line in lines if line.startswith("> ")] == command.split("\n")
    assert [line for line in lines if not line.startswith("> ")] == [
        *("May I run this?", "", "", "Asked by Ann.", "1. Yes", "2. No"),
    ]
    assert f"<pre><code>{command}</code></pre>" in str(content["formatted_body"])


@pytest.mark.parametrize(
    "status, code, retry_ms, outcome",
    [
        (429, "M_LIMIT_EXCEEDED", 2_500, Later(wait_ms=2_500, reason="M_LIMIT_EXCEEDED: no")),
        (401, "M_UNKNOWN_TOKEN", None, None),
        (403, "M_FORBIDDEN", None, Refused(reason="M_FORBIDDEN: no")),
        (413, "M_TOO_LARGE", None, Refused(reason="M_TOO_LARGE: no")),
    ],
)
def test_a_refusal_proves_that_nothing_was_sent(
    status: int, code: str, retry_ms: int | None, outcome: Later | Refused | None
) -> None:
    error = ErrorAnswer(errcode=code, error="no", retry_after_ms=retry_ms)
    found = outcome_of(MatrixRefused(status, error))

    if outcome is None:
        assert isinstance(found, Later)
    else:
        assert found == outcome
