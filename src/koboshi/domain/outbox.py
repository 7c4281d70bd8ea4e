"""What is owed to a person, and what a send made of it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, assert_never

from koboshi.domain.files import OutFile
from koboshi.domain.ids import DeliveryId, SessionId, TurnId
from koboshi.domain.route import Route
from koboshi.domain.transcript import Choice


class DeliveryState(StrEnum):
    DRAFT = "draft"  # shown while it grows; not yet owed
    OWED = "owed"
    SENDING = "sending"  # under one worker; if that dies, nobody knows whether it arrived
    DELIVERED = "delivered"
    REJECTED = "rejected"  # the platform will never take it
    ABANDONED = "abandoned"  # given up by us, with a reason


UNSETTLED = frozenset({DeliveryState.DRAFT, DeliveryState.OWED, DeliveryState.SENDING})
SETTLED = frozenset(
    {DeliveryState.DELIVERED, DeliveryState.REJECTED, DeliveryState.ABANDONED},
)

HELD_MS = 2**62
"""A time that never comes: not before somebody says so."""


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
    """An earlier send has an unknown outcome, and nobody has looked what became of it."""
    may_be_duplicate: bool
    """The person is told that they may see it twice."""
    file: OutFile | None = None
    """What is sent along with the text."""

    @property
    def may_be_there(self) -> bool:
        """Whether a copy of it may have arrived."""
        return self.is_ambiguous or self.may_be_duplicate

    @property
    def is_passing(self) -> bool:
        """Whether it is true only now: said at once, or not at all, and never twice."""
        return self.cause.startswith("progress:")


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


SendOutcome: TypeAlias = Sent | Later | Refused | Moved | Unsure


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    state: DeliveryState
    platform_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Postpone:
    """Owed again, not before `not_before_ms`. `is_ambiguous` stays true once it was."""

    not_before_ms: int
    is_ambiguous: bool
    reason: str
    is_chat_wide: bool = False
    """The platform wants quiet in the whole chat, not only of this delivery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reroute:
    chat: str


DeliveryChange: TypeAlias = Settle | Postpone | Reroute


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryLimits:
    attempts_max: int = 200
    age_ms_max: int = 24 * 3_600_000
    wait_ms_max: int = 15 * 60_000
    passing_age_ms_max: int = 60_000


def after_send(
    delivery: Delivery,
    outcome: SendOutcome,
    now_ms: int,
    limits: DeliveryLimits = DeliveryLimits(),  # noqa: B008  (frozen)
) -> DeliveryChange:
    """What the outcome of one attempt makes of the delivery. `delivery.attempts` counts it."""
    match outcome:
        case Sent(platform_id=platform_id):
            return Settle(state=DeliveryState.DELIVERED, platform_id=platform_id)
        case Refused(reason=reason):
            return Settle(state=DeliveryState.REJECTED, reason=reason)
        case Moved(chat=chat) if delivery.attempts < limits.attempts_max:
            return Reroute(chat=chat)
        case Unsure() if delivery.may_be_duplicate:
            # It was sent again once, saying so; a third copy would help nobody.
            reason = "its outcome is unknown, also after it was sent again"
            return Settle(state=DeliveryState.ABANDONED, reason=reason)
        case Later() | Unsure() | Moved():
            given_up = _why_give_up(delivery, now_ms, limits)
            if given_up:
                return Settle(state=DeliveryState.ABANDONED, reason=given_up)
            asked_ms = 0 if isinstance(outcome, Moved) else outcome.wait_ms
            wait_ms = max(asked_ms, _backoff_ms(delivery.attempts, limits))
            return Postpone(
                not_before_ms=now_ms + wait_ms,
                is_ambiguous=delivery.may_be_there or isinstance(outcome, Unsure),
                is_chat_wide=asked_ms > 0,
                reason=f"the chat moved to {outcome.chat}"
                if isinstance(outcome, Moved)
                else outcome.reason,
            )
        case _:
            assert_never(outcome)


def expiry_of(
    delivery: Delivery,
    now_ms: int,
    limits: DeliveryLimits = DeliveryLimits(),  # noqa: B008  (frozen)
) -> Settle | None:
    """What is too old is not sent any more: words of yesterday help nobody today."""
    age_ms_max = limits.passing_age_ms_max if delivery.is_passing else limits.age_ms_max
    if now_ms - delivery.created_ms <= age_ms_max:
        return None
    return Settle(state=DeliveryState.ABANDONED, reason="it expired before it could be delivered")


def _why_give_up(delivery: Delivery, now_ms: int, limits: DeliveryLimits) -> str | None:
    if delivery.is_passing:
        # It must not hold up what is said after it.
        return "it is not tried again"
    if delivery.attempts >= limits.attempts_max:
        return f"not accepted by the platform in {delivery.attempts} attempts"
    if now_ms - delivery.created_ms > limits.age_ms_max:
        return "not accepted by the platform before it expired"
    return None


def _backoff_ms(attempts: int, limits: DeliveryLimits) -> int:
    return int(min(1_000 * 2 ** min(max(attempts - 1, 0), 20), limits.wait_ms_max))


def split_text(text: str, limit: int) -> tuple[str, ...]:
    """Split `text` into parts of at most `limit` characters, at paragraph ends where possible.

    Joining the parts gives `text` back. Raises ValueError if `limit` is below 100.
    """
    if limit < 100:
        raise ValueError("parts of less than 100 characters can not be read")
    parts: list[str] = []
    begin = 0
    while len(text) - begin > limit:
        end = _good_end(text, begin, begin + limit)
        parts.append(text[begin:end])
        begin = end
    parts.append(text[begin:])
    return tuple(parts)


def _good_end(text: str, begin: int, end: int) -> int:
    """The best place in the second half of `text[begin:end]` to end a part."""
    half = begin + (end - begin) // 2
    for mark in ("\n\n", "\n", ". ", " "):
        place = text.rfind(mark, half, end)
        if place >= 0:
            return place + len(mark)
    return end


class Resolution(StrEnum):
    """How a send of unknown outcome is resolved."""

    REPEAT = "repeat"  # with the same key: the platform keeps one copy
    FIND = "find"  # look it up first
    HOLD = "hold"  # it waits for somebody to decide
    LABEL = "label"  # send again, saying that it may be a duplicate


def resolution_of(*, is_idempotent: bool, finds_sent: bool, holds: bool) -> Resolution:
    """The best that the platform and its owner allow."""
    if is_idempotent:
        return Resolution.REPEAT
    if finds_sent:
        return Resolution.FIND
    return Resolution.HOLD if holds else Resolution.LABEL


def held(reason: str) -> Postpone:
    """It is not sent before somebody says so."""
    return Postpone(not_before_ms=HELD_MS, is_ambiguous=True, reason=reason)
