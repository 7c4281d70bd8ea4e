"""What a claimed turn does next, derived from its transcript alone.

A resumed turn is a turn: nothing here knows whether the process died in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from koboshi.domain.transcript import CallRecord, Note, Reply, Step

EMPTY_REPLY = "empty-reply"
"""The cause of the note that asks a model for words after it sent none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    steps_max: int = 400
    empty_replies_max: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CallModel:
    """Ask the model for its next reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCalls:
    """Run these calls; they wait for no person, and may run side by side."""

    records: tuple[CallRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Ask the person what this call wants to know, or whether it may run. The turn waits."""

    record: CallRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The reply is the answer."""

    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Nudge:
    """The reply was empty: tell the model so, then ask again."""

    cause: str = EMPTY_REPLY


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The turn cannot come to an answer."""

    reason: str


Action: TypeAlias = CallModel | RunCalls | Ask | Finish | Nudge | Fail


def next_action(
    steps: Sequence[Step],
    calls: Sequence[CallRecord],
    proposed: Reply | None = None,
    limits: TurnLimits = TurnLimits(),  # noqa: B008  (frozen)
) -> Action:
    """The next action of a turn with these steps and calls.

    `proposed` is a reply that the model just gave and that is not stored: one without calls.
    All calls that wait for no person run first; when none is left, the oldest question is asked.
    """
    assert proposed is None or not proposed.calls, "a reply with calls is stored first"
    unresolved = [record for record in calls if record.is_unresolved]
    runnable = tuple(record for record in unresolved if not record.waits_for_person)
    if runnable:
        return RunCalls(records=runnable)
    if unresolved:
        return Ask(record=unresolved[0])
    if proposed is not None and proposed.text.strip():
        return Finish(reply=proposed)
    if proposed is not None:
        empty = sum(
            1 for step in steps if isinstance(step.body, Note) and step.body.cause == EMPTY_REPLY
        )
        return Nudge() if empty < limits.empty_replies_max else Fail(reason="empty-reply")
    if len(steps) >= limits.steps_max:
        return Fail(reason="too-many-steps")
    return CallModel()
