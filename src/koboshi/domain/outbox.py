"""A delivery: what a person is to get, and what a send made of it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, assert_never

from koboshi.domain.files import OutFile
from koboshi.domain.ids import DeliveryId, SessionId, TurnId
from koboshi.domain.machine import Machine, transitions_of
from koboshi.domain.route import Route
from koboshi.domain.transcript import Choice


class DeliveryState(StrEnum):
    DRAFT = "draft"  # shown while it grows; not yet owed
    OWED = "owed"  # it is sent when its time has come
    SENDING = "sending"  # under one worker; if that dies, it is unknown whether it arrived
    HELD = "held"  # it may have arrived, and is not sent before the operator says so
    DELIVERED = "delivered"  # the platform has taken it
    REJECTED = "rejected"  # the platform will never take it
    ABANDONED = "abandoned"  # given up by us, with a reason


class DeliveryEvent(StrEnum):
    CLAIMED = "claimed"
    DELIVERED = "delivered"
    REJECTED = "rejected"
    POSTPONED = "postponed"
    HELD = "held"
    RELEASED = "released"
    GAVE_UP = "gave-up"
    WITHDRAWN = "withdrawn"  # what it speaks of is over, or it is said already
    OUTLIVED = "outlived"  # its boot is over, and it spoke of that boot only
    DROPPED = "dropped"


SETTLED = frozenset(
    {DeliveryState.DELIVERED, DeliveryState.REJECTED, DeliveryState.ABANDONED},
)
UNSETTLED = frozenset(DeliveryState) - SETTLED
_TAKEN_UP = (DeliveryState.OWED, DeliveryState.SENDING)
_NOT_UNDER_WAY = sorted(UNSETTLED - {DeliveryState.SENDING})

TRANSITIONS = transitions_of(
    {
        # One that is being sent is taken over from a worker that is gone.
        DeliveryEvent.CLAIMED: dict.fromkeys(_TAKEN_UP, DeliveryState.SENDING),
        DeliveryEvent.DELIVERED: {DeliveryState.SENDING: DeliveryState.DELIVERED},
        DeliveryEvent.REJECTED: {DeliveryState.SENDING: DeliveryState.REJECTED},
        DeliveryEvent.POSTPONED: {DeliveryState.SENDING: DeliveryState.OWED},
        DeliveryEvent.HELD: dict.fromkeys((*_TAKEN_UP, DeliveryState.HELD), DeliveryState.HELD),
        DeliveryEvent.RELEASED: {DeliveryState.HELD: DeliveryState.OWED},
        DeliveryEvent.GAVE_UP: dict.fromkeys(_TAKEN_UP, DeliveryState.ABANDONED),
        DeliveryEvent.WITHDRAWN: dict.fromkeys(_NOT_UNDER_WAY, DeliveryState.ABANDONED),
        DeliveryEvent.OUTLIVED: dict.fromkeys(sorted(UNSETTLED), DeliveryState.ABANDONED),
        DeliveryEvent.DROPPED: dict.fromkeys(sorted(UNSETTLED), DeliveryState.ABANDONED),
    }
)

MACHINE = Machine(
    name="delivery",
    begins=frozenset({DeliveryState.DRAFT, DeliveryState.OWED}),
    transitions=TRANSITIONS,
)
advance = MACHINE.advance

STRIKES_MAX = 5
"""A delivery is poisoned when its outcome was unknown so often while others were accepted."""
LACK_MS = 5_000
"""The pause while something is missing on our side. It does not grow: that says nothing about the
platform, and it is over when it is over."""
MOVES_MAX = 20
"""After so many attempts a chat that moves is followed with pauses: two may name each other."""
SAID_THERE = "it is said in the chat that this one moved to"
"""Why a delivery is withdrawn whose cause has a delivery in the other chat already."""
UNDELIVERED = "undelivered:"
"""How the cause of a notice begins that tells of deliveries that were given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One part of one text owed to a person."""

    delivery_id: DeliveryId
    session_id: SessionId
    turn_id: TurnId | None
    route: Route
    cause: str
    part: int
    parts: int
    text: str
    choices: tuple[Choice, ...]
    question: int | None
    anchor: str
    attempts: int
    created_ms: int
    is_ambiguous: bool
    """The newest send has an unknown outcome, and was not looked for yet."""
    may_be_duplicate: bool
    """The person is told that they may see it twice."""
    file: OutFile | None = None
    """What is sent along with the text."""
    age_ms: int = 0
    """How long it is owed. A jump of the clock on the wall does not count."""
    is_tried: bool = False
    """This boot has tried it before."""
    unsure: int = 0
    """How many sends had an unknown outcome."""
    strikes: int = 0
    """How many of these had it while the channel's other sends were accepted."""
    waited_ms: int = 0
    """How long the last pause was before this attempt."""
    send_key: str = ""
    """What a platform tells a repeat by, in at most 25 characters: a random id of this database,
    which a restore renews, and the delivery's id. The same for every attempt."""
    literal: tuple[int, int] | None = None
    """Which characters of the text a person decides about: shown letter by letter, on every
    platform. Then nothing of the text is Markdown."""

    @property
    def may_be_there(self) -> bool:
        """Whether a copy of it may have arrived."""
        return self.is_ambiguous or self.may_be_duplicate

    @property
    def is_passing(self) -> bool:
        """Whether it is true only now: said at once, or not at all, and never twice."""
        return self.cause.startswith("progress:")

    @property
    def is_notice_of_loss(self) -> bool:
        """Whether it tells of deliveries that were given up."""
        return self.cause.startswith(UNDELIVERED)

    @property
    def begins_thread(self) -> bool:
        """Whether a thread of a schedule begins with it."""
        return self.cause.startswith("thread:")

    @property
    def needs_channel(self) -> bool:
        """Whether it waits while its channel is down: a repeat of an unknown outcome would only
        add copies, and a notice of loss would be lost as well."""
        return self.is_ambiguous or self.is_notice_of_loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """What is known of the chat around a send of unknown outcome, by the platform's ids."""

    before: tuple[str, ...]
    """Messages that were there before it was sent."""
    known: tuple[str, ...]
    """Others of ours, that are certainly not this one."""
    is_alone: bool
    """No other send to this chat is of unknown outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    platform_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Provably not sent; the platform wants us to wait."""

    wait_ms: int
    reason: str = ""
    is_lack: bool = False
    """Something was missing on our side, and comes back: the platform knows nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The chat lives elsewhere now; provably not sent."""

    chat: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsure:
    """It may have arrived. `wait_ms` is how long the platform wants us to wait before we ask."""

    reason: str = ""
    wait_ms: int = 0
    was_sent: bool = True
    """False if it could only not be looked for: nothing more was sent than before."""
    is_lack: bool = False
    """It could not be looked for because something was missing on our side, and comes back."""


SendOutcome: TypeAlias = Sent | Later | Refused | Moved | Unsure


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    state: DeliveryState
    platform_id: str | None = None
    reason: str | None = None
    is_told: bool = False
    """The person gets a notice that it was given up."""
    may_be_there: bool = False
    """It was given up, and it is unknown whether it arrived."""

    @property
    def event(self) -> DeliveryEvent:
        """What happened to a delivery that ends like this."""
        if self.state is DeliveryState.ABANDONED:
            return DeliveryEvent.GAVE_UP
        return DeliveryEvent(self.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Postpone:
    """Owed again, after `wait_ms`. `is_ambiguous` says that it is to be looked for first."""

    wait_ms: int
    is_ambiguous: bool
    reason: str
    is_chat_wide: bool = False
    """The platform wants quiet in the whole chat, not only of this delivery."""
    is_unsure: bool = False
    """The outcome of this very attempt is unknown."""
    is_held: bool = False
    """No time brings it back: the operator does."""

    @property
    def event(self) -> DeliveryEvent:
        return DeliveryEvent.HELD if self.is_held else DeliveryEvent.POSTPONED


@dataclass(frozen=True, slots=True, kw_only=True)
class Reroute:
    """Owed in another chat, after `wait_ms`."""

    chat: str
    wait_ms: int = 0


DeliveryChange: TypeAlias = Settle | Postpone | Reroute


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """A delivery that ended without having arrived, when it was its turn to be sent."""

    delivery_id: DeliveryId
    route: Route
    reason: str
    is_told: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryLimits:
    age_ms_max: int = 24 * 3_600_000
    wait_ms_max: int = 15 * 60_000
    unsure_wait_ms_max: int = 3_600_000
    passing_age_ms_max: int = 60_000
    notice_age_ms_max: int = 7 * 24 * 3_600_000
    """A notice of loss outlives a long outage."""


def after_send(
    delivery: Delivery,
    outcome: SendOutcome,
    limits: DeliveryLimits = DeliveryLimits(),  # noqa: B008  (frozen)
) -> DeliveryChange:
    """What the outcome of one attempt makes of the delivery. `delivery.attempts` counts it.

    An outcome that is not final is never the end of a delivery: `ending_of` alone gives one up.
    """
    match outcome:
        case Sent(platform_id=platform_id):
            return Settle(state=DeliveryState.DELIVERED, platform_id=platform_id)
        case Refused(reason=reason):
            return Settle(state=DeliveryState.REJECTED, reason=reason)
        case Moved(chat=chat) if delivery.attempts < MOVES_MAX:
            return Reroute(chat=chat)
        case Later() | Unsure() | Moved() if delivery.is_passing:
            # It must not hold up what is said after it. One that may be there is remembered: it
            # must not be taken for another that is looked for.
            return Settle(
                state=DeliveryState.ABANDONED,
                reason="it is not tried again",
                may_be_there=isinstance(outcome, Unsure),
            )
        case Moved(chat=chat):
            return Reroute(chat=chat, wait_ms=_later_ms(delivery, limits))
        case Later(is_lack=True, reason=reason):
            is_ambiguous = delivery.is_ambiguous
            return Postpone(wait_ms=LACK_MS, is_ambiguous=is_ambiguous, reason=reason)
        case Unsure(is_lack=True, was_sent=False, reason=reason):
            return Postpone(wait_ms=LACK_MS, is_ambiguous=True, reason=reason)
        case Later(wait_ms=asked_ms, reason=reason):
            return Postpone(
                wait_ms=max(asked_ms, _later_ms(delivery, limits)),
                is_ambiguous=delivery.is_ambiguous,
                is_chat_wide=asked_ms > 0,
                reason=reason,
            )
        case Unsure(wait_ms=asked_ms, reason=reason, was_sent=was_sent):
            return Postpone(
                wait_ms=max(asked_ms, _unsure_ms(delivery, limits, was_sent=was_sent)),
                is_ambiguous=True,
                is_chat_wide=asked_ms > 0,
                is_unsure=was_sent,
                reason=reason,
            )
        case _:
            assert_never(outcome)


def ending_of(
    delivery: Delivery,
    limits: DeliveryLimits = DeliveryLimits(),  # noqa: B008  (frozen)
) -> Settle | None:
    """How a delivery ends that is about to be tried once more; None if it may be tried.

    An old delivery has one try in each boot: after a downtime it is unknown how much of its age
    comes from a wrong clock.
    """
    if delivery.is_passing:
        if delivery.age_ms <= limits.passing_age_ms_max:
            return None
        return Settle(state=DeliveryState.ABANDONED, reason="it is true no longer")
    is_told = not (delivery.is_notice_of_loss or delivery.cause.startswith(("drain:", "thread:")))
    if delivery.strikes >= STRIKES_MAX:
        reason = f"its outcome stayed unknown in {delivery.unsure} sends, while others arrived"
        return Settle(state=DeliveryState.ABANDONED, reason=reason, is_told=is_told)
    age_ms_max = limits.notice_age_ms_max if delivery.is_notice_of_loss else limits.age_ms_max
    if delivery.is_tried and delivery.age_ms > age_ms_max:
        reason = "it expired before it could be delivered"
        return Settle(state=DeliveryState.ABANDONED, reason=reason, is_told=is_told)
    return None


def _later_ms(delivery: Delivery, limits: DeliveryLimits) -> int:
    """The pause after a send that provably did not happen."""
    return _grown(delivery, 1_000, limits.wait_ms_max)


def _unsure_ms(delivery: Delivery, limits: DeliveryLimits, *, was_sent: bool) -> int:
    """The pause before a send of unknown outcome is looked for and repeated. Looks that fail make
    it longer, too."""
    if was_sent:
        return _doubled(5_000, delivery.unsure, limits.unsure_wait_ms_max)
    return _grown(delivery, 5_000, limits.unsure_wait_ms_max)


def _grown(delivery: Delivery, first_ms: int, most_ms: int) -> int:
    """The pause doubles with each attempt, but not more than that: attempts that were cut off by a
    crash or made for lack of something of ours say nothing about the platform."""
    by_attempts_ms = _doubled(first_ms, delivery.attempts - 1, most_ms)
    return min(by_attempts_ms, max(first_ms, 2 * delivery.waited_ms), most_ms)


def _doubled(first_ms: int, times: int, most_ms: int) -> int:
    return int(min(first_ms * 2 ** min(max(times, 0), 20), most_ms))


class Resolution(StrEnum):
    """How a send of unknown outcome is resolved."""

    REPEAT = "repeat"  # with the same key: the platform keeps one copy
    FIND = "find"  # look it up first
    AWAIT = "await"  # the platform tells of it by itself; it is never repeated
    HOLD = "hold"  # it waits for the operator's decision
    LABEL = "label"  # send again, saying that it may be a duplicate


def resolution_of(
    *,
    is_idempotent: bool,
    finds_sent: bool,
    holds: bool,
    begins_once: bool = False,
    age_ms: int = 0,
    repeat_within_ms: int | None = None,
) -> Resolution:
    """The best that the platform and its owner allow for a delivery of that age. A platform that
    remembers keys for a while only would take a late repeat for something new."""
    if begins_once:
        return Resolution.AWAIT
    is_remembered = repeat_within_ms is None or age_ms < repeat_within_ms
    if is_idempotent and is_remembered:
        return Resolution.REPEAT
    if finds_sent:
        return Resolution.FIND
    return Resolution.HOLD if holds else Resolution.LABEL


def held(reason: str) -> Postpone:
    """It is not sent before the operator says so."""
    return Postpone(wait_ms=0, is_ambiguous=True, is_held=True, reason=reason)
