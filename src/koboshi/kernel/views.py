"""The views of the store. Each look is one consistent moment."""

from collections.abc import Sequence

from koboshi.domain.files import OutFile
from koboshi.domain.ids import (
    ChannelName,
    ChildId,
    DeliveryId,
    EntryId,
    GoalId,
    ProcessId,
    ScheduleId,
    SessionId,
    TurnId,
    WorkerId,
)
from koboshi.domain.memory import MemoryId
from koboshi.domain.process import Process
from koboshi.domain.route import Route
from koboshi.domain.transcript import Past
from koboshi.domain.worker import Worker
from koboshi.kernel import overview
from koboshi.kernel.agent_views import words_of
from koboshi.kernel.child_views import child_turn, family_of
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import file_of, first_number, first_text, number, text, texts
from koboshi.kernel.facts import (
    barred_in,
    breaker_now,
    facts_of,
    policy_of,
    stands_counted,
    verdict_over,
)
from koboshi.kernel.held_up import read_hold_up
from koboshi.kernel.journal_tally import tally_since
from koboshi.kernel.memory_rows import shown_words, story_of
from koboshi.kernel.minute_rows import minutes_since
from koboshi.kernel.node_rows import nodes_of
from koboshi.kernel.overview import (
    calls_of,
    deliveries_on,
    entries_on,
    entry_view,
    session_at,
    sessions_on,
    trace_of,
    turn_view,
    turns_on,
)
from koboshi.kernel.process_rows import process_of, read_process, watcher_of
from koboshi.kernel.rows import (
    entry_of,
    find_session,
    read_entry,
    read_question,
    read_session,
    read_turn,
    turn_of,
    worker_of,
)
from koboshi.kernel.timed_views import goal_view, schedule_view
from koboshi.kernel.transaction import Readers, Reading, Value
from koboshi.kernel.view_rows import delivery_view, event_of, journal_line
from koboshi.ports.memory import MemoryStory
from koboshi.ports.schedules import GoalView, ScheduleView
from koboshi.ports.tally import Tally
from koboshi.ports.views import (
    AgentWords,
    CallView,
    ChatView,
    DeliveryView,
    EntryView,
    Event,
    Explanation,
    JournalLine,
    MinuteView,
    Page,
    ProcessView,
    QuestionView,
    SessionView,
    Status,
    StepView,
    Trace,
    TurnView,
)


class ViewVerbs:
    def __init__(self, readers: Readers, context: VerbContext, engine: str) -> None:
        """`engine` is the version of the database, which the status shows."""
        self._readers = readers
        self._context = context
        self._engine = engine

    async def status(self) -> Status:
        def look(tx: Reading) -> Status:
            own_id = self._context.worker_id
            if own_id is None:
                newest = tx.row("worker_newest", limit=1)
            else:
                newest = tx.row("worker_by_id", worker_id=own_id)
            worker = None if newest is None else worker_of(newest)
            served = None
            if worker is not None:
                who, home = worker.worker_id, worker.home
                served = tx.row("worker_before", worker_id=who, home=home)
            gap = first_text(tx.row("gap_open"))
            return Status(
                worker=worker,
                previous=None if served is None else worker_of(served),
                turns={
                    text(state): number(count) for state, count in tx.rows("turns_alive_by_state")
                },
                stands=stands_counted(tx, self._context),
                inbox_waiting=tx.number("count_waiting"),
                outbox_unsettled=tx.number("count_unsettled"),
                sessions=tx.number("count_sessions"),
                sqlite=self._engine,
                breaker=breaker_now(tx, self._context)[0],
                outbox_held=tx.number("count_held"),
                gap=gap,
                turns_unheard=tx.number("count_unheard"),
                nodes=nodes_of(tx) if self._context.is_shared else (),
            )

        return await self._readers.read(look)

    async def sent_file(
        self, channel: ChannelName, chat: str, delivery_id: DeliveryId
    ) -> OutFile | None:
        place: dict[str, Value] = {"channel": channel, "chat": chat, "delivery_id": delivery_id}
        row = await self._readers.read(lambda tx: tx.row("delivery_file", **place))
        file = first_text(row)
        return None if file is None else file_of(file)

    async def turns_of(self, session_id: SessionId, limit: int) -> tuple[TurnView, ...]:
        def look(tx: Reading) -> tuple[TurnView, ...]:
            rows = tx.rows("turn_newest", session_id=session_id, limit=limit)
            return tuple(turn_view(tx, self._context, turn_of(row)) for row in rows)

        return await self._readers.read(look)

    async def session_of(self, route: Route) -> SessionId | None:
        session = await self._readers.read(lambda tx: find_session(tx, route))
        return None if session is None else session.session_id

    async def entry(self, entry_id: EntryId) -> EntryView | None:
        def look(tx: Reading) -> EntryView | None:
            stored = read_entry(tx, entry_id)
            return None if stored is None else entry_view(tx, self._context, stored)

        return await self._readers.read(look)

    async def entry_by_external_id(self, external_id: str) -> EntryView | None:
        def look(tx: Reading) -> EntryView | None:
            row = tx.row("view_entry_by_external_id", external_id=external_id)
            return None if row is None else entry_view(tx, self._context, entry_of(row))

        return await self._readers.read(look)

    async def delivery(self, delivery_id: DeliveryId) -> DeliveryView | None:
        row = await self._readers.read(lambda tx: tx.row("view_delivery", delivery_id=delivery_id))
        return None if row is None else delivery_view(row)

    async def explain(self, turn_id: TurnId) -> Explanation | None:
        return await self._readers.read(lambda tx: _explain(tx, self._context, turn_id))

    async def tally(self, worker_id: WorkerId, after: int | None) -> Tally:
        return await self._readers.read(lambda tx: tally_since(tx, worker_id, after))

    async def schedule(self, schedule_id: ScheduleId, occasions: int) -> ScheduleView | None:
        return await self._readers.read(
            lambda tx: schedule_view(tx, self._context, schedule_id, occasions)
        )

    async def child_turn(self, child_id: ChildId) -> TurnId | None:
        return await self._readers.read(lambda tx: child_turn(tx, child_id))

    async def goal(self, goal_id: GoalId) -> GoalView | None:
        return await self._readers.read(lambda tx: goal_view(tx, goal_id))

    async def memory(self, memory_id: MemoryId) -> MemoryStory | None:
        return await self._readers.read(lambda tx: story_of(tx, self._context.home, memory_id))

    async def trace(self, entry_id: EntryId) -> Trace | None:
        return await self._readers.read(lambda tx: trace_of(tx, self._context, entry_id))

    async def calls_of(self, turn_id: TurnId) -> tuple[CallView, ...]:
        return await self._readers.read(lambda tx: calls_of(tx, turn_id))

    async def sessions(self, page: Page) -> tuple[SessionView, ...]:
        return await self._readers.read(lambda tx: sessions_on(tx, self._context, page))

    async def session(self, session_id: SessionId) -> SessionView | None:
        return await self._readers.read(lambda tx: session_at(tx, self._context, session_id))

    async def turns(self, page: Page) -> tuple[TurnView, ...]:
        return await self._readers.read(lambda tx: turns_on(tx, self._context, page))

    async def entries(self, page: Page) -> tuple[EntryView, ...]:
        return await self._readers.read(lambda tx: entries_on(tx, self._context, page))

    async def deliveries(self, page: Page) -> tuple[DeliveryView, ...]:
        return await self._readers.read(lambda tx: deliveries_on(tx, page))

    async def workers(self, page: Page) -> tuple[Worker, ...]:
        return await self._readers.read(lambda tx: overview.workers_on(tx, page))

    async def journal(self, page: Page) -> tuple[JournalLine, ...]:
        return await self._readers.read(lambda tx: overview.journal_on(tx, page))

    async def turns_named(self, turn_ids: Sequence[TurnId]) -> tuple[TurnView, ...]:
        return await self._readers.read(
            lambda tx: overview.turns_named(tx, self._context, turn_ids)
        )

    async def turns_before(
        self, session_id: SessionId, *, before: int, limit: int
    ) -> tuple[TurnView, ...]:
        return await self._readers.read(
            lambda tx: overview.turns_before(tx, self._context, session_id, before, limit)
        )

    async def sessions_named(self, chat: str, limit: int) -> tuple[SessionView, ...]:
        return await self._readers.read(
            lambda tx: overview.sessions_named(tx, self._context, chat, limit)
        )

    async def chats(self, channel: ChannelName, limit: int) -> tuple[ChatView, ...]:
        return await self._readers.read(
            lambda tx: overview.chats_of(tx, self._context, channel, limit)
        )

    async def questions(self, limit: int) -> tuple[QuestionView, ...]:
        return await self._readers.read(
            lambda tx: overview.questions_open(tx, self._context, limit)
        )

    async def steps_of(self, turn_id: TurnId, limit: int) -> tuple[StepView, ...]:
        return await self._readers.read(lambda tx: overview.steps_of(tx, turn_id, limit))

    async def agent_words(self, turn_id: TurnId, limit: int) -> tuple[AgentWords, ...]:
        return await self._readers.read(lambda tx: words_of(tx, turn_id, limit))

    async def now_ms(self) -> int:
        return await self._readers.read(lambda tx: tx.now_ms)

    async def minutes(self, since_ms: int) -> tuple[MinuteView, ...]:
        return await self._readers.read(lambda tx: minutes_since(tx, since_ms))

    async def processes(self, limit: int) -> tuple[ProcessView, ...]:
        def look(tx: Reading) -> tuple[ProcessView, ...]:
            rows = tx.rows("view_processes", limit=limit)
            return tuple(_process_view(tx, process_of(row)) for row in rows)

        return await self._readers.read(look)

    async def process(self, process_id: ProcessId) -> ProcessView | None:
        def look(tx: Reading) -> ProcessView | None:
            process = read_process(tx, process_id)
            return None if process is None else _process_view(tx, process)

        return await self._readers.read(look)

    async def reports_of(self, process_id: ProcessId) -> tuple[EntryView, ...]:
        first, behind = f"{process_id}:", f"{process_id};"

        def look(tx: Reading) -> tuple[EntryView, ...]:
            rows = tx.rows("view_reports_of", first=first, behind=behind)
            return tuple(entry_view(tx, self._context, entry_of(row)) for row in rows)

        return await self._readers.read(look)

    async def events(
        self, channel: ChannelName, chat: str, *, after: int, limit: int
    ) -> Sequence[Event]:
        rows = await self._readers.read(
            lambda tx: tx.rows("view_events", channel=channel, chat=chat, after=after, limit=limit)
        )
        return tuple(event_of(row) for row in rows)

    async def past(self, channel: ChannelName, chat: str, *, after: int, limit: int) -> Past | None:
        return await self._readers.read(
            lambda tx: overview.past_of(tx, channel, chat, after=after, limit=limit)
        )

    async def chats_touched(
        self, channel: ChannelName, *, after: int
    ) -> tuple[int, frozenset[str]]:
        def look(tx: Reading) -> tuple[int, frozenset[str]]:
            rows = tx.rows("view_chats_touched", channel=channel, after=after)
            return tx.number("view_newest_line"), frozenset(texts(rows))

        return await self._readers.read(look)

    async def place_before(self, channel: ChannelName, chat: str, *, lines: int) -> int:
        row = await self._readers.read(
            lambda tx: tx.row("view_place_before", channel=channel, chat=chat, lines=lines)
        )
        return first_number(row) or 0

    async def last_event(self, channel: ChannelName, chat: str) -> int:
        return await self._readers.read(
            lambda tx: tx.number("view_last_event", channel=channel, chat=chat)
        )


def _process_view(tx: Reading, process: Process) -> ProcessView:
    rows = tx.rows("watchers_of_process", process_id=process.process_id)
    return ProcessView(
        process=process,
        route=read_session(tx, process.session_id).route,
        watchers=tuple(watcher_of(row) for row in rows),
    )


def _explain(tx: Reading, context: VerbContext, turn_id: TurnId) -> Explanation | None:
    turn = read_turn(tx, turn_id)
    if turn is None:
        return None
    facts = why = None
    barred: tuple[str, ...] = ()
    if turn.closed_ms is None:
        session = read_session(tx, turn.session_id)
        barred = barred_in(tx, context, session.route.channel, turn)
        facts = facts_of(tx, context, turn, session)
        why = verdict_over(facts, policy_of(context, session))
    place = {"session_id": turn.session_id, "turn_id": turn_id}
    entries = tx.rows("view_entries_of_turn", turn_id=turn_id)
    return Explanation(
        turn=turn_view(tx, context, turn),
        facts=facts,
        why=why,
        lines=tuple(journal_line(row) for row in tx.rows("view_journal_of_turn", **place)),
        entries=tuple(entry_view(tx, context, entry_of(row)) for row in entries),
        deliveries=tuple(delivery_view(row) for row in tx.rows("view_deliveries_of_turn", **place)),
        question=None if turn.question_seq is None else read_question(tx, turn.question_seq).text,
        held_up=read_hold_up(tx, context, turn),
        barred=barred,
        family=family_of(tx, turn),
        memory=shown_words(tx, turn_id),
    )
