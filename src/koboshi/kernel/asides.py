"""Where a schedule or a child works beside the conversation: a session of its own on its route.

What it says arrives in the chat like everything else. A person's message never waits behind it, and
goes to the conversation, unless it presses a button of it or replies to what it said.
"""

from koboshi.domain.ids import ScheduleId, SessionId
from koboshi.domain.inbox import Words
from koboshi.domain.schedule import Schedule, WorkPlace
from koboshi.domain.session import Session
from koboshi.domain.threads import first_words
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_number, numbers
from koboshi.kernel.enqueue import enqueue_delivery_once
from koboshi.kernel.rows import TurnRow, read_open_turn, read_session, session_of
from koboshi.kernel.timed_rows import read_schedule
from koboshi.kernel.transaction import Reading, Transaction


def place_of(tx: Transaction, context: VerbContext, schedule: Schedule) -> Session:
    """The session in which an occasion of the schedule is worked on. It is made when first needed.
    Where no thread can be had, a thread is the conversation."""
    here = read_session(tx, schedule.session_id)
    place = schedule.order.place
    is_thread = place is WorkPlace.THREAD and _has_threads(context, here, schedule)
    if place is not WorkPlace.FRESH and not is_thread:
        return here
    own = _own_place(tx, here, schedule)
    if is_thread and own.route.thread == here.route.thread:
        # Once for all time: a repeat would be a second thread.
        words = first_words(schedule.order.name, schedule.shown)
        enqueue_delivery_once(tx, own.session_id, cause_of_thread(schedule), words, anchor="")
    return own


def cause_of_thread(schedule: Schedule) -> str:
    """The cause of the delivery that a thread of the schedule begins with."""
    return f"thread:{schedule.schedule_id}"


def _has_threads(context: VerbContext, here: Session, schedule: Schedule) -> bool:
    world, route = context.world, here.route
    if route.channel not in world.threaded or schedule.thread_why is not None:
        return False
    return not route.thread or route.channel in world.topical


def _own_place(tx: Transaction, here: Session, schedule: Schedule) -> Session:
    if schedule.own_session is not None:
        own = read_session(tx, schedule.own_session)
        if (own.route.channel, own.route.chat) == (here.route.channel, here.route.chat):
            return own
    own = _aside(tx, here, schedule.shown)
    place = {"schedule_id": schedule.schedule_id, "own_session": own.session_id}
    tx.change("schedule_works_in", **place)
    return own


def _aside(tx: Transaction, here: Session, name: str) -> Session:
    route = here.route
    place = {"channel": route.channel, "chat": route.chat, "thread": route.thread, "aside": name}
    row = tx.row("session_aside", **place)
    if row is None:
        tx.change("session_aside_insert", session_id=here.session_id, aside=name, now=tx.now_ms)
        row = tx.row("session_aside", **place)
    assert row is not None
    return session_of(row)


def session_meant(tx: Reading, here: Session, words: Words) -> Session:
    """The session that words in a conversation are for: that of a schedule beside it, if they press
    one of its buttons or reply to what it said; else the conversation. A child hears a reply only
    while it waits for one."""
    route = here.route
    found: int | None = None
    if words.question is not None:
        found = first_number(tx.row("step_session", seq=words.question))
    elif words.replies_to:
        place = {"channel": route.channel, "chat": route.chat}
        found = first_number(tx.row("aside_that_said", **place, platform_id=words.replies_to))
    if found is None:
        return here
    there = read_session(tx, SessionId(found))
    is_beside = bool(there.aside) and there.route == route
    if is_beside and there.is_child and words.question is None:
        turn = read_open_turn(tx, there.session_id)
        is_beside = turn is not None and turn.question_seq is not None
    return there if is_beside else here


def asides_at_work(tx: Reading, here: Session) -> tuple[Session, ...]:
    """Where schedules and children work beside a conversation now, or have what waits."""
    if here.aside:
        return ()
    rows = tx.rows("asides_at_work", session_id=here.session_id)
    return tuple(read_session(tx, SessionId(each)) for each in numbers(rows))


def schedules_at_work(tx: Reading, here: Session) -> tuple[Session, ...]:
    """Where schedules do. A cut of a conversation ends its children itself."""
    return tuple(each for each in asides_at_work(tx, here) if not each.is_child)


def names_at_work(tx: Reading, here: Session) -> tuple[str, ...]:
    """The schedules that work beside a conversation now, by name."""
    found = (
        read_schedule(tx, ScheduleId(int(each.aside.removeprefix("c"))))
        for each in schedules_at_work(tx, here)
    )
    return tuple(each.order.name for each in found if each is not None)


def turns_waiting_beside(tx: Reading, here: Session) -> tuple[TurnRow, ...]:
    """The turns beside a conversation that have asked something."""
    turns = (read_open_turn(tx, each.session_id) for each in asides_at_work(tx, here))
    return tuple(each for each in turns if each is not None and each.question_seq is not None)
