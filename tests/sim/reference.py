"""What a session must look like, as a few lines of plain Python: written from the rules that people
are promised, not from the code.

It knows what waits and whether a turn is open, and nothing of rows, epochs or workers. What a
verdict of recovery is, it is told; what follows from it, it knows.
"""

from dataclasses import dataclass, field
from itertools import takewhile

BACKLOG_MAX = 10
CLOSED = ("answered", "done", "stopped", "failed")


@dataclass(slots=True)
class TurnModel:
    state: str = "queued"
    key: str = ""
    """The message that opened it, as long as no worker has claimed it."""
    question: str = ""
    """What an open question wants: an `answer`, an `approval`, or whether to go on (`offer`)."""


@dataclass(slots=True)
class ChatModel:
    """One session: messages in the order they were accepted, at most one open turn."""

    waiting: list[str] = field(default_factory=list)
    """The keys of messages that no turn has heard yet."""
    turn: TurnModel | None = None
    boots: dict[str, int] = field(default_factory=dict)
    """Which boot has accepted each message."""
    joins_for: int = 0
    """The boot that claimed a turn of which no one knew yet what had opened it."""
    may_open: bool = False
    """A report waits, too: it may have opened the turn in the place of a message."""

    @property
    def state(self) -> str | None:
        return None if self.turn is None else self.turn.state

    def hears(self, key: str, text: str, boot: int) -> None:
        """A person writes."""
        self.boots[key] = boot
        if self.turn is None:
            self.turn = TurnModel(key=key)
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
        self.turn = TurnModel("waiting", question=question)

    def closes(self) -> None:
        """The open turn has ended: the oldest message opens the next."""
        self.turn = None
        if self.waiting and not self.may_open:
            self.turn = TurnModel(key=self.waiting.pop(0))

    def is_claimed_first(self, boot: int) -> None:
        """A turn is claimed that no worker has claimed before: a backlog joins it."""
        if self.turn is None:
            self.joins_for = boot
        else:
            self.waiting = self.waiting[self._joining(self.turn.key, self.waiting, boot) :]

    def _joining(self, key: str, behind: list[str], boot: int) -> int:
        """How many messages are answered with the one that opened the turn: all of one person here,
        accepted before this boot, ten together at most."""
        if not key or self.boots[key] >= boot:
            return 0
        row = list(takewhile(lambda each: self.boots[each] < boot, behind))
        return min(len(row), BACKLOG_MAX - 1)

    def is_cut(self) -> None:
        """`/stop` or `/new`: what was open has ended, and what waited is dropped."""
        self.turn, self.waiting = None, []

    def is_judged(self, state: str, *, is_new: bool = False) -> None:
        """Recovery, or a claim, has brought the open turn into this state. It is new as long as
        no worker has claimed it."""
        if state in CLOSED:
            self.closes()
        elif state == "waiting":
            self.asks("offer")
        else:
            self.turn = TurnModel(state, key=self.turn.key if is_new and self.turn else "")

    def learns(self, state: str | None, waiting: list[str]) -> None:
        """After reports had a say: the next turn is there if a message waits, and whatever was
        taken was the oldest."""
        assert state is not None or not waiting, "messages wait, and no turn is open"
        taken = len(self.waiting) - len(waiting)
        assert self.waiting[taken:] == waiting, f"{waiting} is left of {self.waiting}"
        key = self.waiting[0] if taken else ""
        joining = self._joining(key, self.waiting[1:], self.joins_for)
        assert taken in (0, 1 + joining), f"{taken} messages were taken at once"
        self.waiting, self.joins_for = list(waiting), 0
        if self.turn is None and state is not None:
            assert state == "queued", f"a turn begins as {state}"
            self.turn = TurnModel(key=key)
