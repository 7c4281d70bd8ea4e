"""What the chat client believes about its conversation."""

import pytest

from koboshi.channels.web.chat_events import DeliveryLine, EntryLine, MessageLine, Option, TurnLine
from koboshi.channels.web.codec import Accepted, Post, Standing
from koboshi.cli.chat.state import Conversation
from koboshi.domain.inbox import EntryState

AT = ""


class Told:
    """A conversation together with the journal that it hears of."""

    def __init__(self) -> None:
        self.conversation = Conversation("")
        self.place = 0

    def send(self, key: str, message: str, state: EntryState = EntryState.ATTACHED) -> None:
        self.conversation.sending(key, Post(text=key))
        self.conversation.stored(key, Accepted(message=message, state=state, duplicate=False))

    def arrive(self, message: str, text: str = "") -> MessageLine:
        line = MessageLine(at=AT, thread="", message=message, sender="web", text=text)
        self._see("message", line)
        return line

    def place_in(self, message: str, turn: str) -> None:
        standing = Standing(message=message, state="attached", turn=turn)
        self.conversation.placed(standing)

    def say(
        self, kind: str, turn: str | None, cause: str = "step:1", part: int = 1, parts: int = 1
    ) -> None:
        line = DeliveryLine(
            at=AT,
            thread="",
            turn=turn,
            delivery="d1",
            cause=cause,
            part=part,
            parts=parts,
            text="words",
            choices=(Option(id="yes", label="Go on"), Option(id="no", label="Stop")),
            question=12 if kind == "question" else None,
        )
        self._see(kind, line)

    def turn(self, turn: str, state: str) -> None:
        self._see("turn", TurnLine(at=AT, thread="", turn=turn, state=state, event=state))

    def drop(self, message: str) -> None:
        line = EntryLine(at=AT, thread="", message=message, event="dropped", state="dropped")
        self._see("entry", line)

    def _see(self, kind: str, line: MessageLine | DeliveryLine | TurnLine | EntryLine) -> None:
        self.place += 1
        self.conversation.see(kind, line, self.place)


def test_a_message_is_settled_by_the_answer_to_its_turn() -> None:
    told = Told()
    told.send("k", "m1")
    told.arrive("m1")
    told.place_in("m1", "t1")
    assert not told.conversation.settle()

    told.say("answer", "t1", part=1, parts=2)
    assert not told.conversation.settle()
    told.say("answer", "t1", part=2, parts=2)

    assert told.conversation.settle()


def test_it_does_not_matter_whether_the_answer_or_the_receipt_is_seen_first() -> None:
    told = Told()
    told.conversation.sending("k", Post(text="k"))
    told.arrive("m1")
    told.say("answer", "t1")
    told.turn("t1", "done")
    assert not told.conversation.settle()

    accepted = Accepted(message="m1", state=EntryState.ATTACHED, duplicate=True)
    told.conversation.stored("k", accepted)
    assert told.conversation.unplaced == ("m1",)
    told.place_in("m1", "t1")

    assert told.conversation.settle()


def test_an_answer_given_before_the_message_was_stored_is_not_its_answer() -> None:
    """The question came first; the message that answers it waits for what comes after."""
    told = Told()
    told.send("one", "m1")
    told.arrive("m1")
    told.place_in("m1", "t1")
    told.say("question", "t1")
    assert told.conversation.settle()

    told.send("two", "m2")
    told.arrive("m2")
    told.place_in("m2", "t1")
    assert not told.conversation.settle()
    told.say("answer", "t1")

    assert told.conversation.settle()


def test_a_command_is_settled_by_its_own_reply() -> None:
    told = Told()
    told.send("k", "m5", EntryState.HANDLED)
    told.arrive("m5")
    told.say("notice", None, cause="command:4")
    assert not told.conversation.settle()

    told.say("notice", None, cause="command:5")

    assert told.conversation.settle()


@pytest.mark.parametrize("state", [EntryState.DROPPED, EntryState.IGNORED])
def test_what_was_not_taken_is_not_waited_for(state: EntryState) -> None:
    told = Told()
    told.send("k", "m1", state)

    assert told.conversation.settle()


def test_a_waiting_message_that_is_dropped_later_is_not_waited_for() -> None:
    told = Told()
    told.send("k", "m1", EntryState.WAITING)
    told.arrive("m1")
    told.drop("m1")

    assert told.conversation.settle()


@pytest.mark.parametrize("state", ["failed", "stopped"])
def test_a_turn_without_an_answer_is_over_and_settled_by_the_words_about_it(state: str) -> None:
    told = Told()
    told.send("k", "m1")
    told.arrive("m1")
    told.place_in("m1", "t1")
    told.say("progress", "t1", cause="progress:1:1")
    assert not told.conversation.is_over()

    told.turn("t1", state)
    # It was on its way when the turn ended: the words about the end are still to come.
    told.say("progress", "t1", cause="progress:1:2")
    assert told.conversation.is_over()
    assert not told.conversation.settle()
    told.say("notice", "t1", cause="failure:1")

    assert told.conversation.settle()


def test_words_typed_here_are_recognised_even_before_their_receipt() -> None:
    told = Told()
    told.conversation.sending("k", Post(text="hello"))

    assert told.conversation.is_mine(told.arrive("m1", "hello"))
    assert not told.conversation.is_mine(told.arrive("m2", "other"))


@pytest.mark.parametrize("typed", ["1", "go on", "Go On ", "yes"])
def test_a_number_or_a_label_answers_the_question(typed: str) -> None:
    """S141."""
    told = Told()
    told.say("question", "t1")

    post = told.conversation.compose(typed)

    assert post == Post(text="Go on", question=12, choice="yes")
    assert told.conversation.compose(typed) == Post(text=typed)


def test_a_command_leaves_the_question_open() -> None:
    """S141: slash commands pass through."""
    told = Told()
    told.say("question", "t1")

    assert told.conversation.compose("/status") == Post(text="/status")
    assert told.conversation.compose("2").choice == "no"


def test_other_words_are_sent_as_they_are() -> None:
    told = Told()
    told.say("question", "t1")

    assert told.conversation.compose("why do you ask?") == Post(text="why do you ask?")


def test_a_question_that_was_answered_elsewhere_is_closed() -> None:
    told = Told()
    told.say("question", "t1")
    told.turn("t1", "waiting")
    assert told.conversation.compose("/help").choice is None
    told.turn("t1", "queued")

    assert told.conversation.compose("1") == Post(text="1")


def test_words_go_to_the_thread_of_the_client() -> None:
    assert Conversation("topic").compose("hi").thread == "topic"
