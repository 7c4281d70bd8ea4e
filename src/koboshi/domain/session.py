"""The conversation on one route, for ever."""

from dataclasses import dataclass, field
from enum import StrEnum

from koboshi.domain.ids import PREFIXES, Generation, Seq, SessionId
from koboshi.domain.recovery import RecoveryPolicy
from koboshi.domain.route import Route


class Busy(StrEnum):
    """What a message does while a turn runs."""

    QUEUE = "queue"  # it opens the next turn
    STEER = "steer"  # it joins the running turn at the next step boundary
    INTERRUPT = "interrupt"  # it ends the running turn and opens the next


class Listen(StrEnum):
    """What of a group is for the agent."""

    MENTION = "mention"  # what names it or answers it, and commands
    ALL = "all"  # every message of a person who may use the gateway


class CutKind(StrEnum):
    STOP = "stop"  # end the work, keep the conversation
    STOP_ALL = "stop-all"  # and end the session's processes
    NEW = "new"  # end the work and begin without the old transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a person set for their session; None means: as the configuration says."""

    busy: Busy | None = None
    policy: RecoveryPolicy | None = None
    listen: Listen | None = None
    agent: str | None = None
    """The foreign agent that answers; empty: the built-in one."""
    model: str | None = None
    """The model of the chain that is asked first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    session_id: SessionId
    route: Route
    generation: Generation
    context_from: Seq
    settings: Settings = field(default_factory=Settings)
    person: str = ""
    """Whose private chat it is; empty for a group, and where the platform does not say."""
    aside: str = ""
    """The schedule or the child that works here beside the conversation, as c7 or a3; empty: it is
    that itself."""

    @property
    def is_child(self) -> bool:
        """Whether a child works here: no person is told what it does."""
        return self.aside.startswith(PREFIXES["child"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a cut does to a session: the generation ends, and with it what the agent would hear."""

    kind: CutKind
    generation: Generation
    forgets_transcript: bool
    ends_background: bool


def cut_of(session: Session, kind: CutKind) -> Cut:
    """The cut of this kind, as the session stands now. The conversation itself is never deleted."""
    return Cut(
        kind=kind,
        generation=Generation(session.generation + 1),
        forgets_transcript=kind is CutKind.NEW,
        ends_background=kind is CutKind.STOP_ALL,
    )
