"""Schedules as single effects: their moves, and what the end of a turn means to them."""

from dataclasses import dataclass

from koboshi.domain import notes, phrases, time_words
from koboshi.domain.due import first_after
from koboshi.domain.ids import ScheduleId, SessionId, TurnId, shown
from koboshi.domain.occasion import FAILURES_MAX, retry_wait_ms
from koboshi.domain.schedule import Schedule, ScheduleEvent, ScheduleState
from koboshi.domain.transcript import Note
from koboshi.domain.turn import TurnState
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import number, text
from koboshi.kernel.enqueue import enqueue_delivery_once
from koboshi.kernel.moves import move_from
from koboshi.kernel.rows import TurnRow
from koboshi.kernel.timed_rows import read_schedule, schedule_of
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.wakeups import JOURNAL, SCHEDULES

NOTED_MAX = 5
NOTED_MS_MAX = 24 * 3_600_000


def move_schedule(
    tx: Transaction,
    context: VerbContext,
    schedule: Schedule,
    event: ScheduleEvent,
    *,
    due_ms: int | None,
    reason: str | None = None,
    again_of: int | None = None,
    tries: int = 0,
) -> None:
    """Move a schedule, with its next due time. That it is due again is never written elsewhere than
    in the transaction that decided about the time before."""
    move_from(
        tx,
        "schedule_move",
        event,
        schedule.state,
        schedule_id=schedule.schedule_id,
        reason=reason,
        due_ms=due_ms,
        again_of=again_of,
        tries=tries,
        zone_rules=context.zone_rules,
        now=tx.now_ms,
    )
    tx.hints.update((SCHEDULES, JOURNAL))


def next_due(context: VerbContext, schedule: Schedule, after_ms: int) -> int | None:
    """The first due time of its order after a moment."""
    order = schedule.order
    zone = context.zone_or_own(order.zone)
    return first_after(order.kind, order.expression, zone, after_ms, schedule.created_ms)


def occasion_in(tx: Reading, turn_id: TurnId) -> tuple[Schedule, int, str] | None:
    """The schedule that opened a turn, the due time, and the key of its entry."""
    row = tx.row("occasion_of_turn", turn_id=turn_id)
    if row is None:
        return None
    schedule = read_schedule(tx, ScheduleId(number(row[0])))
    return None if schedule is None else (schedule, number(row[1]), text(row[2]))


@dataclass(frozen=True, slots=True)
class TakenAway:
    """An occasion that waited, and that a cut dropped."""

    schedule: Schedule
    entry_id: int
    due_ms: int


def waiting_occasions(tx: Reading, session_id: SessionId) -> tuple[TakenAway, ...]:
    """The occasions that wait in a session."""
    rows = tx.rows("occasions_waiting", session_id=session_id)
    return tuple(TakenAway(schedule_of(row), number(row[-2]), number(row[-1])) for row in rows)


def words_of_waiting(tx: Reading, context: VerbContext, schedule: Schedule) -> str:
    """What a person is told of the occasions that wait, and that go with their order; empty if
    none does."""
    places = {schedule.session_id, schedule.own_session or schedule.session_id}
    waits = [each for place in places for each in waiting_occasions(tx, place)]
    times = [each.due_ms for each in waits if each.schedule.schedule_id == schedule.schedule_id]
    if not times:
        return ""
    zone = context.zone_or_own(schedule.order.zone)
    return f" {time_words.goes_with_its_order(schedule, min(times), len(times), tx.now_ms, zone)}"


def is_failing(tx: Reading, turn_id: TurnId) -> bool:
    """Whether the turn is of a schedule that failed the time before, so that it is known."""
    found = occasion_in(tx, turn_id)
    return found is not None and found[0].failures > 0


def settle_occasion(tx: Transaction, context: VerbContext, turn: TurnRow) -> None:
    """Count how the turn of an occasion ended. Only one that failed counts as failed."""
    found = occasion_in(tx, turn.turn_id)
    if found is None:
        return
    schedule, due_ms, key = found
    if turn.state is TurnState.FAILED:
        _failed(tx, context, turn, schedule, due_ms, key)
    elif turn.state in (TurnState.ANSWERED, TurnState.DONE) and schedule.failures:
        tx.change("schedule_counted", schedule_id=schedule.schedule_id, failures=0, alerted_ms=None)
        words = time_words.works_again(schedule, schedule.failures)
        cause = f"works-again:{turn.turn_id}"
        enqueue_delivery_once(tx, schedule.session_id, cause, words, anchor="")


def _failed(
    tx: Transaction,
    context: VerbContext,
    turn: TurnRow,
    schedule: Schedule,
    due_ms: int,
    key: str,
) -> None:
    failures = schedule.failures + 1
    tx.change(
        "schedule_counted",
        schedule_id=schedule.schedule_id,
        failures=failures,
        alerted_ms=schedule.alerted_ms or tx.now_ms,
    )
    if schedule.state not in (ScheduleState.ARMED, ScheduleState.SPENT):
        return
    if failures >= FAILURES_MAX:
        why = f"it failed {failures} times in a row: {phrases.failure(turn.reason or 'unknown')}"
        move_schedule(tx, context, schedule, ScheduleEvent.DISABLED, due_ms=None, reason=why)
        words = time_words.disabled(schedule, failures)
        enqueue_delivery_once(tx, schedule.session_id, f"disabled:{turn.turn_id}", words, anchor="")
        return
    _, _, tried = key.partition(".")
    has_reached = tx.row("turn_reached_model", **turn.span) is not None
    if has_reached or not tried.isdecimal():
        return
    wait_ms = retry_wait_ms(int(tried), tx.now_ms, schedule.due_ms)
    if wait_ms is not None:
        again_ms = tx.now_ms + wait_ms
        event = ScheduleEvent.TRIED_AGAIN
        tries = int(tried) + 1
        move_schedule(tx, context, schedule, event, due_ms=again_ms, again_of=due_ms, tries=tries)


def note_of_reminders(tx: Reading, context: VerbContext, session_id: SessionId) -> Note | None:
    """What the model is told, before the words of a person, of what the chat heard without it since
    its last turn there. None if there was nothing."""
    place = {"session_id": session_id, "since_ms": tx.now_ms - NOTED_MS_MAX}
    if tx.row("reminders_may_be_told", **place) is None:
        return None
    told = []
    for schedule_id, name, due_ms, zone in tx.rows("reminders_told", **place, limit=NOTED_MAX):
        own = context.zone_or_own(text(zone))
        at = time_words.clock(number(due_ms), tx.now_ms, own)
        told.append((shown("schedule", ScheduleId(number(schedule_id))), text(name), at))
    if not told:
        return None
    return Note(cause=notes.TIMED, text=time_words.reminders_told(told))
