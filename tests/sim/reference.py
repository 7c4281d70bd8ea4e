"""What a session must look like, as a few lines of plain Python: written from the rules that people
are promised, not from the code.

It knows what waits and whether a turn is open, and nothing of rows, epochs or workers. What a
verdict of recovery is, it is told; what follows from it, it knows.
"""

from dataclasses import dataclass, field

CLOSED = ("answered", "done", "stopped", "failed")


@dataclass(slots=True)
class TurnModel:
    state: str = "queued"
    question: str = ""
    """What an open question wants: an `answer`, an `approval`, or whether to go on (`offer`)."""


@dataclass(slots=True)
class ChatModel:
    """One session: messages in the order they were accepted, at most one open turn."""

    waiting: list[str] = field(default_factory=list)
    """The keys of messages that no turn has heard yet."""
    turn: TurnModel | None = None
    may_open: bool = False
    """A report waits, too: it may have opened the turn in the place of a message."""

    @property
    def state(self) -> str | None:
        return None if self.turn is None else self.turn.state

    def hears(self, key: str, text: str) -> None:
        """A person writes."""
        if self.turn is None:
            self.turn = TurnModel()
        elif self.turn.state != "waiting":
            self.waiting.append(key)
        elif self.turn.question != "offer" or text == "yes":
            self.turn = TurnModel()
        elif text == "no":
            self.closes()
        else:
            self.waiting.append(key)
            self.closes()

    def asks(self, question: str) -> None:
        self.turn = TurnModel("waiting", question)

    def closes(self) -> None:
        """The open turn has ended: the oldest message opens the next."""
        self.turn = None
        if self.waiting and not self.may_open:
            del self.waiting[0]
            self.turn = TurnModel()

    def is_cut(self) -> None:
        """`/stop` or `/new`: what was open has ended, and what waited is dropped."""
        self.turn, self.waiting = None, []

    def is_judged(self, state: str) -> None:
        """Recovery, or a claim, has brought the open turn into this state."""
        if state in CLOSED:
            self.closes()
        elif state == "waiting":
            self.asks("offer")
        else:
            self.turn = TurnModel(state)

    def learns(self, state: str | None, waiting: list[str]) -> None:
        """After reports had a say: the next turn is there if a message waits, and whatever was
        taken was the oldest."""
        assert state is not None or not waiting, "messages wait, and no turn is open"
        taken = len(self.waiting) - len(waiting)
        assert self.waiting[taken:] == waiting, f"{waiting} is left of {self.waiting}"
        assert taken in (0, 1), f"{taken} messages were taken at once"
        self.waiting = list(waiting)
        if self.turn is None and state is not None:
            assert state == "queued", f"a turn begins as {state}"
            self.turn = TurnModel()
