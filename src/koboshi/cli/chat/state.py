"""What the chat client knows of its conversation: what it still owes, waits for and was asked."""

from dataclasses import dataclass
from typing import TypeVar

from koboshi.channels.web.chat_events import DeliveryLine, EntryLine, Line, MessageLine, TurnLine
from koboshi.channels.web.codec import Accepted, Post, Standing
from koboshi.domain.inbox import EntryState, Words, picked_choice
from koboshi.domain.transcript import Author, Choice, Question
from koboshi.domain.turn import TurnState

REMEMBERED_MAX = 100_000

_Value = TypeVar("_Value")


@dataclass(slots=True)
class Mine:
    """A message of this client. It has an id once the gateway has it on disk."""

    post: Post
    message: str | None = None
    state: str = ""
    turn: str | None = None


class Conversation:
    """Follows the events of a chat. Places in the journal tell what came after what."""

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._mine: dict[str, Mine] = {}
        self._stored_at: dict[str, int] = {}
        self._spoken_at: dict[str, int] = {}
        self._ended_at: dict[str, int] = {}
        self._settled: dict[str, None] = {}
        self._question: DeliveryLine | None = None

    def compose(self, text: str) -> Post:
        """What to post for words that were typed: a choice, if they name one of the question. A
        command leaves the question open."""
        if text.startswith("/"):
            return Post(text=text, thread=self._thread)
        question, self._question = self._question, None
        choice = _picked(question, text) if question is not None else None
        if question is None or choice is None:
            return Post(text=text, thread=self._thread)
        if question.question is None:
            return Post(text=choice.label, thread=self._thread)
        return Post(
            text=choice.label,
            thread=self._thread,
            question=question.question,
            choice=choice.choice_id,
        )

    def sending(self, key: str, post: Post) -> None:
        self._mine[key] = Mine(post=post)

    def stored(self, key: str, accepted: Accepted) -> None:
        mine = self._mine[key]
        mine.message, mine.state = accepted.message, accepted.state

    def refused(self, key: str) -> None:
        del self._mine[key]

    def placed(self, standing: Standing) -> None:
        """The gateway was asked what has become of a message."""
        for mine in self._mine.values():
            if mine.message == standing.message:
                mine.state, mine.turn = standing.state, standing.turn

    def see(self, kind: str, line: Line, place: int) -> None:
        """Take note of an event."""
        match line:
            case MessageLine(message=message) | EntryLine(message=message, event="accepted"):
                _remember(self._stored_at, message, place)
            case EntryLine(message=message, event="dropped"):
                _remember(self._settled, message, None)
            case DeliveryLine():
                self._hear(kind, line, place)
            case TurnLine(turn=str(turn), state=state):
                if self._question is not None and self._question.turn == turn:
                    self._question = self._question if state == TurnState.WAITING else None
                if state == TurnState.DONE:
                    _remember(self._spoken_at, turn, place)
                if state in (TurnState.FAILED, TurnState.STOPPED):
                    _remember(self._ended_at, turn, place)
            case _:
                pass

    def _hear(self, kind: str, line: DeliveryLine, place: int) -> None:
        origin, _, number = line.cause.partition(":")
        if origin == "command":
            _remember(self._settled, f"m{number}", None)
        if kind == "question":
            self._question = line
        # One that was on its way when the turn ended is not its last word.
        is_last = kind != "progress" and line.turn in self._ended_at
        is_end = kind in ("question", "answer") or is_last
        if line.turn is not None and is_end and line.part == line.parts:
            _remember(self._spoken_at, line.turn, place)

    def is_mine(self, line: MessageLine) -> bool:
        """Whether these words were typed here. The event may be faster than the receipt."""
        return any(
            mine.message == line.message or (mine.message is None and mine.post.text == line.text)
            for mine in self._mine.values()
        )

    @property
    def unstored(self) -> tuple[Post, ...]:
        return tuple(mine.post for mine in self._mine.values() if mine.message is None)

    @property
    def unplaced(self) -> tuple[str, ...]:
        """Messages of which it is not known in which turn they are."""
        return tuple(
            mine.message
            for mine in self._mine.values()
            if mine.message is not None and mine.turn is None and not self._is_settled(mine)
        )

    def settle(self) -> bool:
        """Forget what has been answered, or asked back about. Returns whether nothing is left."""
        self._mine = {key: mine for key, mine in self._mine.items() if not self._is_settled(mine)}
        return not self._mine

    def is_over(self) -> bool:
        """Whether nothing more is worked on; last words may still be on their way."""
        return all(
            self._is_settled(mine) or self._is_behind(mine, self._ended_at)
            for mine in self._mine.values()
        )

    def _is_settled(self, mine: Mine) -> bool:
        if mine.message is None:
            return False
        is_taken = mine.state not in (EntryState.DROPPED, EntryState.IGNORED)
        is_told = mine.message in self._settled or self._is_behind(mine, self._spoken_at)
        return is_told or not is_taken

    def _is_behind(self, mine: Mine, places: dict[str, int]) -> bool:
        """Whether the message was stored before what happened to its turn."""
        stored_at = self._stored_at.get(mine.message or "")
        return (
            stored_at is not None and mine.turn is not None and places.get(mine.turn, 0) > stored_at
        )


def _picked(question: DeliveryLine, text: str) -> Choice | None:
    choices = tuple(Choice(choice_id=each.id, label=each.label) for each in question.choices)
    asked = Question(author=Author.GATEWAY, text=question.text, choices=choices)
    return picked_choice(asked, Words(text=text, sent_ms=0))


def _remember(things: dict[str, _Value], name: str, value: _Value) -> None:
    things[name] = value
    if len(things) > REMEMBERED_MAX:
        del things[next(iter(things))]
