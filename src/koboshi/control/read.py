"""What can be seen of a home, without changing anything. It is answered from the views alone, so a
command can answer it without a gateway, and without what a gateway needs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace

from koboshi.control.activity import Activity
from koboshi.control.memory import memory_told
from koboshi.control.narrate import Narrator, fate_of, worded
from koboshi.control.neighbours import Neighbour
from koboshi.control.page_replies import MinuteList
from koboshi.control.replies import (
    AgentList,
    AgentStatus,
    ChatList,
    DeliveryExplained,
    Done,
    Explained,
    HeldCount,
    InboxEntry,
    InboxList,
    MessageExplained,
    NeighbourStatus,
    ProcessExplained,
    ProcessList,
    QuestionList,
    StatusReply,
    Troubles,
    TurnExplained,
    TurnStory,
    refusal,
)
from koboshi.control.requests import (
    CountHeld,
    Explain,
    GetInbox,
    GetMinutes,
    GetStatus,
    GetTroubles,
    ListActivity,
    ListAgents,
    ListChats,
    ListProcesses,
    ListQuestions,
    ListRows,
    Look,
    ShowRow,
    TellTurn,
    TraceMessage,
)
from koboshi.control.rows import RowViews, next_page, no_such_page, page_of
from koboshi.control.schedules import explained
from koboshi.domain.ids import (
    ChannelName,
    ChildId,
    DeliveryId,
    EntryId,
    ProcessId,
    SessionId,
    TurnId,
    WorkerId,
    parse_shown,
)
from koboshi.domain.memory import MemoryId
from koboshi.domain.outbox import UNSETTLED
from koboshi.domain.reasons import what_is_wrong
from koboshi.domain.standing import STANDS, why_now
from koboshi.domain.turn import CLOSED, OPEN, TurnState
from koboshi.domain.worker import Breaker
from koboshi.ports.views import DeliveryView, EntryView, Explanation, OwnerViews

ALIVE = tuple(state for state in TurnState if state not in CLOSED)
STEPS_MAX = 300
AGENT_WORDS_MAX = 100
QUESTIONS_MAX = 200
CHATS_MAX = 50
DAY_MS = 86_400_000
PROCESSES_MAX = 200
NO_LINES = 1 << 62
"""Behind every line of the journal that there can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequests:
    views: OwnerViews
    is_running: bool
    trouble: str | None = None
    """Why nothing can be written."""
    channels: Mapping[str, str | None]
    """The channels that have to be reached, and why one cannot be."""
    heard: Mapping[str, str] = field(default_factory=dict)
    """How well they hear their platforms, in words."""
    neighbours: tuple[Neighbour, ...] = ()
    """Whom the gateway asks for help."""
    restart: str | None = None
    """Why the gateway wants to be restarted."""
    agents: Callable[[], Awaitable[tuple[AgentStatus, ...]]] = lambda: _no_agents()

    async def answer(self, request: Look) -> Done:
        match request:
            case GetStatus():
                return await self._status()
            case GetTroubles():
                return await self._troubles()
            case Explain(what=what):
                return await _Explainer(self, what).explain()
            case TellTurn(kind=kind, what=what):
                return await self._tell(kind, what)
            case ListRows() | ShowRow() | TraceMessage():
                return await RowViews(views=self.views).answer(request)
            case ListActivity():
                seen = Activity(views=self.views, is_running=self.is_running)
                return await seen.answer(request)
            case GetInbox():
                return await self._inbox(request)
            case ListProcesses():
                return ProcessList(processes=await self.views.processes(PROCESSES_MAX))
            case ListAgents():
                return AgentList(agents=await self.agents())
            case GetMinutes():
                return await self._minutes()
            case CountHeld():
                tally = await self.views.tally(WorkerId(0), NO_LINES)
                return HeldCount(held=tally.held, ambiguous=tally.ambiguous)
            case ListQuestions():
                return QuestionList(questions=await self.views.questions(QUESTIONS_MAX))
            case ListChats(channel=channel):
                return ChatList(chats=await self.views.chats(ChannelName(channel), CHATS_MAX))
            case other:
                raise AssertionError(f"nothing answers {type(other).__name__}")

    def _unreached(self) -> dict[str, str]:
        return {name: why for name, why in self.channels.items() if why is not None}

    async def _status(self) -> StatusReply:
        status = await self.views.status()
        return StatusReply(
            is_running=self.is_running,
            trouble=self.trouble,
            worker=status.worker,
            previous=status.previous,
            turns={str(state): status.turns.get(state, 0) for state in ALIVE},
            stands={stand: status.stands.get(stand, 0) for stand in STANDS},
            inbox_waiting=status.inbox_waiting,
            outbox_unsettled=status.outbox_unsettled,
            sessions=status.sessions,
            sqlite=status.sqlite,
            breaker=status.breaker,
            outbox_held=status.outbox_held,
            gap=status.gap,
            turns_unheard=status.turns_unheard,
            unreached=self._unreached(),
            heard=dict(self.heard),
            neighbours=tuple(
                NeighbourStatus(name=name, ok=is_ok, reason=reason)
                for name, is_ok, reason in self.neighbours
            ),
            restart=self.restart,
            server=status.server,
            nodes=status.nodes,
            agents=await self.agents(),
        )

    async def _troubles(self) -> Troubles:
        status = await self.views.status()
        found = what_is_wrong(
            breaker=Breaker(status.breaker),
            unreached=self._unreached(),
            held=status.outbox_held,
            gap=status.gap,
            unheard=status.turns_unheard,
            store=self.trouble,
            restart=self.restart,
        )
        waiting = status.turns.get(TurnState.WAITING, 0)
        return Troubles(troubles=found, questions=waiting)

    async def _minutes(self) -> MinuteList:
        now_ms = await self.views.now_ms()
        found = await self.views.minutes(now_ms - DAY_MS)
        heard = {name: at_ms for each in found for name, at_ms in each.heard}
        return MinuteList(now_ms=now_ms, minutes=found, channels=tuple(sorted(heard.items())))

    async def _inbox(self, asked: GetInbox) -> Done:
        """What arrived, each with what became of it in plain words, and with its turn."""
        rows = ListRows(kind="message", limit=asked.limit, before=asked.before, open=asked.open)
        page = page_of(rows)
        if page is None:
            return no_such_page(rows)
        entries = await self.views.entries(page)
        turn_ids = sorted({each.turn_id for each in entries if each.turn_id is not None})
        turns = {turn.turn_id: turn for turn in await self.views.turns_named(turn_ids)}
        told = []
        for entry in entries:
            turn = None if entry.turn_id is None else turns.get(entry.turn_id)
            told.append(InboxEntry(**asdict(entry), turn=turn, fate=fate_of(entry, turn)))
        following = next_page("message", [entry.entry_id for entry in entries], page)
        return InboxList(messages=tuple(told), next=following)

    async def _tell(self, kind: str, what: str) -> Done:
        named = parse_shown(what)
        if kind and (named is None or named[0] != kind):
            return refusal("not-found", f'there is no {kind} "{what}"')
        told = await _Explainer(self, what).explain()
        if not isinstance(told, TurnStory):
            return told
        turn_id = told.turn.turn_id
        return TurnExplained(
            **{name: getattr(told, name) for name in told.__struct_fields__},
            steps=await self.views.steps_of(turn_id, STEPS_MAX),
            calls=await self.views.calls_of(turn_id),
        )


async def _no_agents() -> tuple[AgentStatus, ...]:
    return ()


class _Explainer:
    """One question "why is this where it is?"."""

    def __init__(self, looks: ReadRequests, what: str) -> None:
        self._views = looks.views
        self._what = what
        self._is_running = looks.is_running
        self._reasons = Narrator(is_running=looks.is_running, troubles=looks.channels)

    async def explain(self) -> Done:
        """What is named may be an id of ours, or a platform's id of a message."""
        named = parse_shown(self._what)
        found = None if named is None else await self._by_shown(*named)
        if found is None:
            entry = await self._views.entry_by_external_id(self._what)
            found = None if entry is None else await self._entry(entry)
        if found is None and named is not None and named[0] == "session":
            session = await self._views.session(SessionId(named[1]))
            if session is not None:
                words = f"session {self._what} has had no turn yet, so there is nothing to explain"
                return refusal("not-found", words)
        return found or refusal(
            "not-found",
            f'there is nothing named "{self._what}"; turns are t1, sessions s1, messages m1, '
            "deliveries d1, processes p1, schedules c1, goals g1, sub-agents a1, memories n1, "
            "and a platform's own message id works, too",
        )

    async def _by_shown(self, kind: str, number: int) -> Explained | None:
        match kind:
            case "turn":
                return await self._turn(TurnId(number))
            case "session":
                turns = await self._views.turns_of(SessionId(number), 1)
                return await self._turn(turns[0].turn_id) if turns else None
            case "message":
                entry = await self._views.entry(EntryId(number))
                return None if entry is None else await self._entry(entry)
            case "delivery":
                delivery = await self._views.delivery(DeliveryId(number))
                return None if delivery is None else await self._delivery(delivery)
            case "process":
                return await self._process(ProcessId(number))
            case "child":
                turn_id = await self._views.child_turn(ChildId(number))
                return None if turn_id is None else await self._turn(turn_id)
            case "schedule" | "goal":
                is_running = self._is_running
                return await explained(self._views, kind, number, is_running=is_running)
            case "memory":
                story = await self._views.memory(MemoryId(number))
                return None if story is None else memory_told(story, is_running=self._is_running)
            case _:
                return None

    async def _turn(self, turn_id: TurnId) -> Explained | None:
        explanation = await self._views.explain(turn_id)
        if explanation is None:
            return None
        is_worked_on = await self._is_worked_on(explanation)
        is_alive = self._is_running and explanation.turn.state == TurnState.QUEUED
        if not is_worked_on and not is_alive:
            explanation = replace(explanation, held_up=None)
        why = why_now(
            TurnState(explanation.turn.state),
            explanation.turn.event,
            explanation.why,
            explanation.held_up,
            is_running=self._is_running,
            is_worked_on=is_worked_on,
        )
        told = replace(explanation, why=why)
        return TurnStory(
            kind="turn",
            is_running=self._is_running,
            reason=self._reasons.of_turn(told),
            turn=told.turn,
            facts=None if told.facts is None else asdict(told.facts),
            why=told.why,
            lines=worded(told.lines),
            entries=told.entries,
            deliveries=told.deliveries,
            question=told.question,
            held_up=told.held_up,
            barred=told.barred,
            family=told.family,
            memory=told.memory,
            is_worked_on=is_worked_on,
            agent=await self._views.agent_words(turn_id, AGENT_WORDS_MAX),
        )

    async def _is_worked_on(self, explanation: Explanation) -> bool:
        """Whether the gateway that runs now holds the claim: then nothing was interrupted."""
        if not self._is_running or explanation.turn.worker_id is None:
            return False
        worker = (await self._views.status()).worker
        return worker is not None and worker.worker_id == explanation.turn.worker_id

    async def _entry(self, entry: EntryView) -> Explained | None:
        if entry.turn_id is not None:
            return await self._turn(entry.turn_id)
        newest = () if entry.session_id is None else await self._views.turns_of(entry.session_id, 1)
        open_turns = [turn for turn in newest if turn.state in OPEN]
        behind = open_turns[0] if open_turns and entry.state == "waiting" else None
        return MessageExplained(
            kind="message",
            is_running=self._is_running,
            reason=self._reasons.of_message(entry, behind),
            message=entry,
            behind=behind,
        )

    async def _delivery(self, delivery: DeliveryView) -> DeliveryExplained:
        turn_id, behind = delivery.turn_id, None
        of = None if turn_id is None else await self._views.explain(turn_id)
        if of is not None and delivery.state in UNSETTLED:
            unsettled = [each for each in of.deliveries if each.state in UNSETTLED]
            earlier = [each for each in unsettled if each.delivery_id < delivery.delivery_id]
            behind = earlier[0] if earlier else None
        number = delivery.delivery_id
        lines = () if of is None else of.lines
        channel = await self._channel_of(delivery)
        return DeliveryExplained(
            kind="delivery",
            is_running=self._is_running,
            reason=self._reasons.of_delivery(delivery, channel),
            delivery=delivery,
            turn=None if of is None else of.turn,
            behind=behind,
            lines=worded(
                [line for line in lines if line.subject == "delivery" and line.number == number]
            ),
        )

    async def _channel_of(self, delivery: DeliveryView) -> str:
        session = await self._views.session(delivery.session_id)
        return "" if session is None else session.route.channel

    async def _process(self, process_id: ProcessId) -> Explained | None:
        view = await self._views.process(process_id)
        if view is None:
            return None
        return ProcessExplained(
            kind="process",
            is_running=self._is_running,
            process=view.process,
            route=view.route,
            watchers=view.watchers,
            reports=await self._views.reports_of(process_id),
        )
