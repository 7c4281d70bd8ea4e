"""What recovery decides from: the rows of a turn, and the configuration of this boot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from koboshi.domain.budget import BudgetLimits
from koboshi.domain.ids import ChannelName
from koboshi.domain.outage import Patience
from koboshi.domain.price import Price
from koboshi.domain.slots import SlotLimits
from koboshi.domain.transcript import Author, Effect, Tail
from koboshi.domain.turn import TurnState
from koboshi.domain.worker import Breaker


class RecoveryPolicy(StrEnum):
    AUTO = "auto"  # continue what is fresh
    ASK = "ask"  # ask before continuing
    OFF = "off"  # set it aside


class Interruption(StrEnum):
    NONE = "none"  # it was not interrupted
    CRASH = "crash"
    DRAIN = "drain"
    NODE_LOST = "node-lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    recovery: RecoveryPolicy = RecoveryPolicy.AUTO
    fresh_ms: int = 3_600_000
    """At most this long idle is fresh; zero or less means that everything is."""
    deaths_max: int = 3
    recoveries_max: int = 10
    backoff_ms: tuple[int, ...] = (2_000, 30_000)
    has_breaker: bool = False
    """Whether a gateway that keeps dying resumes less, and then nothing."""

    def not_before(self, crash_streak: int, worked_ms: int) -> int:
        """When a turn that died may be tried again: counted from the last sign of life, so that a
        crash loop is slowed down and a gateway that was down for a while does not wait."""
        if crash_streak < 1 or not self.backoff_ms:
            return 0
        return worked_ms + self.backoff_ms[min(crash_streak, len(self.backoff_ms)) - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class BootConfig:
    """What recovery must know that no row says: the configuration of this boot."""

    policy: Policy
    channels: Mapping[ChannelName, bool]
    """The configured channels; True where a person can answer a question."""
    is_allowed: Callable[[ChannelName, str], bool]
    busy: str = "queue"
    """What a message does while a turn runs, where the session does not say otherwise."""
    slots: SlotLimits = field(default_factory=SlotLimits)
    patience: Patience = field(default_factory=Patience)
    listen: Mapping[ChannelName, str] = field(default_factory=dict)
    """What of a group is for the agent, where the channel does not keep to mentions."""
    is_owner: Callable[[ChannelName, str], bool] = lambda _channel, _person: True
    """Whether the configuration names a person whom it allows. Neither `*` nor a code is a name."""
    agents: tuple[str, ...] = ()  # the names of foreign agents that can be used
    agent: str = ""  # the one that answers where a chat has chosen none; "": the built-in one
    budget: BudgetLimits = field(default_factory=BudgetLimits)
    models: tuple[str, ...] = ()  # the chain, in its order
    prices: Mapping[str, Price] = field(default_factory=dict)
    """What models cost, as far as the configuration says."""
    owned: frozenset[ChannelName] = frozenset()
    """The channels of which the configuration names an owner."""
    threaded: frozenset[ChannelName] = frozenset()
    """The channels on which we can begin a thread."""
    topical: frozenset[ChannelName] = frozenset()
    """Those of them whose threads begin by a call, so one can be made from within another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """All that the decision may rest on: rows, and the configuration of this boot."""

    state: TurnState
    tail: Tail
    under_way: Effect | None
    """The gravest effect of a call that was started and has no result."""
    is_claimed_before: bool
    is_willed: bool
    """A person asked for it since it was last worked on: an answer, a yes, /resume, /retry."""
    is_postponed: bool
    """It waits for a time that the work itself chose; it was not interrupted."""
    is_current: bool
    """The turn's generation is the session's."""
    recoveries: int  # how often it was taken up again before
    crash_streak: int  # deaths in a row without a new step, the present one included
    idle_ms: int
    message_waits: bool
    """A message of an allowed person, accepted after the question or the death, waits."""
    message_behind: bool
    """A message of an allowed person waits, whenever it was accepted."""
    asked_by: Author | None
    is_person_allowed: bool
    """Every sender of a message in it may use the gateway."""
    is_channel_known: bool
    is_interactive: bool
    interruption: Interruption
    policy: RecoveryPolicy
    breaker: Breaker = Breaker.CLOSED
    """What the last boots allow to be taken up again."""
    is_host_away: bool = False
    """A command of it runs on a node that went away lately."""
    is_attached: bool = False  # its foreign agent may live, or has said more than is stored
