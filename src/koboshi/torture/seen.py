"""Everything that was seen of one home: what people sent and heard, and what lies on the disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from koboshi.torture.errands import Errand
from koboshi.torture.platform import Posted, Spot


@dataclass(slots=True, kw_only=True)
class SeenSent:
    """One message of a person. `message` is the id that it was acknowledged with."""

    chat: str
    key: str
    errand: Errand
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One message of a person on the platform. `is_regular` says that they were always allowed."""

    spot: Spot
    number: int
    update: int
    errand: Errand
    since: int = 0
    """How many messages of the bot were there when it was sent."""
    is_regular: bool = True

    @property
    def key(self) -> str:
        return f"{self.spot.chat}/{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEvent:
    """One event of a chat. The fields that its kind does not have are empty."""

    place: int
    kind: str
    turn: str = ""
    state: str = ""
    delivery: str = ""
    cause: str = ""
    part: int = 0
    parts: int = 0
    text: str = ""
    question: int = 0
    choices: tuple[tuple[str, str], ...] = ()

    @property
    def is_words(self) -> bool:
        return bool(self.delivery)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEntry:
    entry_id: int
    kind: str
    external_id: str
    state: str
    turn_id: int | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedRow:
    """A message of a turn that answers a backlog."""

    turn_id: int
    entry_id: int
    sender: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTurn:
    turn_id: int
    chat: str
    state: str
    reason: str | None
    answers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    delivery_id: int
    chat: str
    turn_id: int | None
    cause: str
    part: int
    parts: int
    text: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    process_id: int
    chat: str
    foreground: int
    command: str
    state: str
    exit_code: int | None
    boundary: str = "none"
    """What kept it inside; `none` if nothing did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """The rows of a home in which no gateway runs."""

    entries: Sequence[SeenEntry] = ()
    turns: Sequence[SeenTurn] = ()
    deliveries: Sequence[DeliveryRow] = ()
    processes: Sequence[ProcessRow] = ()
    heard: Mapping[str, int] = field(default_factory=dict)
    """How often each report is in the transcript, by its cause."""
    joined: Sequence[JoinedRow] = ()
    damage: Sequence[str] = ()

    def joined_with(self, entry: SeenEntry) -> tuple[int, ...]:
        """The messages that one turn answers together, in order; the entry alone where it has a
        turn of its own."""
        together = tuple(row.entry_id for row in self.joined if row.turn_id == entry.turn_id)
        return together if entry.entry_id in together else (entry.entry_id,)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSeen:
    sent: Sequence[SeenSent]
    told: Mapping[str, Sequence[SeenEvent]]
    """What the follower of each chat was told, over all of its connections."""
    from_start: Mapping[str, Sequence[SeenEvent]]
    """What a client is told that follows the chat from its start, at the end."""
    remains: Remains
    ledger: Mapping[str, int]
    """How many lines each command left in the file."""
    visits: Sequence[Visit] = ()
    posted: Sequence[Posted] = ()
    """All that the bot has said on the platform, in order."""
    acknowledged: int = 0
    """The last update that the platform was told to forget."""
    runners_killed: frozenset[int] = frozenset()
    """Processes whose runner was killed: how they ended cannot be told."""
    unfinished: Sequence[str] = ()
    """What people still waited for when the time was over."""
