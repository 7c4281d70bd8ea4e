"""The verbs of schedules: fire what is due, reckon again, grant wishes, show."""

from dataclasses import replace

from koboshi.domain import time_words
from koboshi.domain.due import NotATime
from koboshi.domain.ids import ChannelName, ScheduleId, SessionId, TurnId
from koboshi.domain.ordering import read_order
from koboshi.domain.outbox import Delivery
from koboshi.domain.wish import MakeSchedule, TimedWish, WishOutcome, WishStatus, why_too_often
from koboshi.domain.worker import Breaker
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_number, number, numbers, text
from koboshi.kernel.enqueue import enqueue_delivery_once
from koboshi.kernel.facts import breaker_now, least_speaker, role_of_turn
from koboshi.kernel.filing import FILING, channels_known, fire_one
from koboshi.kernel.keys import lock_found, lock_session, of_sessions, rows_locked
from koboshi.kernel.occasions import next_due
from koboshi.kernel.own_threads import thread_begun_by
from koboshi.kernel.owners import owner_chats
from koboshi.kernel.rows import read_session, read_turn, turn_of
from koboshi.kernel.timed_rows import SCHEDULE_COLUMNS, schedule_of
from koboshi.kernel.timed_views import schedule_view
from koboshi.kernel.transaction import Readers, Reading, Transaction, Writer
from koboshi.kernel.wishes import grant, wisher_in, zone_of_person
from koboshi.ports.schedules import Fired, ScheduleView

HOUR_MS = 3_600_000


class ScheduleVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

    async def fire(self, limit: int) -> Fired:
        return await self._writer.write(
            "schedules.fire", lambda tx: _fire(tx, self._context, limit)
        )

    async def due_in_ms(self) -> int | None:
        def look(tx: Reading) -> int | None:
            if tx.row("schedules_to_reckon", limit=1) is not None:
                return 0
            known = channels_known(self._context)
            due_ms = first_number(tx.row("schedules_next_due", channels=known))
            return None if due_ms is None else max(0, due_ms - tx.now_ms)

        return await self._readers.read(look)

    async def begin(self, rules: str | None = None) -> None:
        rules = self._context.zone_rules if rules is None else rules
        await self._writer.write(
            "schedules.begin", lambda tx: tx.change("schedules_outdated", zone_rules=rules)
        )

    async def reckon(self, limit: int) -> int:
        if await self._readers.read(lambda tx: tx.row("schedules_to_reckon", limit=1)) is None:
            return 0
        return await self._writer.write(
            "schedules.reckon", lambda tx: _reckon(tx, self._context, limit)
        )

    async def wish(
        self,
        session_id: SessionId,
        person: str,
        wish: TimedWish,
        by: str,
        *,
        is_operator: bool = False,
        turn_id: TurnId | None = None,
    ) -> WishOutcome:
        def operation(tx: Transaction) -> WishOutcome:
            context = self._context
            session = read_session(tx, session_id)
            channel = session.route.channel
            turn = None if turn_id is None else read_turn(tx, turn_id)
            who = person if turn is None else least_speaker(tx, context, channel, turn)
            wisher = wisher_in(tx, context, channel, who, is_operator=is_operator)
            if turn is not None:  # the agent wishes for all whose words the turn holds
                role = role_of_turn(tx, context, channel, turn.turn_id)
                wisher = replace(wisher, role=role)
            outcome = grant(tx, context, session, wisher, wish, by, FILING)
            if turn_id is not None and outcome.status is WishStatus.DONE:
                enqueue_delivery_once(tx, session_id, f"wish:{by}", outcome.words, anchor="")
            return outcome

        return await self._writer.write("schedules.wish", operation, of_sessions(session_id))

    async def order(self, session_id: SessionId, text: str, by: str) -> WishOutcome:
        def operation(tx: Transaction) -> WishOutcome:
            context = self._context
            session = read_session(tx, session_id)
            channel = session.route.channel
            newest = tx.row("turn_newest", session_id=session_id, limit=1)
            person = session.person if newest is None else turn_of(newest).person
            wisher = wisher_in(tx, context, channel, person, is_operator=True)
            zone = zone_of_person(tx, channel, person)
            try:
                order = read_order(text, tx.now_ms, context.zone_or_own(zone), zone)
            except NotATime as error:
                return WishOutcome(status=WishStatus.REFUSED, words=str(error))
            refusal = why_too_often(order)
            if refusal is not None:
                return WishOutcome(status=WishStatus.REFUSED, words=refusal)
            return grant(tx, context, session, wisher, MakeSchedule(order=order), by, FILING)

        return await self._writer.write("schedules.order", operation, of_sessions(session_id))

    async def views(
        self, session_id: SessionId | None = None, *, limit: int, occasions: int = 0
    ) -> tuple[ScheduleView, ...]:
        def look(tx: Reading) -> tuple[ScheduleView, ...]:
            if session_id is None:
                rows = tx.rows("schedules_all", limit=limit)
            else:
                rows = tx.rows("schedules_of_session", session_id=session_id, limit=limit)
            ids = [ScheduleId(number(row[0])) for row in rows]
            found = (schedule_view(tx, self._context, each, occasions) for each in ids)
            return tuple(each for each in found if each is not None)

        return await self._readers.read(look)

    async def view(self, schedule_id: ScheduleId, *, occasions: int) -> ScheduleView | None:
        return await self._readers.read(
            lambda tx: schedule_view(tx, self._context, schedule_id, occasions)
        )

    async def thread_begun_by(self, delivery: Delivery) -> str:
        return await self._readers.read(lambda tx: thread_begun_by(tx, delivery))

    async def zone_of_turn(self, turn_id: TurnId) -> str:
        def look(tx: Reading) -> str:
            turn = read_turn(tx, turn_id)
            if turn is None:
                return ""
            channel = read_session(tx, turn.session_id).route.channel
            return zone_of_person(tx, channel, turn.person)

        return await self._readers.read(look)

    async def old(self, after: int, before_ms: int, limit: int) -> tuple[ScheduleId, ...]:
        place = {"after": after, "before_ms": before_ms, "limit": limit}
        rows = await self._readers.read(lambda tx: tx.rows("schedules_with_old", **place))
        return tuple(map(ScheduleId, numbers(rows)))

    async def forget(self, schedule_id: ScheduleId, before_ms: int) -> int:
        def operation(tx: Transaction) -> int:
            lock_found(tx, "schedule_key", schedule_id=schedule_id)
            place = {"schedule_id": schedule_id, "before_ms": before_ms}
            return tx.change("occasions_forget", **place)

        return await self._writer.write("schedules.forget", operation)


def _fire(tx: Transaction, context: VerbContext, limit: int) -> Fired:
    if breaker_now(tx, context)[0] is Breaker.OPEN:
        return Fired(decided=(), stood=True)
    lines: dict[SessionId, list[str]] = {}
    decided: list[tuple[ScheduleId, str]] = []

    def tell_owners(cause: str, words: str) -> None:
        for chat in owner_chats(tx, context):
            lock_session(tx, chat)
            enqueue_delivery_once(tx, chat, cause, words, anchor="")

    known = channels_known(context)
    rows = rows_locked(
        tx, "schedules_due", SCHEDULE_COLUMNS, now=tx.now_ms, channels=known, limit=limit
    )
    for row in rows:
        channel = ChannelName(text(row[SCHEDULE_COLUMNS + 1]))
        done = fire_one(tx, context, schedule_of(row), channel, tell_owners)
        decided.append((done.schedule.schedule_id, done.rule))
        if done.line:
            lines.setdefault(done.schedule.session_id, []).append(done.line)
    for session_id, missed in lines.items():
        # One line for a chat, a boot and an hour, however much was missed.
        cause = f"missed:{context.worker_id}:{tx.now_ms // HOUR_MS}"
        enqueue_delivery_once(tx, session_id, cause, time_words.missed(missed), anchor="")
    return Fired(decided=tuple(decided))


def _reckon(tx: Transaction, context: VerbContext, limit: int) -> int:
    rows = rows_locked(tx, "schedules_to_reckon", SCHEDULE_COLUMNS, limit=limit)
    for row in rows:
        schedule = schedule_of(row)
        assert schedule.due_ms is not None
        # What has come stays due: it is judged by `fire`, and never skipped.
        is_due = schedule.due_ms <= tx.now_ms or schedule.again_of is not None
        due_ms = schedule.due_ms if is_due else next_due(context, schedule, tx.now_ms)
        tx.change(
            "schedule_reckoned",
            schedule_id=schedule.schedule_id,
            # The moment of an `at` that other rules put into the past has come.
            due_ms=tx.now_ms if due_ms is None else due_ms,
            zone_rules=context.zone_rules,
        )
    return len(rows)
