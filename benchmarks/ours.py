"""A turn on our own store, verb by verb as the gateway calls them. Prints one JSON line."""

import asyncio
import gc
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from anyio import create_task_group

from benchmarks.fill import CHANNEL
from benchmarks.steady import TEXT_BYTES, Load, load_of, measure, parser, print_line, words
from koboshi.app.garbage import collect_seldom
from koboshi.clock import SystemClock
from koboshi.domain.command import Command, Response, SessionFacts
from koboshi.domain.ids import CallId, ChannelName, SessionId, WorkerId
from koboshi.domain.inbox import Words
from koboshi.domain.outbox import Delivery, DeliveryState, Settle
from koboshi.domain.recovery import BootConfig, Policy
from koboshi.domain.route import Route
from koboshi.domain.transcript import Effect, ProposedCall, Reply, Result, ResultStatus
from koboshi.domain.turn import Claim
from koboshi.ports.channel import Inbound
from koboshi.ports.store import Arrival, Store
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores.options import StoreOptions
from koboshi.stores.postgres.store import PostgresStore, open_postgres
from koboshi.stores.sqlite.store import SqliteStore, open_store


@dataclass(slots=True, kw_only=True)
class Dispatch:
    """Claims turns for all clients, as the gateway does."""

    store: Store
    worker_id: WorkerId
    _waiting: deque["asyncio.Future[Claim]"] = field(default_factory=deque)
    _has_some: asyncio.Event = field(default_factory=asyncio.Event)

    async def claim(self) -> Claim:
        """A turn, once one is claimed. It may be that of a neighbour: the store hands out the
        oldest, and there is one for each client."""
        mine: asyncio.Future[Claim] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        self._has_some.set()
        return await mine

    async def keep_claiming(self) -> None:
        while True:
            await self._has_some.wait()
            claims = await self.store.turns.claim(self.worker_id, len(self._waiting))
            for each in claims:
                self._waiting.popleft().set_result(each)
            if not self._waiting:
                self._has_some.clear()
            elif not claims:
                # Another node has taken one, and has left another one behind.
                await asyncio.sleep(AGAIN_SECONDS)


AGAIN_SECONDS = 0.005
COLLECT_AFTER = (10_000, 20, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The turns of all clients; `chat_of` says in which chat a client has its turn."""

    store: Store
    worker_id: WorkerId
    run_id: str
    chat_of: Callable[[int, int], str]
    dispatch: Dispatch

    async def turn(self, client: int, number: int) -> None:
        """From the message to the last part delivered: every line is on disk before the next."""
        turns, chat = self.store.turns, self.chat_of(client, number)
        await self._accept(client, number, chat)
        claim = await self.dispatch.claim()
        reply = Reply(text=words(client, number, "reply"))
        (step,) = await turns.append(claim, reply, _proposed())
        assert isinstance(step.body, Reply)
        for place, call in enumerate(step.body.calls, start=1):
            await self._run_call(claim, call.call_id, words(client, number, f"result {place}"))
        answer = words(client, number, "answer", 2 * TEXT_BYTES)
        parts = (answer[:TEXT_BYTES], answer[TEXT_BYTES:])
        await turns.answer(claim, Reply(text=answer), parts)
        for _ in parts:
            await self._deliver(claim.session_id)

    async def _accept(self, client: int, number: int, chat: str) -> None:
        external_id = f"{self.run_id}-{client}-{number}"
        inbound = Inbound(
            route=Route(channel=ChannelName(CHANNEL), chat=chat),
            external_id=external_id,
            sender=f"person-{client}",
            words=Words(
                text=words(client, number, "message"),
                sent_ms=time.time_ns() // 1_000_000,
                anchor=external_id,
            ),
        )
        (receipt,) = await self.store.inbox.accept(
            ChannelName(CHANNEL), [Arrival(inbound=inbound)], cursor=None, respond=_respond
        )
        assert receipt.state == "attached", receipt

    async def _run_call(self, claim: Claim, call_id: CallId, text: str) -> None:
        await self.store.turns.start_call(claim, call_id)
        result = Result(call_id=call_id, status=ResultStatus.OK, text=text)
        await self.store.turns.finish_call(claim, result)

    async def _deliver(self, session_id: SessionId) -> None:
        delivery = await self.store.outbox.claim(session_id, self.worker_id)
        assert isinstance(delivery, Delivery), delivery
        change = Settle(
            state=DeliveryState.DELIVERED, platform_id=f"platform-{delivery.delivery_id}"
        )
        await self.store.outbox.settle(delivery, self.worker_id, change)


def _proposed() -> list[ProposedCall]:
    return [
        ProposedCall(tool="read", arguments=f'{{"path": "file-{place}"}}', effect=Effect.NONE)
        for place in (1, 2)
    ]


def _respond(command: Command, facts: SessionFacts) -> Response:
    raise NotImplementedError(command, facts)


def chats(load: Load, run_id: str, known: int, first: int) -> Callable[[int, int], str]:
    """New chats all the time; or, in a filled database, `VISITED` of those it has, in turn."""

    def visit(client: int, number: int) -> int:
        return client + load.clients * (number // load.turns_per_session)

    if not known:
        return lambda client, number: f"{run_id}-{visit(client, number)}"
    stride = known // VISITED
    return lambda client, number: f"chat-{1 + first + visit(client, number) % VISITED * stride}"


VISITED = 640
"""How many of the known chats are used: the same in a small and in a large database, so that what
they remember has the same length."""


async def opened(
    home: Path, url: str, world: BootConfig, options: StoreOptions
) -> SqliteStore | PostgresStore:
    """The store in the home, or the one at the address."""
    clock, wakeups = SystemClock(), LocalWakeups()
    if not url:
        return await open_store(home, world=world, clock=clock, wakeups=wakeups, options=options)
    return await open_postgres(
        url, home, world=world, clock=clock, wakeups=wakeups, options=options
    )


async def run(load: Load, home: Path, url: str, *, batch_max: int, known: int, first: int) -> None:
    world = BootConfig(
        policy=Policy(),
        channels={ChannelName(CHANNEL): True},
        is_allowed=lambda _channel, _person: True,
    )
    options = StoreOptions(batch_max=batch_max) if batch_max else StoreOptions()
    store = await opened(home, url, world, options)
    worker = await store.workers.start("bench", os.getpid(), "bench", "0")
    run_id = f"run-{os.getpid()}-{time.time_ns()}"
    dispatch = Dispatch(store=store, worker_id=worker.worker_id)
    conversation = Conversation(
        store=store,
        worker_id=worker.worker_id,
        run_id=run_id,
        chat_of=chats(load, run_id, known, first),
        dispatch=dispatch,
    )
    # As the gateway does, once it is up.
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    async with create_task_group() as tasks:
        tasks.start_soon(dispatch.keep_claiming)
        measured = await measure(conversation.turn, load, lambda: store.commits)
        tasks.cancel_scope.cancel()
    await store.close()
    print_line(measured)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--batch-max", type=int, default=0, help="operations in one commit")
    options.add_argument("--url", default="", help="a database of PostgreSQL instead of the file")
    options.add_argument("--known", type=int, default=0, help="chats that the database holds")
    options.add_argument("--first", type=int, default=0, help="where among them to begin")
    chosen = options.parse_args()
    load = load_of(chosen)
    home = load.file.parent
    home.mkdir(parents=True, exist_ok=True)
    collect_seldom()  # as the gateway does
    known, first = chosen.known, chosen.first
    asyncio.run(run(load, home, chosen.url, batch_max=chosen.batch_max, known=known, first=first))


if __name__ == "__main__":
    main()
