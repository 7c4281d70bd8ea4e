"""Time puts something into the inbox: an occasion of a schedule, a step of a goal.

Theory of operation. What wakes a session is a row of the inbox with a unique key. The row, what
became of the due time, and the next due time are one transaction. So at every moment:

* A due time is decided or it is not. Before the commit nothing has happened, and the next look
  decides anew, perhaps late. After it, the key of the row forbids a second one.
* The next due time is the first one after the moment of the decision, and is stored with it. A
  process that dies in between leaves neither.
* An `at` is spent in the commit of its firing: never twice, never lost.
* From here on it is a turn like any other. Recovery, approval and delivery know nothing of it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from koboshi.domain import time_words
from koboshi.domain.due import Passed, passed, period_ms
from koboshi.domain.ids import ChannelName, EntryId
from koboshi.domain.inbox import Drop, Entry, EntryKind, Open, OpenTurn, Words
from koboshi.domain.occasion import (
    Deed,
    OccasionDecision,
    OccasionFacts,
    allowed_late_ms,
    decide_occasion,
)
from koboshi.domain.schedule import (
    OccasionVerdict,
    Schedule,
    ScheduleEvent,
    ScheduleKind,
    Trigger,
    WorkPlace,
)
from koboshi.domain.session import Session
from koboshi.domain.wish import TimedWish
from koboshi.kernel.asides import place_of
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_number
from koboshi.kernel.facts import breaker_now
from koboshi.kernel.next_turn import admission_of, open_turn
from koboshi.kernel.occasions import TakenAway, move_schedule, next_due, waiting_occasions
from koboshi.kernel.record import NOT_STORED, drop_entry, store_entry
from koboshi.kernel.reminding import tell_plainly
from koboshi.kernel.retry import drop_by_hand
from koboshi.kernel.rows import read_entry, read_open_turn, read_session
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.kernel.wishes import Filing, grant, wisher_in
from koboshi.ports.wakeups import JOURNAL


@dataclass(frozen=True, slots=True, kw_only=True)
class DueOccasion:
    """A due time that is decided about."""

    schedule: Schedule
    due_ms: int
    others: int = 0
    first_ms: int = 0
    """The oldest of the others; they are told in its row."""
    key: str = ""
    """The second part of the key of its entry."""
    rule: str = ""
    """Why it is carried out without being late or not: run now, tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiredOne:
    """What one look has decided, for the log and for the line to the chat."""

    schedule: Schedule
    rule: str
    verdict: OccasionVerdict | None
    line: str = ""
    """What the chat is told of what was missed; empty if nothing was."""


def file_timed(tx: Transaction, context: VerbContext, session: Session, entry: Entry) -> int | None:
    """Store an entry of the gateway's own, and do with it what `admit()` says. Returns its id; None
    if its key is there already, and then nothing changes."""
    stored = store_entry(tx, context, entry)
    if stored is None:
        return None
    turn = read_open_turn(tx, session.session_id)
    as_open = None if turn is None else OpenTurn(turn_id=turn.turn_id, state=turn.state)
    match admission_of(tx, context, session, as_open, stored):
        case Open():
            open_turn(tx, context, session, stored)
        case Drop(reason=reason):
            drop_entry(tx, stored.entry_id, reason)
        case _:
            pass
    tx.hints.add(JOURNAL)
    return stored.entry_id


def fire_one(
    tx: Transaction,
    context: VerbContext,
    schedule: Schedule,
    channel: ChannelName,
    tell_owners: Callable[[str, str], None],
) -> FiredOne:
    """Decide about a schedule whose time has come, and do what was decided."""
    due = _due_of(tx, context, schedule)
    decision = decide_occasion(_facts(tx, context, due, channel))
    if decision.deed is Deed.STAND:
        return FiredOne(schedule=schedule, rule=decision.rule, verdict=None)
    if due.others:
        verdict, count = OccasionVerdict.MISSED, due.others
        _row(tx, schedule, due.first_ms, verdict=verdict, rule="newer-due", count=count)
    line = _line(context, tx.now_ms, due, decision)
    match decision.deed:
        case Deed.PAUSE:
            _row(tx, schedule, due.due_ms, verdict=OccasionVerdict.SKIPPED, rule=decision.rule)
            event, why = ScheduleEvent.PAUSED, decision.because
            move_schedule(tx, context, schedule, event, due_ms=None, reason=why)
            words = time_words.paused_for_owners(schedule, channel)
            tell_owners(f"schedule-paused:{schedule.schedule_id}:{due.due_ms}", words)
            return FiredOne(schedule=schedule, rule=decision.rule, verdict=decision.verdict)
        case Deed.FIRE | Deed.ASK:
            file_occasion(tx, context, due, decision)
        case _:
            _pass_over(tx, due, decision)
    rearm(tx, context, schedule)
    return FiredOne(schedule=schedule, rule=decision.rule, verdict=decision.verdict, line=line)


def rearm(tx: Transaction, context: VerbContext, schedule: Schedule) -> None:
    """The next due time is the first one after now; without one the schedule is spent."""
    after_ms = next_due(context, schedule, tx.now_ms)
    event = ScheduleEvent.ENDED if after_ms is None else ScheduleEvent.FIRED
    move_schedule(tx, context, schedule, event, due_ms=after_ms)


def _due_of(tx: Reading, context: VerbContext, schedule: Schedule) -> DueOccasion:
    assert schedule.due_ms is not None
    first_ms = schedule.due_ms
    if schedule.again_of is not None:
        following = next_due(context, schedule, schedule.due_ms)
        if following is None or following > tx.now_ms:
            due_ms, key = schedule.again_of, f"{schedule.again_of}.{schedule.tries}"
            return DueOccasion(schedule=schedule, due_ms=due_ms, key=key, rule="tried-again")
        # Nothing is tried again once the next due time has come: that one is decided about.
        first_ms = following
    found = _passed(context, schedule, first_ms, tx.now_ms)
    place = {"schedule_id": schedule.schedule_id, "from_ms": first_ms, "until_ms": found.newest_ms}
    decided = first_number(tx.row("occasion_decided_before", **place)) if found.others else None
    if decided is not None:
        # The clock was ahead: those until then have their rows, and are not told as missed.
        first_ms = next_due(context, schedule, decided) or found.newest_ms
        found = _passed(context, schedule, first_ms, tx.now_ms)
    return DueOccasion(
        schedule=schedule,
        due_ms=found.newest_ms,
        others=found.others,
        first_ms=first_ms,
        key=f"{found.newest_ms}.1",
    )


def _passed(context: VerbContext, schedule: Schedule, first_ms: int, now_ms: int) -> Passed:
    order = schedule.order
    zone = context.zone_or_own(order.zone)
    return passed(order.kind, order.expression, zone, first_ms, now_ms)


def _facts(
    tx: Reading, context: VerbContext, due: DueOccasion, channel: ChannelName
) -> OccasionFacts:
    schedule, order = due.schedule, due.schedule.order
    zone = context.zone_or_own(order.zone)
    span_ms = period_ms(order.kind, order.expression, zone, due.due_ms)
    is_new = not due.rule
    key = {"schedule_id": schedule.schedule_id, "due_ms": due.due_ms}
    return OccasionFacts(
        kind=order.kind,
        late=order.late,
        late_ms_max=allowed_late_ms(order.kind, order.late_ms, span_ms),
        overlap=order.overlap,
        # One that is tried again was in time when it was tried first.
        late_ms=max(0, tx.now_ms - due.due_ms) if is_new else 0,
        is_person_allowed=context.allows(tx, channel, schedule.person),
        is_interactive=context.world.channels.get(channel, False),
        breaker=breaker_now(tx, context)[0],
        open_turn=_open_of(tx, schedule),
        is_decided=is_new and tx.row("occasion_decided", **key) is not None,
    )


def _open_of(tx: Reading, schedule: Schedule) -> str:
    """The turn of an occasion of the schedule that is still open, or its entry, by name."""
    row = tx.row("occasion_open", schedule_id=schedule.schedule_id)
    if row is None:
        return ""
    entry_id, turn_id = row
    return f"m{entry_id}" if turn_id is None else f"t{turn_id}"


def _pass_over(tx: Transaction, due: DueOccasion, decision: OccasionDecision) -> None:
    """Nothing is put into the inbox; the row says why, with what was still open. What was decided
    before has its row."""
    if decision.verdict is None:
        return
    is_open = decision.rule == "still-open"
    rule = f"{decision.rule}:{_open_of(tx, due.schedule)}" if is_open else decision.rule
    _row(tx, due.schedule, due.due_ms, verdict=decision.verdict, rule=rule)


def file_occasion(
    tx: Transaction, context: VerbContext, due: DueOccasion, decision: OccasionDecision
) -> None:
    """Put the occasion into the inbox, with the row that says what became of its due time."""
    schedule = due.schedule
    entry_id = _put(tx, context, due, decision)
    if entry_id is None:
        return
    verdict, rule = decision.verdict or OccasionVerdict.FIRED, due.rule or decision.rule
    key = {"schedule_id": schedule.schedule_id, "due_ms": due.due_ms}
    if tx.row("occasion_decided", **key) is not None:
        tx.change("occasion_again", **key, verdict=verdict, rule=rule, entry_id=entry_id)
    else:
        _row(tx, schedule, due.due_ms, verdict=verdict, rule=rule, entry_id=entry_id)


def _put(
    tx: Transaction, context: VerbContext, due: DueOccasion, decision: OccasionDecision
) -> int | None:
    """The entry of an occasion, in the session where its schedule works. Words of a reminder are
    told at once. None if the entry is there already."""
    session = place_of(tx, context, due.schedule)
    entry = occasion_entry(context, session, due, tx.now_ms, decision)
    if due.schedule.order.is_plain and decision.deed is Deed.FIRE:
        return tell_plainly(tx, context, entry)
    return file_timed(tx, context, session, entry)


def _row(
    tx: Transaction,
    schedule: Schedule,
    due_ms: int,
    *,
    verdict: OccasionVerdict,
    rule: str,
    count: int = 1,
    entry_id: int | None = None,
) -> None:
    tx.change(
        "occasion_insert",
        schedule_id=schedule.schedule_id,
        due_ms=due_ms,
        revision=schedule.revision,
        verdict=verdict,
        rule=rule,
        count=count,
        entry_id=entry_id,
        now=tx.now_ms,
    )


def occasion_entry(
    context: VerbContext,
    session: Session,
    due: DueOccasion,
    now_ms: int,
    decision: OccasionDecision,
) -> Entry:
    """The entry, in the name of the person who ordered it."""
    schedule, order = due.schedule, due.schedule.order
    zone = context.zone_or_own(order.zone)
    asks = decision.deed is Deed.ASK
    is_late = decision.verdict in (OccasionVerdict.LATE, OccasionVerdict.ASKED)
    trigger = Trigger(
        name=order.name,
        due_ms=due.due_ms,
        late_ms=now_ms - due.due_ms if is_late else 0,
        zone=order.zone,
        ask=time_words.ask_late(schedule, due.due_ms, now_ms, zone) if asks else "",
        yes=time_words.RUN_NOW,
        no=time_words.SKIP,
        command=order.command,
        is_fresh=order.place is WorkPlace.FRESH,
        is_quiet=order.quiet,
        is_plain=order.is_plain,
        revision=schedule.revision,
        note=time_words.occasion_note(
            schedule, due.due_ms, now_ms, zone, is_late=is_late, others=due.others
        ),
    )
    return Entry(
        entry_id=NOT_STORED,
        session_id=session.session_id,
        generation=session.generation,
        kind=EntryKind.OCCASION,
        source=schedule.source,
        external_id=due.key,
        sender=schedule.person,
        body=Words(text=order.prompt or order.command, sent_ms=now_ms, trigger=trigger),
    )


def _line(context: VerbContext, now_ms: int, due: DueOccasion, decision: OccasionDecision) -> str:
    """What the chat is told of what was missed; empty if nothing was."""
    schedule = due.schedule
    zone = context.zone_or_own(schedule.order.zone)
    if decision.rule == "already-run":
        return time_words.already_run_line(schedule, due.due_ms, now_ms, zone)
    is_missed = decision.verdict is OccasionVerdict.MISSED
    count = due.others + int(is_missed)
    if not count:
        return ""
    first_ms = due.due_ms if is_missed else due.first_ms
    return time_words.missed_line(schedule, first_ms, count, now_ms, zone)


def run_now(tx: Transaction, context: VerbContext, schedule: Schedule, by: str) -> bool:
    """A person asks for an occasion now. Its key is what asked for it, so a repeated wish makes no
    second one. The due time of the schedule stays as it is."""
    due = DueOccasion(schedule=schedule, due_ms=tx.now_ms, key=f"run:{by}", rule="run-now")
    decision = OccasionDecision(
        deed=Deed.FIRE, verdict=OccasionVerdict.FIRED, rule="run-now", because="a person asked"
    )
    entry_id = _put(tx, context, due, decision)
    if entry_id is None:
        return False
    own = {"schedule_id": schedule.schedule_id}
    due_ms = tx.now_ms
    while due_ms == schedule.due_ms or tx.row("occasion_decided", **own, due_ms=due_ms) is not None:
        due_ms += 1
    verdict = OccasionVerdict.FIRED
    _row(tx, schedule, due_ms, verdict=verdict, rule="run-now", entry_id=entry_id)
    return True


def offer_again(
    tx: Transaction, context: VerbContext, session: Session, taken: tuple[TakenAway, ...]
) -> None:
    """A reminder that waited was taken away by a cut: the person is asked whether to run it now."""
    for each in taken:
        schedule = each.schedule
        if schedule.order.kind is not ScheduleKind.AT:
            continue
        zone = context.zone_or_own(schedule.order.zone)
        key = f"offer:{each.entry_id}"
        due = DueOccasion(schedule=schedule, due_ms=each.due_ms, key=key, rule="taken-away")
        decision = OccasionDecision(
            deed=Deed.ASK, verdict=OccasionVerdict.ASKED, rule="taken-away", because=""
        )
        now = read_session(tx, session.session_id)
        entry = occasion_entry(context, now, due, tx.now_ms, decision)
        assert isinstance(entry.body, Words)
        assert entry.body.trigger is not None
        ask = time_words.ask_taken_away(schedule, each.due_ms, tx.now_ms, zone)
        body = replace(entry.body, trigger=replace(entry.body.trigger, ask=ask))
        entry_id = file_timed(tx, context, now, replace(entry, body=body))
        if entry_id is not None:
            key_of = {"schedule_id": schedule.schedule_id, "due_ms": each.due_ms}
            verdict = OccasionVerdict.ASKED
            tx.change(
                "occasion_again", **key_of, verdict=verdict, rule="taken-away", entry_id=entry_id
            )


def channels_known(context: VerbContext) -> str:
    """The channels of the configuration, for a query."""
    return json.dumps(sorted(context.world.channels))


FILING = Filing(run_now=run_now, file_timed=file_timed)


def grant_wish(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    person: str,
    wish: TimedWish,
    entry_id: EntryId,
) -> str:
    """What a person wants by a command, in its transaction. Returns what became of it, in words."""
    wisher = wisher_in(tx, context, session.route.channel, person, is_operator=False)
    by = f"entry:{entry_id}"
    return grant(tx, context, session, wisher, wish, by, FILING).words


def drop_waiting(tx: Transaction, context: VerbContext, entry_id: EntryId) -> bool:
    """Drop by hand what waits. A reminder that is taken away so is offered."""
    stored = read_entry(tx, entry_id)
    session_id = None if stored is None else stored.session_id
    waits = () if session_id is None else waiting_occasions(tx, session_id)
    if not drop_by_hand(tx, entry_id):
        return False
    taken = tuple(each for each in waits if each.entry_id == entry_id)
    if taken and session_id is not None:
        offer_again(tx, context, read_session(tx, session_id), taken)
    return True
