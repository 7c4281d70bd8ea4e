"""The thread of a schedule begins, or does not: both are stored with the end of the delivery that
was to begin it. A platform that makes threads by a call tells of them, too.

Theory of operation. The delivery is the intent; it is owed once for a schedule, for all time.

* It arrived: the session of the schedule moves into the thread, in the transaction that says so.
* It did not, or nothing is known: the schedule keeps the reason, works in the conversation, and the
  chat is told once. No second delivery is ever owed, so there is no second thread.
* The platform tells of the thread, before or after: the session moves there, whatever was known.
"""

from koboshi.domain import time_words
from koboshi.domain.ids import ScheduleId, SessionId
from koboshi.domain.outbox import Delivery, DeliveryState, Settle
from koboshi.domain.schedule import Schedule
from koboshi.domain.threads import are_same, schedule_named
from koboshi.kernel.asides import cause_of_thread
from koboshi.kernel.decode import first_text
from koboshi.kernel.enqueue import enqueue_delivery_once
from koboshi.kernel.keys import lock_session
from koboshi.kernel.rows import read_session
from koboshi.kernel.timed_rows import read_schedule
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.channel import Inbound


def settle_beginning(tx: Transaction, delivery: Delivery, ending: Settle) -> None:
    """A delivery has ended that may be the beginning of a thread."""
    if not delivery.begins_thread:
        return
    schedule = _schedule_of(tx, delivery)
    if schedule is None or thread_of(tx, schedule):
        return
    if ending.state is DeliveryState.DELIVERED:
        if ending.platform_id:
            _move_into(tx, delivery.session_id, ending.platform_id)
        return
    why = ending.reason or "it was given up"
    tx.change("schedule_without_thread", schedule_id=schedule.schedule_id, why=why)
    cause, words = f"no-{cause_of_thread(schedule)}", time_words.no_thread(schedule, why)
    enqueue_delivery_once(tx, delivery.session_id, cause, words, anchor="")


def hear_of_thread(tx: Transaction, inbound: Inbound) -> None:
    """The platform may tell of a thread that we have made. Its name says for which schedule."""
    number = schedule_named(inbound.begins)
    schedule = None if number is None else read_schedule(tx, number)
    if schedule is None or schedule.own_session is None:
        return
    own_id, place = schedule.own_session, inbound.route
    lock_session(tx, own_id)
    own = read_session(tx, own_id).route
    is_there = (own.channel, own.chat) == (place.channel, place.chat)
    if not is_there or not place.thread or thread_of(tx, schedule):
        return
    begun = tx.row("thread_begun_with", session_id=own_id, cause=cause_of_thread(schedule))
    if begun is None or not are_same(first_text(begun) or "", inbound.begins):
        return
    _move_into(tx, own_id, place.thread)
    if schedule.thread_why is not None:
        tx.change("schedule_without_thread", schedule_id=schedule.schedule_id, why=None)
        cause, words = f"late-{cause_of_thread(schedule)}", time_words.thread_after_all(schedule)
        enqueue_delivery_once(tx, own_id, cause, words, anchor="")


def thread_of(tx: Reading, schedule: Schedule) -> str:
    """The thread that the schedule works in; empty if it has none."""
    if schedule.own_session is None:
        return ""
    own = read_session(tx, schedule.own_session).route.thread
    here = read_session(tx, schedule.session_id).route.thread
    return "" if own == here else own


def thread_begun_by(tx: Reading, delivery: Delivery) -> str:
    """The thread that a delivery has begun, as far as is known; empty if it is not."""
    schedule = _schedule_of(tx, delivery)
    return "" if schedule is None else thread_of(tx, schedule)


def _schedule_of(tx: Reading, delivery: Delivery) -> Schedule | None:
    """The schedule whose thread it begins, if that still works in the session."""
    number = delivery.cause.rpartition(":")[2]
    schedule = read_schedule(tx, ScheduleId(int(number))) if number.isdecimal() else None
    is_its = schedule is not None and schedule.own_session == delivery.session_id
    return schedule if is_its else None


def _move_into(tx: Transaction, session_id: SessionId, thread: str) -> None:
    tx.change("session_becomes_thread", session_id=session_id, thread=thread, now=tx.now_ms)
