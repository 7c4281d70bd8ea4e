"""What a claimed turn does next, derived from its transcript alone.

A resumed turn is a turn: nothing here knows whether the process died in between.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from koboshi.domain.marks import unmarked
from koboshi.domain.phrases import reminder
from koboshi.domain.transcript import CallRecord, Message, Note, Reply, Result, ResultStatus, Step

NOTHING_TO_REPORT = "nothing_to_report"
"""The tool by which the model of a quiet schedule says that no person need be told."""
BY_GATEWAY = "koboshi"
"""The model of a reply that the gateway made itself."""
OWN_REPLY = "gateway"
"""The cause of the step with such a reply."""
NO_REPORT = "(nothing to report)"
NO_OUTPUT = "(no output)"
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
    """The reply is the answer. With `is_silent`, no person is told."""

    reply: Reply
    is_silent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOwnCommand:
    """A schedule runs a command without a model: the gateway itself makes the one call."""

    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Nudge:
    """The reply was empty: tell the model so, then ask again."""

    cause: str = EMPTY_REPLY


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The turn cannot come to an answer."""

    reason: str


Action: TypeAlias = CallModel | RunCalls | RunOwnCommand | Ask | Finish | Nudge | Fail


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
    if (own := _without_model(steps)) is not None:
        return own
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


def _without_model(steps: Sequence[Step]) -> Action | None:
    """What follows where no model is asked: a command of a schedule is run and told, and a turn
    with nothing to report ends. A reminder is told as it is."""
    said = [step.body for step in steps if isinstance(step.body, Message | Reply | Result)]
    command = next(
        (body.command for body in said if isinstance(body, Message) and body.command), ""
    )
    replies = [place for place, body in enumerate(said) if isinstance(body, Reply)]
    told = next((body.text for body in said if isinstance(body, Message) and body.is_plain), "")
    if told and not replies:
        return Finish(reply=Reply(text=reminder(told), model=BY_GATEWAY))
    if command and not replies:
        return RunOwnCommand(command=command)
    if not replies:
        return None
    last, after = said[replies[-1]], said[replies[-1] + 1 :]
    results = [body for body in after if isinstance(body, Result)]
    if not isinstance(last, Reply) or len(results) < len(after) or not results:
        return None  # a person has written since
    if command:
        text = told_of_command(command, results[0])
        return Finish(reply=Reply(text=text or NO_OUTPUT, model=BY_GATEWAY), is_silent=not text)
    quiet = {call.call_id for call in last.calls if call.tool == NOTHING_TO_REPORT}
    if any(each.call_id in quiet and each.status is ResultStatus.OK for each in results):
        return Finish(reply=Reply(text=NO_REPORT, model=BY_GATEWAY), is_silent=True)
    return None


def told_of_command(command: str, result: Result) -> str:
    """What a person is told of a command of a schedule: its output if there is any, and a code
    other than 0 always. Empty if there is nothing to tell."""
    try:
        found = json.loads(result.text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or result.status is not ResultStatus.OK:
        return f"`{command}` was not run to its end: {unmarked(result.text)}"
    output = str(found.get("output") or "").strip()
    code = found.get("exit_code")
    if found.get("status") == "exited" and code == 0:
        return output
    how = f"ended with code {code}" if code is not None else f"was {found.get('status')}"
    return f"`{command}` {how}.\n{output}".strip()
