"""A home on a real store, with the time, the hints and the deaths in the hands of the test: what
people do there, what a worker does, and what can be seen."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from koboshi.domain.command import Command, CommandName, Response, SessionFacts
from koboshi.domain.errors import StoreFailed
from koboshi.domain.ids import CallId, ChannelName, Seq, SessionId, TurnId
from koboshi.domain.inbox import Words
from koboshi.domain.outage import ModelFailure
from koboshi.domain.outbox import Delivery, DeliveryState, Settle
from koboshi.domain.recovery import BootConfig, Policy, Verdict
from koboshi.domain.route import Route
from koboshi.domain.session import CutKind, Settings
from koboshi.domain.transcript import (
    Body,
    Choice,
    Effect,
    Need,
    Note,
    ProposedCall,
    Reply,
    Result,
    ResultStatus,
    Step,
)
from koboshi.domain.turn import Claim
from koboshi.domain.worker import Worker
from koboshi.kernel.decode import encoded
from koboshi.ports.channel import Inbound, Receipt
from koboshi.ports.store import Arrival, Respond, Store
from koboshi.ports.views import DeliveryView, EntryView, Event, Explanation, JournalLine, TurnView
from tests.harness.backends import Backend, Limits
from tests.harness.fake_time import DAY_MS, FakeClock, RecordingWakeups
from tests.harness.rows import Rows

WEB = ChannelName("web:main")
HOOK = ChannelName("hook:main")
"""A channel where no person can be asked."""
FRONT = ChannelName("front:main")
"""A channel where only ann is known."""

SILENT = ModelFailure(reason="the provider could not be reached")


def a_world(
    *,
    policy: Policy = Policy(),  # noqa: B008  (frozen)
    without: Sequence[ChannelName] = (),
    revoked: Sequence[str] = (),
    busy: str = "queue",
) -> BootConfig:
    channels = {WEB: True, HOOK: False, FRONT: True}
    return BootConfig(
        policy=policy,
        channels={name: asks for name, asks in channels.items() if name not in without},
        is_allowed=lambda channel, person: (
            person not in revoked and (not channel.startswith("front:") or person == "ann")
        ),
        busy=busy,
    )


def respond(command: Command, facts: SessionFacts) -> Response:
    """Commands as the suite needs them: `/stop`, `/stop all` and `/new` cut."""
    reply = f"open: {facts.open_turn is not None}, waiting: {facts.waiting}, owed: {facts.owed}"
    match command.name:
        case CommandName.STOP:
            all_of_it = command.argument == "all"
            return Response(reply=reply, cut=CutKind.STOP_ALL if all_of_it else CutKind.STOP)
        case CommandName.NEW:
            return Response(reply=reply, cut=CutKind.NEW)
        case _:
            return Response(reply=reply)


@dataclass(slots=True)
class Home:
    """One home through all its lives."""

    backend: Backend
    clock: FakeClock = field(default_factory=FakeClock)
    wakeups: RecordingWakeups = field(default_factory=RecordingWakeups)
    world: BootConfig = field(default_factory=lambda: a_world())
    limits: Limits = field(default_factory=Limits)
    store: Store = field(init=False)
    worker: Worker = field(init=False)
    failures: list[StoreFailed] = field(default_factory=list)
    keys: int = 0

    async def open(self) -> None:
        self.store = await self.backend.open(
            self.world, self.clock, self.wakeups, self.limits, self.failures.append
        )

    async def boot(self) -> Worker:
        await self.open()
        self.worker = await self.store.workers.start("host", 4711, "birth", "0.1")
        return self.worker

    async def reopen(self, *, crash: bool = True, world: BootConfig | None = None) -> Worker:
        """The next boot, after a death or after a clean close of the files."""
        if crash:
            await self.backend.kill(self.store)
        else:
            await self.store.close()
        if world is not None:
            self.world = world
        return await self.boot()

    # ── what people do ──────────────────────────────────────────────────────────────────────────

    async def say(
        self,
        text: str = "hello",
        *,
        chat: str = "ann",
        person: str = "ann",
        key: str | None = None,
        question: int | None = None,
        choice: str | None = None,
        channel: ChannelName = WEB,
        thread: str = "",
        cursor: str | None = None,
    ) -> Receipt:
        inbound = self.inbound(
            text, chat=chat, person=person, key=key, channel=channel, thread=thread
        )
        words = Words(
            text=text,
            sent_ms=self.clock.now_ms(),
            anchor=inbound.external_id,
            question=None if question is None else Seq(question),
            choice_id=choice,
        )
        arrival = Arrival(
            inbound=Inbound(
                route=inbound.route,
                external_id=inbound.external_id,
                sender=person,
                words=words,
            )
        )
        (receipt,) = await self.accept(arrival, cursor=cursor)
        return receipt

    async def knock(
        self,
        person: str,
        text: str = "let me in",
        *,
        name: str = "",
        key: str | None = None,
        chat: str = "",
        is_private: bool = True,
    ) -> Receipt:
        """A person writes on the channel where only ann is known."""
        inbound = self.inbound(text, chat=chat or person, person=person, key=key, channel=FRONT)
        inbound = replace(inbound, sender_name=name, is_private=is_private)
        (receipt,) = await self.accept(Arrival(inbound=inbound))
        return receipt

    async def command(
        self, name: CommandName, argument: str = "", *, chat: str = "ann", key: str | None = None
    ) -> Receipt:
        inbound = self.inbound(f"/{name} {argument}", chat=chat, key=key)
        command = Command(name=name, said=f"/{name}", argument=argument)
        (receipt,) = await self.accept(Arrival(inbound=inbound, command=command))
        return receipt

    async def stop(self, argument: str = "", *, chat: str = "ann") -> Receipt:
        return await self.command(CommandName.STOP, argument, chat=chat)

    async def accept(
        self, *arrivals: Arrival, cursor: str | None = None, respond: Respond = respond
    ) -> tuple[Receipt, ...]:
        channel = arrivals[0].inbound.route.channel if arrivals else WEB
        return await self.store.inbox.accept(channel, arrivals, cursor=cursor, respond=respond)

    def inbound(
        self,
        text: str = "hello",
        *,
        chat: str = "ann",
        person: str = "ann",
        key: str | None = None,
        channel: ChannelName = WEB,
        thread: str = "",
    ) -> Inbound:
        self.keys += 1
        key = key or f"key-{self.keys}"
        return Inbound(
            route=Route(channel=channel, chat=chat, thread=thread),
            external_id=key,
            sender=person,
            words=Words(text=text, sent_ms=self.clock.now_ms(), anchor=key),
        )

    def configure(self, session_id: SessionId, settings: Settings) -> None:
        """The session has settings of its own, without the command and the reply that they cost."""
        words = encoded(settings).replace("'", "''")
        self.sql(f"UPDATE sessions SET settings = '{words}' WHERE session_id = {session_id}")

    # ── what a worker does ──────────────────────────────────────────────────────────────────────

    async def claims(self, limit: int = 100) -> tuple[Claim, ...]:
        return await self.store.turns.claim(self.worker.worker_id, limit)

    async def claim(self) -> Claim:
        (claim,) = await self.claims()
        return claim

    async def work_on(
        self,
        text: str = "hello",
        *,
        chat: str = "ann",
        person: str = "ann",
        key: str | None = None,
    ) -> Claim:
        """A message, and the claim on the turn that it opens."""
        await self.say(text, chat=chat, person=person, key=key)
        return await self.claim()

    async def propose(self, claim: Claim, *calls: ProposedCall) -> tuple[CallId, ...]:
        steps = await self.store.turns.append(claim, Reply(text="let me see"), calls)
        (reply,) = (step.body for step in steps if isinstance(step.body, Reply))
        return tuple(call.call_id for call in reply.calls)

    async def start(self, claim: Claim, *call_ids: CallId) -> None:
        for call_id in call_ids:
            assert await self.store.turns.start_call(claim, call_id), "it is not started again"

    async def finish(self, claim: Claim, call_id: CallId, text: str = "fine") -> tuple[Step, ...]:
        result = Result(call_id=call_id, status=ResultStatus.OK, text=text)
        return await self.store.turns.finish_call(claim, result)

    async def step(self, claim: Claim) -> None:
        """A durable step that leaves nothing open."""
        (call_id,) = await self.propose(claim, a_call())
        await self.start(claim, call_id)
        await self.finish(claim, call_id)

    async def answer(self, claim: Claim, *parts: str) -> None:
        await self.store.turns.answer(
            claim, Reply(text="".join(parts or ("done",))), parts or ("done",)
        )

    async def ask(
        self, claim: Claim, *, need: Need = Need.ANSWER, choices: Sequence[Choice] = ()
    ) -> CallId:
        effect = Effect.NONE if need is Need.ANSWER else Effect.ONCE
        (call_id,) = await self.propose(claim, a_call("ask", effect=effect, need=need))
        await self.store.turns.ask(claim, call_id, "which one?", choices, DAY_MS)
        return call_id

    async def recover(self, turn_id: TurnId) -> Verdict:
        verdict = await self.store.turns.recover(turn_id)
        assert verdict is not None
        return verdict

    async def die_and_recover(self, turn_id: TurnId, *, world: BootConfig | None = None) -> Verdict:
        await self.reopen(crash=True, world=world)
        return await self.recover(turn_id)

    async def resume(self, turn_id: TurnId) -> Claim:
        """Through a death to the next claim on the same turn."""
        await self.die_and_recover(turn_id)
        await self.wait_until_due()
        claim = await self.claim()
        assert claim.turn_id == turn_id
        return claim

    async def wait_until_due(self) -> None:
        self.clock.move(await self.store.turns.due_in_ms() or 0)

    async def take_delivery(self, chat: str = "ann", thread: str = "") -> Delivery:
        session_id = await self.session_id(chat, thread=thread)
        delivery = await self.store.outbox.claim(session_id, self.worker.worker_id)
        assert isinstance(delivery, Delivery)
        return delivery

    async def deliver(self, chat: str = "ann", channel: ChannelName = WEB) -> list[Delivery]:
        """Everything owed to the chat arrives."""
        session_id, delivered = await self.session_id(chat, channel), []
        while delivery := await self.store.outbox.claim(session_id, self.worker.worker_id):
            assert isinstance(delivery, Delivery), "something is postponed"
            arrived = Settle(state=DeliveryState.DELIVERED, platform_id=f"p{delivery.delivery_id}")
            await self.store.outbox.settle(delivery, self.worker.worker_id, arrived)
            delivered.append(delivery)
        return delivered

    # ── what can be seen ────────────────────────────────────────────────────────────────────────

    def rows(self) -> Rows:
        """What is stored, past the store."""
        return self.backend.rows()

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        """Change or read what is stored, behind the back of the store."""
        return self.backend.sql(*statements)

    async def session_id(
        self, chat: str = "ann", channel: ChannelName = WEB, thread: str = ""
    ) -> SessionId:
        place = Route(channel=channel, chat=chat, thread=thread)
        session_id = await self.store.views.session_of(place)
        assert session_id is not None
        return session_id

    async def explain(self, turn_id: TurnId) -> Explanation:
        explanation = await self.store.views.explain(turn_id)
        assert explanation is not None
        return explanation

    async def view(self, turn_id: TurnId) -> TurnView:
        return (await self.explain(turn_id)).turn

    async def turns(self, chat: str = "ann", channel: ChannelName = WEB) -> list[TurnView]:
        """The turns of a chat, oldest first."""
        session_id = await self.session_id(chat, channel)
        return list(reversed(await self.store.views.turns_of(session_id, 10_000)))

    async def entry(self, receipt: Receipt) -> EntryView:
        entry = await self.store.views.entry(receipt.entry_id)
        assert entry is not None
        return entry

    async def deliveries(self, turn_id: TurnId) -> tuple[DeliveryView, ...]:
        return (await self.explain(turn_id)).deliveries

    async def events(
        self, chat: str = "ann", channel: ChannelName = WEB, after: int = 0
    ) -> list[Event]:
        return list(await self.store.views.events(channel, chat, after=after, limit=1_000_000))

    async def lines(self, turn_id: TurnId) -> tuple[JournalLine, ...]:
        return (await self.explain(turn_id)).lines

    async def bodies(self, turn_id: TurnId) -> list[Body]:
        """What the transcript of a turn holds beside the words of people, in order."""
        events = await self.events_of(turn_id)
        return [event.body for event in events if event.line.subject == "step" and event.body]

    async def events_of(self, turn_id: TurnId) -> list[Event]:
        route = (await self.view(turn_id)).route
        events = await self.events(route.chat, route.channel)
        return [event for event in events if event.line.turn_id == turn_id]

    async def notes(self, turn_id: TurnId, cause: str = "recovery") -> list[Note]:
        bodies = await self.bodies(turn_id)
        return [body for body in bodies if isinstance(body, Note) and body.cause == cause]

    async def results(self, turn_id: TurnId) -> dict[CallId, Result]:
        bodies = await self.bodies(turn_id)
        return {body.call_id: body for body in bodies if isinstance(body, Result)}

    async def everything(self) -> object:
        """All that can be seen of two chats, to compare before and after."""
        seen: list[object] = []
        for channel in (WEB, HOOK):
            for chat in ("ann", "bob"):
                session = await self.store.sessions.find(Route(channel=channel, chat=chat))
                if session is not None:
                    views = await self.store.views.turns_of(session.session_id, 10_000)
                    seen += [session, await self.events(chat, channel)]
                    seen += [await self.explain(view.turn_id) for view in views]
        return seen, await self.store.views.status()


OpenHome: TypeAlias = Callable[..., Awaitable[Home]]
"""The fixture `open_home`: a home with a world and limits of its own."""


def a_call(
    tool: str = "fetch",
    *,
    effect: Effect = Effect.NONE,
    need: Need = Need.NOBODY,
    arguments: str = "{}",
) -> ProposedCall:
    return ProposedCall(tool=tool, arguments=arguments, effect=effect, need=need)
