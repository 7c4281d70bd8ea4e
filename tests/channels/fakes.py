"""A gateway without a gateway: what the web channel leans on, in memory, and the channel served on
a real socket."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx2
from anyio import Event as Signal
from anyio import create_task_group, fail_after, move_on_after, sleep

from koboshi.channels.web.channel import WebChannel
from koboshi.channels.web.limits import WebLimits
from koboshi.channels.web.names import Names
from koboshi.channels.web.pages import NO_PAGES, Pages
from koboshi.domain.browser import LIFE_MS, Browser, BrowserId, is_let_in
from koboshi.domain.files import OutFile
from koboshi.domain.ids import ChannelName, DeliveryId, EntryId, ProcessId, SessionId, TurnId
from koboshi.domain.inbox import EntryState
from koboshi.domain.route import Route
from koboshi.domain.transcript import Body, Choice, Message, Past
from koboshi.ports.channel import NO_WATERMARKS, Accept, Inbound, Receipt
from koboshi.ports.views import (
    DeliveryView,
    EntryView,
    Event,
    Explanation,
    JournalLine,
    ProcessView,
    Shown,
    Status,
    TurnView,
)
from koboshi.ports.wakeups import JOURNAL
from tests.harness.polling import WITHIN_S

WEB = ChannelName("web:main")
TOKEN = "a-token-for-tests"
NOW_MS = 1_763_240_400_123


@dataclass
class FakeClock:
    """Time passes when a test says so."""

    passed_s: float = 0.0

    def now_ms(self) -> int:
        return NOW_MS + int(self.passed_s * 1000)

    def monotonic(self) -> float:
        return self.passed_s


class FakeWakeups:
    """Hints in memory. `is_deaf` loses all of them, as the contract allows."""

    def __init__(self) -> None:
        self.is_deaf = False
        self._hints: dict[str, int] = {}
        self._hinted = Signal()

    def hint(self, topic: str) -> None:
        if not self.is_deaf:
            self._hints[topic] = self.count(topic) + 1
            self._hinted.set()
            self._hinted = Signal()

    def hint_all(self) -> None:
        for topic in [*self._hints]:
            self.hint(topic)

    def count(self, topic: str) -> int:
        return self._hints.get(topic, 0)

    async def wait(self, topic: str, at_most_s: float, since: int | None = None) -> None:
        before = self.count(topic) if since is None else since
        with move_on_after(at_most_s):
            while self.count(topic) == before:
                await self._hinted.wait()

    def forget(self, topic: str) -> None:
        self._hints.pop(topic, None)


@dataclass
class FakeHealth:
    alive: bool = True
    checks: tuple[tuple[str, bool, str], ...] = (("store", True, ""),)

    def is_alive(self) -> bool:
        return self.alive

    def readiness(self) -> tuple[tuple[str, bool, str], ...]:
        return self.checks

    def neighbours(self) -> tuple[tuple[str, bool, str], ...]:
        return ()


@dataclass
class FakeGateway:
    """A journal, what was accepted, and the hands to write more into it. It is Views and Accept
    in one, and outlives the channels that serve it, as a database does."""

    wakeups: FakeWakeups = field(default_factory=FakeWakeups)
    journal: list[Event] = field(default_factory=list)
    stored: dict[str, tuple[Receipt, Inbound]] = field(default_factory=dict)
    cursor: str | None = None
    watermarks: dict[str, str] = field(default_factory=dict)
    first_seq: int = 1
    may_commit: Callable[[], object] = lambda: None
    """Called before each commit; may raise."""
    forgotten: Past | None = None
    """What was said in every chat before the lines that are kept."""
    gate: Signal | None = None
    """Commits of messages wait for it."""
    on_message: Callable[[Inbound, Receipt], None] = lambda inbound, receipt: None

    async def accept(
        self,
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        if not batch and cursor is None and not watermarks:
            return ()  # it is connected; there is nothing to commit
        if self.gate is not None and batch:
            await self.gate.wait()
        self.may_commit()
        if cursor is not None:
            self.cursor = cursor
        self.watermarks |= watermarks
        return tuple(self._store(inbound) for inbound in batch)

    def _store(self, inbound: Inbound) -> Receipt:
        if inbound.external_id in self.stored:
            receipt, before = self.stored[inbound.external_id]
            return Receipt(
                entry_id=receipt.entry_id,
                state=receipt.state,
                is_duplicate=True,
                is_same=before.words == inbound.words,
            )
        receipt = Receipt(
            entry_id=EntryId(len(self.stored) + 1), state=EntryState.ATTACHED, is_duplicate=False
        )
        self.stored[inbound.external_id] = (receipt, inbound)
        self.add(
            inbound.route,
            "message",
            receipt.entry_id,
            "accepted",
            body=Message(
                text=inbound.words.text,
                sender=inbound.sender,
                entry_id=receipt.entry_id,
                sent_ms=inbound.words.sent_ms,
            ),
        )
        self.on_message(inbound, receipt)
        return receipt

    def add(
        self,
        route: Route,
        subject: str,
        number: int,
        event: str,
        *,
        before: str | None = None,
        after: str | None = None,
        reason: str | None = None,
        rule: str | None = None,
        turn: int | None = None,
        body: Body | None = None,
        delivery: Shown | None = None,
    ) -> Event:
        """Append one line to the journal."""
        line = JournalLine(
            seq=self.first_seq + len(self.journal),
            at_ms=NOW_MS,
            subject=subject,
            number=number,
            event=event,
            before=before,
            after=after,
            rule=rule,
            reason=reason,
            session_id=SessionId(1),
            turn_id=None if turn is None else TurnId(turn),
            worker_id=None,
        )
        told = Event(line=line, route=route, body=body, delivery=delivery)
        self.journal.append(told)
        self.wakeups.hint(JOURNAL)
        return told

    def turn_is(self, route: Route, turn: int, state: str, before: str | None = None) -> None:
        self.add(route, "turn", turn, state, before=before, after=state, turn=turn)

    def say(
        self,
        route: Route,
        text: str,
        *,
        turn: int | None = 1,
        cause: str = "step:9",
        question: int | None = None,
        choices: tuple[Choice, ...] = (),
    ) -> None:
        """Deliver words to the person."""
        number = len(self.journal) + 1
        shown = Shown(
            delivery_id=DeliveryId(number),
            cause=cause,
            part=1,
            parts=1,
            text=text,
            choices=choices,
            question=question,
            may_be_duplicate=False,
        )
        self.add(
            route,
            "delivery",
            number,
            "delivered",
            before="sending",
            after="delivered",
            turn=turn,
            delivery=shown,
        )

    async def events(
        self, channel: ChannelName, chat: str, *, after: int, limit: int
    ) -> Sequence[Event]:
        of_chat = [each for each in self.journal if each.route.chat == chat]
        return [each for each in of_chat if each.line.seq > after][:limit]

    async def past(self, channel: ChannelName, chat: str, *, after: int, limit: int) -> Past | None:
        assert channel == WEB
        if self.forgotten is None or after >= self.forgotten.seq:
            return None
        return replace(self.forgotten, said=self.forgotten.said[-limit:])

    async def chats_touched(
        self, channel: ChannelName, *, after: int
    ) -> tuple[int, frozenset[str]]:
        newest = max((each.line.seq for each in self.journal), default=0)
        return newest, frozenset(each.route.chat for each in self.journal if each.line.seq > after)

    async def place_before(self, channel: ChannelName, chat: str, *, lines: int) -> int:
        of_chat = [each.line.seq for each in self.journal if each.route.chat == chat]
        return of_chat[-lines - 1] if len(of_chat) > lines else 0

    async def last_event(self, channel: ChannelName, chat: str) -> int:
        return max((each.line.seq for each in self.journal if each.route.chat == chat), default=0)

    async def entry(self, entry_id: EntryId) -> EntryView | None:
        for external_id, (receipt, inbound) in self.stored.items():
            if receipt.entry_id == entry_id:
                return EntryView(
                    entry_id=entry_id,
                    session_id=self._session(inbound.route),
                    turn_id=TurnId(entry_id) if receipt.state is EntryState.ATTACHED else None,
                    kind="message",
                    state=receipt.state,
                    reason=None,
                    source=inbound.route.channel,
                    external_id=external_id,
                    sender=inbound.sender,
                    text=inbound.words.text,
                    received_ms=NOW_MS,
                )
        return None

    async def sent_file(
        self, channel: ChannelName, chat: str, delivery_id: DeliveryId
    ) -> OutFile | None:
        shown = (each.delivery for each in self.journal if each.route.chat == chat)
        found = (each for each in shown if each and each.delivery_id == delivery_id)
        return next((each.file for each in found), None)

    async def status(self) -> Status:
        return Status(
            worker=None,
            previous=None,
            turns={"running": 1},
            stands={"running": 1},
            inbox_waiting=0,
            outbox_unsettled=2,
            sessions=1,
            sqlite="3.51.3",
        )

    async def turns_of(self, session_id: SessionId, limit: int) -> tuple[TurnView, ...]:
        return ()

    async def session_of(self, route: Route) -> SessionId | None:
        return self._session(route)

    def _session(self, route: Route) -> SessionId:
        routes = list(dict.fromkeys(inbound.route for _, inbound in self.stored.values()))
        return SessionId(routes.index(route) if route in routes else len(routes))

    async def entry_by_external_id(self, external_id: str) -> EntryView | None:
        return None

    async def delivery(self, delivery_id: DeliveryId) -> DeliveryView | None:
        return None

    async def explain(self, turn_id: TurnId) -> Explanation | None:
        return None

    async def processes(self, limit: int) -> tuple[ProcessView, ...]:
        return ()

    async def process(self, process_id: ProcessId) -> ProcessView | None:
        return None

    async def reports_of(self, process_id: ProcessId) -> tuple[EntryView, ...]:
        return ()


class FakeBrowsers:
    """The rows of browsers, in memory, with the rules of the domain."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.rows: dict[BrowserId, tuple[Browser, str, str]] = {}
        self.codes: dict[str, int] = {}

    async def offer(self, code_hash: str, *, life_ms: int, kept: int) -> None:
        self.codes[code_hash] = self.clock.now_ms() + life_ms
        self.codes = dict([*self.codes.items()][-kept:])

    async def redeem(self, code_hash: str) -> bool:
        return self.codes.pop(code_hash, 0) > self.clock.now_ms()

    async def make(self, *, cookie_hash: str, proof_hash: str, label: str) -> Browser:
        now_ms = self.clock.now_ms()
        browser = Browser(
            browser_id=BrowserId(len(self.rows) + 1),
            label=label,
            made_ms=now_ms,
            used_ms=now_ms,
            expires_ms=now_ms + LIFE_MS,
        )
        self.rows[browser.browser_id] = browser, cookie_hash, proof_hash
        return browser

    async def find(self, cookie_hash: str) -> tuple[Browser, str] | None:
        for browser, cookie, proof in self.rows.values():
            if cookie == cookie_hash and is_let_in(browser, self.clock.now_ms()):
                return browser, proof
        return None

    async def use(self, browser_id: BrowserId) -> None:
        browser, *hashes = self.rows[browser_id]
        used = replace(browser, used_ms=self.clock.now_ms())
        self.rows[browser_id] = used, hashes[0], hashes[1]

    async def revoke(self, browser_id: BrowserId) -> bool:
        browser, *hashes = self.rows[browser_id]
        revoked = replace(browser, revoked_ms=self.clock.now_ms())
        self.rows[browser_id] = revoked, hashes[0], hashes[1]
        return is_let_in(browser, self.clock.now_ms())

    async def revoke_all(self) -> int:
        return sum([await self.revoke(each) for each in list(self.rows)])

    async def listed(self) -> tuple[Browser, ...]:
        now_ms = self.clock.now_ms()
        return tuple(each for each, *_ in self.rows.values() if is_let_in(each, now_ms))


def web_channel(
    gateway: FakeGateway,
    *,
    port: int = 0,
    token: str = TOKEN,
    limits: WebLimits | None = None,
    health: FakeHealth | None = None,
    clock: FakeClock | None = None,
    pages: Pages = NO_PAGES,
    browsers: FakeBrowsers | None = None,
    home: Path | None = None,
) -> WebChannel:
    clock = clock or FakeClock()
    return WebChannel(
        name=WEB,
        names=Names(),
        port=port,
        token=token,
        browsers=browsers or FakeBrowsers(clock),
        views=gateway,
        wakeups=gateway.wakeups,
        health=health or FakeHealth(),
        clock=clock,
        pages=pages,
        limits=limits or WebLimits(poll_s=0.05),
        home=home,
    )


@asynccontextmanager
async def serving(channel: WebChannel, accept: Accept) -> AsyncIterator[str]:
    """The channel, receiving, for the length of the block. Gives its address."""
    async with create_task_group() as tasks:
        tasks.start_soon(channel.receive, None, accept)
        with fail_after(WITHIN_S):
            port = await channel.listening()
        yield f"http://127.0.0.1:{port}"
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def client_of(url: str, token: str = TOKEN) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False) as client:
        yield client


async def until(is_so: Callable[[], object], within_s: float = WITHIN_S) -> None:
    """Look again and again until it is so; fail after the time."""
    with fail_after(within_s):
        while not is_so():  # noqa: ASYNC110  (no one tells us)
            await sleep(0.005)
