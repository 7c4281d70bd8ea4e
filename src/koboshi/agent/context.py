"""What a claimed turn shows to the model. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo

from koboshi.domain.action import EMPTY_REPLY
from koboshi.domain.durations import duration
from koboshi.domain.ids import CallId, TurnId
from koboshi.domain.inbox import Words, yes_or_no
from koboshi.domain.notes import (
    BACKLOG,
    ENDED,
    MOVED_ON,
    RECOVERY,
    RETRY,
    WAITED,
    WAITED_MS,
    heading,
    moment,
)
from koboshi.domain.transcript import (
    Author,
    HeardMessage,
    HeardNote,
    Message,
    Note,
    Question,
    Reply,
    Result,
    Step,
    Summary,
)
from koboshi.ports.model import Request, ToolSpec
from koboshi.ports.store import Loaded

STEPS_MAX = 1_000

# Notes about the work itself. They ask for nothing; any other note is a report.
_ABOUT_THE_WORK = frozenset({RECOVERY, ENDED, RETRY, MOVED_ON, EMPTY_REPLY, WAITED, BACKLOG})
# Notes beside something with a time, or with a time in their words.
_UNDATED = _ABOUT_THE_WORK - {RECOVERY}


def build_request(
    loaded: Loaded,
    turn_id: TurnId,
    system: str,
    tools: Sequence[ToolSpec],
    zone: tzinfo = UTC,
    steps_max: int = STEPS_MAX,
) -> Request:
    """The request that the turn makes next.

    It shows the summary, if there is one, and what that does not cover: this turn, and the newest
    earlier turns, each whole or not at all, as long as there are at most `steps_max` steps. Every
    result stands right behind the reply that made the call. Of each turn's recovery notes only the
    newest is shown; questions are not shown: the model's own are calls with results, and the
    gateway's are between it and the person.

    Times come from the stored steps alone, and the system prompt has none: the same transcript
    makes the same request at any hour, so that providers can reuse their cache.

    Raises ValueError if the turn has nothing to respond to: a blank turn never reaches the model.
    """
    steps = _shown(loaded.steps)
    if not any(_asks_for_something(step) for step in steps):
        raise ValueError(f"turn {turn_id} holds no message, report or result to respond to")
    covers = covered_by(loaded)
    steps = [step for step in steps if step.seq > covers or not is_work(step)]
    uncovered = [step for step in loaded.context if step.seq > covers]
    context = _newest_turns([_shown(turn) for turn in by_turn(uncovered)], steps_max - len(steps))
    summary = () if loaded.summary is None else (loaded.summary,)
    return Request(
        session_id=loaded.session.session_id,
        turn_id=turn_id,
        system=system,
        steps=(*summary, *(_heard(step, zone) for step in (*context, *steps))),
        tools=tuple(tools),
    )


def covered_by(loaded: Loaded) -> int:
    """The number of the last step that the summary stands for; 0 if there is none."""
    summary = loaded.summary
    return summary.body.covers if summary and isinstance(summary.body, Summary) else 0


def is_work(step: Step) -> bool:
    """Whether the model made it: only such steps of its own turn are covered by a summary."""
    return isinstance(step.body, Reply | Result)


def by_turn(steps: Iterable[Step]) -> list[list[Step]]:
    """The steps of each turn, in order."""
    turns: dict[TurnId, list[Step]] = {}
    for step in steps:
        turns.setdefault(step.turn_id, []).append(step)
    return list(turns.values())


def _newest_turns(turns: Sequence[Sequence[Step]], room: int) -> list[Step]:
    """The steps of the newest turns that fit into `room` without a gap between them."""
    first = len(turns)
    while first and len(turns[first - 1]) <= room:
        first -= 1
        room -= len(turns[first])
    return [step for turn in turns[first:] for step in turn]


def _shown(steps: Sequence[Step]) -> list[Step]:
    """The steps of one turn that the model sees, in their order. Of the summaries it sees only the
    newest, which is not part of its turn."""
    hidden = _older_recovery_notes(steps) | _yes_or_no_to_gateway(steps)
    kept = [
        step
        for place, step in enumerate(steps)
        if place not in hidden
        and not isinstance(step.body, Question | Summary)
        and not _is_blank(step)
    ]
    return _with_results_in_place(kept)


def _older_recovery_notes(steps: Sequence[Step]) -> set[int]:
    places = [
        place
        for place, step in enumerate(steps)
        if isinstance(step.body, Note) and step.body.cause == RECOVERY
    ]
    return set(places[:-1])


def _yes_or_no_to_gateway(steps: Sequence[Step]) -> set[int]:
    """Where the person answers a question of the gateway: the first message behind it, before any
    more work, if that is a literal yes or no."""
    found: set[int] = set()
    is_open = False
    for place, step in enumerate(steps):
        match step.body:
            case Question(author=author):
                is_open = author is Author.GATEWAY
            case Message(text=text, sent_ms=sent_ms):
                if is_open and yes_or_no(Words(text=text, sent_ms=sent_ms)) is not None:
                    found.add(place)
                is_open = False
            case Reply() | Result():
                is_open = False
            case _:
                pass
    return found


def _is_blank(step: Step) -> bool:
    return isinstance(step.body, Message) and not step.body.words


def _with_results_in_place(steps: Sequence[Step]) -> list[Step]:
    """Put each result behind its reply, in the order of the calls: a recovery note may stand
    between them, and parallel calls end in any order."""
    results: dict[CallId, Step] = {
        step.body.call_id: step for step in steps if isinstance(step.body, Result)
    }
    placed: list[Step] = []
    for step in steps:
        if isinstance(step.body, Result):
            continue
        placed.append(step)
        if isinstance(step.body, Reply):
            calls = [call.call_id for call in step.body.calls]
            placed.extend(results[call_id] for call_id in calls if call_id in results)
    return placed


def _asks_for_something(step: Step) -> bool:
    match step.body:
        case Message() | Result():
            return True
        case Note(cause=cause):
            return cause not in _ABOUT_THE_WORK
        case _:
            return False


def _heard(step: Step, zone: tzinfo) -> Step:
    """The step with its time, where the model needs it."""
    match step.body:
        case Message() as message:
            return replace(step, body=_headed(message, step.at_ms, zone))
        case Note(cause=cause, text=text) if cause not in _UNDATED:
            at = moment(step.at_ms, zone)
            return replace(step, body=HeardNote(cause=cause, text=text, moment=at))
        case _:
            return step


def _headed(message: Message, at_ms: int, zone: tzinfo) -> HeardMessage:
    """The message below its heading. The platform's time of sending is believed within limits:
    nothing is sent after its arrival."""
    sent_ms = message.sent_ms if 0 < message.sent_ms <= at_ms else at_ms
    waited_ms = at_ms - sent_ms
    return HeardMessage(
        text=message.text,
        sender=message.sender,
        entry_id=message.entry_id,
        sent_ms=message.sent_ms,
        files=message.files,
        name=message.name,
        heading=heading(
            moment(sent_ms, zone),
            age=duration(waited_ms) if waited_ms > WAITED_MS else "",
            sender=message.sender,
            name=message.name,
        ),
    )
