"""What the web channel reads and writes, without a server."""

import json

import pytest

from koboshi.channels.web.codec import (
    Unacceptable,
    encode_event,
    inbound_of,
    place_frame,
    read_post,
    typing_frame,
)
from koboshi.channels.web.limits import WebLimits
from koboshi.domain.approver import SentBy
from koboshi.domain.ids import CallId, EntryId, Seq
from koboshi.domain.route import Route
from koboshi.domain.transcript import (
    Answer,
    Author,
    Body,
    Call,
    Choice,
    Effect,
    Message,
    Note,
    Question,
    Reply,
    Result,
    ResultStatus,
    Summary,
)
from koboshi.ports.views import Event
from tests.channels.fakes import NOW_MS, WEB, FakeGateway

LIMITS = WebLimits(body_bytes_max=1_000, message_chars_max=100)
ROUTE = Route(channel=WEB, chat="c", thread="topic")

REFUSED = [
    (b"", 400, "not valid JSON"),
    (b"{", 400, "not valid JSON"),
    (b"[]", 400, "expected `object`"),
    (b'{"text": 1}', 400, "$.text"),
    (b'{"text": "a", "texd": "b"}', 400, "unknown field `texd`"),
    (b'{"text": "\xff"}', 400, "not valid UTF-8"),
    (b'{"text": "\\ud800"}', 400, "not valid JSON"),
    (b'{"text": "\\udc00"}', 400, "not valid JSON"),
    (b'{"text": "a\\u0000"}', 400, "NUL"),
    (b'{"text": ""}', 400, "text is empty"),
    (b'{"text": " \\n"}', 400, "text is empty"),
    (b"{}", 400, "text is empty"),
    (b'{"text": "a", "thread": "x\\u001b[2J"}', 400, "thread must be"),
    (b'{"text": "a", "sender": ""}', 400, "sender must be"),
    (b'{"text": "a", "choice": "yes"}', 400, "choice needs the number of the question"),
    (b'{"text": "a", "question": 0}', 400, "question is not"),
    (b'{"text": "a", "question": 9223372036854775808}', 400, "question is not"),
    (b'{"text": "a", "question": true}', 400, "$.question"),
    (b'{"text": "' + b"a" * 101 + b'"}', 413, "longer than 100 characters"),
    (b'{"text": "a"}' + b" " * 1_000, 413, "larger than 1000 bytes"),
    (b'{"text": "a", "x": ' + b"[" * 900, 400, "unknown field"),
]


@pytest.mark.parametrize("body,status,words", REFUSED)
def test_a_post_that_does_not_fit_is_refused_in_words(body: bytes, status: int, words: str) -> None:
    with pytest.raises(Unacceptable) as refusal:
        read_post(body, LIMITS)

    assert refusal.value.status == status
    assert words.lower() in refusal.value.message.lower()


def test_a_post_is_read_whole() -> None:
    post = read_post('{"text": "はい\\n🙂", "thread": "t", "sender": "ann"}'.encode(), LIMITS)

    inbound = inbound_of(post, channel=WEB, chat="c", key="k", now_ms=NOW_MS, sent_by=SentBy.PERSON)

    assert inbound.words.text == "はい\n🙂"
    assert inbound.words.sent_ms == NOW_MS
    assert (inbound.route, inbound.sender) == (Route(channel=WEB, chat="c", thread="t"), "ann")


def test_a_pressed_button_names_its_question_and_needs_no_text() -> None:
    """S141: the answer is bound to what it answers."""
    post = read_post(b'{"question": 12, "choice": "yes"}', LIMITS)

    words = inbound_of(
        post, channel=WEB, chat="c", key="k", now_ms=NOW_MS, sent_by=SentBy.PERSON
    ).words

    assert (words.question, words.choice_id) == (12, "yes")


def test_the_same_key_in_two_chats_is_two_messages() -> None:
    post = read_post(b'{"text": "a"}', LIMITS)

    ids = {
        inbound_of(
            post, channel=WEB, chat=chat, key=key, now_ms=NOW_MS, sent_by=SentBy.PERSON
        ).external_id
        for chat, key in [("a", "k"), ("b", "k"), ("a", "b/k")]
    }

    assert len(ids) == 3


@pytest.mark.parametrize(
    "cause,question,choices,kind",
    [
        ("step:7", None, (), "answer"),
        ("step:7", 12, (Choice(choice_id="yes", label="Yes"),), "question"),
        ("step:7", 12, (), "question"),
        ("command:3", None, (), "notice"),
        ("verdict:1:2", None, (), "notice"),
        ("verdict:1:2", 12, (), "question"),
        ("report:1:1", None, (), "notice"),
        ("progress:1:1", None, (), "progress"),
    ],
)
def test_deliveries_are_told_by_what_they_are_to_the_person(
    cause: str, question: int | None, choices: tuple[Choice, ...], kind: str
) -> None:
    gateway = FakeGateway()
    gateway.say(ROUTE, "words", turn=4, cause=cause, question=question, choices=choices)

    event, told = decoded(gateway.journal[0])

    assert event == kind
    assert told["text"] == "words"
    assert (told["turn"], told["thread"]) == ("t4", "topic")
    assert told["choices"] == [{"id": "yes", "label": "Yes"}][: len(choices)]


def test_only_the_moment_of_delivery_is_told() -> None:
    """S149: one visible reply. The row's earlier life, and the answer's step, are not events."""
    gateway = FakeGateway()
    gateway.say(ROUTE, "words")
    delivered = gateway.journal[0].delivery
    for after in ("owed", "sending", "abandoned", "rejected"):
        gateway.add(ROUTE, "delivery", 1, after, after=after, delivery=delivered)
    gateway.add(ROUTE, "step", 1, "answer", body=Answer(text="words"))
    question = Question(author=Author.MODEL, text="really?")
    gateway.add(ROUTE, "step", 2, "question", body=question)

    told = [encode_event(event) for event in gateway.journal]

    assert [frame is not None for frame in told] == [True, *[False] * 6]


STEPS: list[tuple[Body, dict[str, object]]] = [
    (
        Reply(
            text="looking",
            calls=(Call(call_id=CallId("7.1"), tool="ls", arguments="{}", effect=Effect.NONE),),
        ),
        {
            "kind": "reply",
            "text": "looking",
            "calls": [{"call": "7.1", "tool": "ls", "arguments": "{}"}],
        },
    ),
    (
        Result(call_id=CallId("7.1"), status=ResultStatus.OK, text="a"),
        {"kind": "result", "call": "7.1", "status": "ok", "text": "a"},
    ),
    (Note(cause="recovery", text="[koboshi] back"), {"kind": "note", "text": "[koboshi] back"}),
    (Summary(text="so far", covers=Seq(3)), {"kind": "summary", "text": "so far"}),
]


@pytest.mark.parametrize("body,expected", STEPS)
def test_steps_are_told_as_they_happen(body: Body, expected: dict[str, object]) -> None:
    gateway = FakeGateway()
    gateway.add(ROUTE, "step", 7, "step", turn=4, body=body)

    event, told = decoded(gateway.journal[0])

    assert event == "step"
    assert told.items() >= (expected | {"turn": "t4"}).items()


def test_a_long_step_is_cut_in_its_event() -> None:
    gateway = FakeGateway()
    gateway.add(ROUTE, "step", 7, "note", body=Note(cause="x", text="a" * 1_000_000))

    text = decoded(gateway.journal[0])[1]["text"]

    assert isinstance(text, str)
    assert len(text) == 16_000
    assert text.endswith("a…")


def test_a_message_is_told_with_its_id() -> None:
    gateway = FakeGateway()
    words = Message(text="hi", sender="ann", entry_id=EntryId(5), sent_ms=NOW_MS)
    gateway.add(ROUTE, "message", 5, "accepted", after="message", body=words)

    event, told = decoded(gateway.journal[0])

    assert event == "message"
    assert told == {
        "at": "2025-11-15T21:00:00.123Z",
        "thread": "topic",
        "turn": None,
        "message": "m5",
        "sender": "ann",
        "text": "hi",
        "files": [],
    }


def test_a_turn_is_told_when_its_state_changes_with_rule_and_reason() -> None:
    """S161, S168: why it was resumed is part of the event."""
    gateway = FakeGateway()
    gateway.add(
        ROUTE,
        "turn",
        4,
        "resumed",
        before="running",
        after="queued",
        rule="fresh",
        reason="interrupted a moment ago",
        turn=4,
    )
    gateway.add(ROUTE, "turn", 4, "stepped", before="running", after="running", turn=4)

    event, told = decoded(gateway.journal[0])

    assert event == "turn"
    assert (told["turn"], told["state"], told["rule"]) == ("t4", "queued", "fresh")
    assert told["reason"] == "interrupted a moment ago"
    assert told["words"] == "taken up again (rule fresh)"
    assert encode_event(gateway.journal[1]) is None


def test_a_dropped_message_is_told_with_its_reason() -> None:
    """The words were told when they arrived; they are not told again."""
    gateway = FakeGateway()
    gateway.add(
        ROUTE,
        "message",
        5,
        "dropped",
        before="waiting",
        after="dropped",
        reason="cut",
        body=Message(text="hi", sender="ann", entry_id=EntryId(5), sent_ms=NOW_MS),
    )

    event, told = decoded(gateway.journal[0])

    assert event == "entry"
    assert (told["message"], told["state"], told["reason"]) == ("m5", "dropped", "cut")


def test_a_command_is_told_when_it_begins_and_when_it_has_ended() -> None:
    gateway = FakeGateway()
    gateway.add(ROUTE, "process", 4, "begun", after="starting", reason="make test")
    gateway.add(ROUTE, "process", 4, "ended", after="exited", reason="it exited with code 0")

    (event, begun), (_, ended) = map(decoded, gateway.journal)

    assert event == "process"
    assert (begun["process"], begun["event"], begun["command"]) == ("p4", "begun", "make test")
    assert (ended["event"], ended["state"], ended["command"]) == ("ended", "exited", "")


@pytest.mark.parametrize("subject", ["call", "session", "worker"])
def test_what_is_of_no_interest_to_a_person_is_not_told(subject: str) -> None:
    gateway = FakeGateway()
    gateway.add(ROUTE, subject, 1, "started")

    assert encode_event(gateway.journal[0]) is None


def test_words_cannot_break_out_of_their_event() -> None:
    words = "a\n\nid: 99\nevent: answer\rdata: x\r\n\x00\x1b[2J\u2028\u0085"
    gateway = FakeGateway(first_seq=41)
    gateway.say(ROUTE, words)

    frame = encode_event(gateway.journal[0])

    assert frame is not None
    assert frame.startswith(b"id: 41\nevent: answer\ndata: {")
    assert frame.count(b"\n") == 4
    assert b"\r" not in frame
    assert decoded(gateway.journal[0])[1]["text"] == words


def test_a_place_has_an_id_and_typing_has_none_and_both_carry_data() -> None:
    """A client that comes back must not count what is not in the journal. Issue 13, C20: the first
    event of a stream is a place, and many clients take an event without data for a broken one."""
    assert place_frame(7) == b'id: 7\nevent: place\ndata: {"seq":7}\n\n'
    assert b"id:" not in typing_frame(ROUTE, NOW_MS)
    assert b"event: typing\ndata: {" in typing_frame(ROUTE, NOW_MS)


def decoded(event: Event) -> tuple[str, dict[str, object]]:
    frame = encode_event(event)
    assert frame is not None
    place, kind, body, *rest = frame.decode().split("\n")
    assert place == f"id: {event.line.seq}"
    assert rest == ["", ""]
    told = json.loads(body.removeprefix("data: "))
    assert isinstance(told, dict)
    return kind.removeprefix("event: "), told
