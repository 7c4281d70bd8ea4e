"""The store in a process of its own, for tests that kill it: `python -m tests.harness.victim …`

    story HOME          every verb, once; KOBOSHI_CRASH_AT says where it dies
    stories FOLDER      reads crash points and forks a process that tells the story for each
    open HOME           opens the store and closes it
    hold HOME           has the store open until its input ends
    messages HOME N     accepts N messages, one by one, and says what came back

What it prints is flushed at once: it says only what the store has answered.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from koboshi.domain.budget import Bill
from koboshi.domain.chain import LinkFailure
from koboshi.domain.command import ActionStanding, CommandName, OperatorAction
from koboshi.domain.errors import StoreFailed
from koboshi.domain.ids import CallId, Seq
from koboshi.domain.outbox import Delivery, DeliveryState, Postpone, Settle, held
from koboshi.domain.process import Birth, ProcessState
from koboshi.domain.retry import Again
from koboshi.domain.transcript import Note, Summary
from koboshi.domain.trouble import ModelTrouble
from koboshi.domain.turn import Claim
from koboshi.domain.watch import Finding, WatcherKind, WatcherSpec
from koboshi.domain.worker import EndedHow
from koboshi.ports.views import Page
from koboshi.stores import faults
from koboshi.stores.sqlite.store import SqliteStore
from tests.harness.backends import IMPATIENT, SqliteBackend
from tests.harness.fake_time import DAY_MS
from tests.harness.homes import FRONT, SILENT, Home, a_call
from tests.harness.victim_agents import with_agents
from tests.harness.victim_children import with_children
from tests.harness.victim_memory import with_memory
from tests.harness.victim_nodes import with_nodes
from tests.harness.victim_people import with_approvals, with_strangers
from tests.harness.victim_time import with_time


async def open_here(
    path: Path, *, crash_at: str = "", accepts_loss: bool = False, may_replace: bool = True
) -> Home:
    options = replace(
        IMPATIENT, crash_at=crash_at, accepts_loss=accepts_loss, may_replace=may_replace
    )
    home = Home(backend=SqliteBackend(path, options))
    await home.open()
    return home


def warnings_of(home: Home) -> tuple[str, ...]:
    assert isinstance(home.store, SqliteStore)
    return home.store.warnings


async def story(home: Home) -> AsyncIterator[str]:
    """Every verb of the store, each a write of its own; yields its name once it has returned.
    The one who reads the file between two of them finds the same at every run."""
    store, turns = home.store, home.store.turns
    home.worker = await store.workers.start("host", 1, "birth", "0.1")
    worker_id = home.worker.worker_id
    yield "workers.start"
    home.clock.move(1_000)
    await store.workers.beat(worker_id)
    yield "workers.beat"
    await home.say("one", cursor="1")
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    await turns.retry_model(claim, SILENT)
    yield "turns.retry_model"
    failure = LinkFailure(model="a:1", trouble=ModelTrouble.BUSY, reason="busy")
    await store.models.bench(failure)
    yield "models.bench"
    await store.models.put_on(claim, "b:2", "a:1: busy")
    yield "models.put_on"
    await store.models.lift("a:1")
    yield "models.lift"
    bill = await store.budget.reserve(claim.session_id, claim.turn_id, "a:1", 10)
    assert isinstance(bill, Bill)
    yield "budget.reserve"
    await store.budget.reserve(claim.session_id, claim.turn_id, "a:1", 20)
    yield "budget.reserve"
    await store.budget.settle(bill, 7)
    yield "budget.settle"
    await store.budget.hold(claim, 1_000, "used")
    yield "budget.hold"
    home.clock.move(1_000)
    claim = await home.claim()
    yield "turns.claim"
    first, second = await home.propose(claim, a_call("a"), a_call("b"))
    yield "turns.append"
    await home.start(claim, first)
    yield "turns.start_call"
    await home.finish(claim, first)
    yield "turns.finish_call"
    await turns.note(claim, Note(cause="test", text="a note"))
    yield "turns.note"
    await turns.summarise(claim, Summary(text="so far", covers=Seq(1)))
    yield "turns.summarise"
    async for verb in with_a_process(home, claim, second):
        yield verb
    await turns.tell_progress(claim, 1, "Still working.")
    yield "turns.tell_progress"
    await turns.postpone(claim, 1_000, "busy")
    yield "turns.postpone"
    home.clock.move(1_000)
    claim = await home.claim()
    yield "turns.claim"
    await turns.release(claim)
    yield "turns.release"
    claim = await home.claim()
    yield "turns.claim"
    await turns.ask(claim, second, "which one?", (), DAY_MS)
    yield "turns.ask"
    home.clock.move(DAY_MS)
    await turns.expire(10)
    yield "turns.expire"
    async for verb in with_deliveries(home):
        yield verb
    async for verb in with_an_operator(home):
        yield verb
    async for verb in with_a_message_in_hand(home):
        yield verb
    async for verb in with_approvals(home):
        yield verb
    async for verb in with_strangers(home):
        yield verb
    assert not await store.inbox.bind({FRONT: "111"})
    yield "inbox.bind"
    await store.inbox.connect(FRONT, "111")
    yield "inbox.connect"
    assert await store.inbox.bind({FRONT: "222"})
    yield "inbox.bind"
    async for verb in with_old_rows(home):
        yield verb
    async for verb in with_time(home):
        yield verb
    async for verb in with_children(home):
        yield verb
    async for verb in with_memory(home):
        yield verb
    async for verb in with_agents(home):
        yield verb
    async for verb in with_nodes(home):
        yield verb
    async for verb in with_the_end(home):
        yield verb


async def with_a_process(home: Home, claim: Claim, call_id: CallId) -> AsyncIterator[str]:
    processes = home.store.processes
    process = await processes.begin(
        claim,
        call_id,
        command="sleep 1",
        workdir=".",
        is_foreground=False,
        watchers=(WatcherSpec(kind=WatcherKind.MATCH, argument="ready"),),
    )
    yield "processes.begin"
    process_id = process.process_id
    await processes.born(process_id, Birth(boot_id="b", pid=1, start_ticks=1))
    yield "processes.born"
    (watcher,) = await processes.watchers(process_id)
    found = Finding(watcher=replace(watcher, log_offset=6, reports=1), output="ready")
    assert await processes.report(watcher, found)
    yield "processes.report"
    await processes.ask_end(process_id)
    yield "processes.ask_end"
    await processes.ended(process_id, ProcessState.LOST, exit_code=None, reason="asked", ended_ms=1)
    yield "processes.ended"
    await processes.ask_end(process_id)
    yield "processes.ask_end"
    await home.store.turns.note(claim, Note(cause="beside", text="what is left of it is ended"))
    yield "turns.note"
    await processes.remains_ended(process_id)
    yield "processes.remains_ended"
    await processes.forget(process_id)
    yield "processes.forget"


async def with_an_operator(home: Home) -> AsyncIterator[str]:
    """A turn that no worker holds is dropped; a delivery is dropped and then owed again."""
    await home.say("two")
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    await home.store.turns.release(claim)
    yield "turns.release"
    assert await home.store.turns.will(claim.turn_id, OperatorAction.DROP) is ActionStanding.LEFT
    yield "turns.will"
    await home.stop()
    yield "inbox.accept"
    (owed,) = await home.store.views.deliveries(Page(limit=1, before=2**40, is_open=True))
    assert await home.store.outbox.drop(owed.delivery_id)
    yield "outbox.drop"
    assert await home.store.outbox.retry(owed.delivery_id)
    yield "outbox.retry"


async def with_a_message_in_hand(home: Home) -> AsyncIterator[str]:
    """A message that waits is dropped and then asked again."""
    await home.say("three", chat="cat")
    yield "inbox.accept"
    waits = await home.say("four", chat="cat")
    yield "inbox.accept"
    assert await home.store.inbox.drop(waits.entry_id)
    yield "inbox.drop"
    retried = await home.store.inbox.retry(waits.entry_id)
    assert retried is not None
    assert retried.how is Again.UNHEARD
    yield "inbox.retry"
    await home.stop(chat="cat")
    yield "inbox.accept"


async def with_deliveries(home: Home) -> AsyncIterator[str]:
    outbox, worker_id = home.store.outbox, home.worker.worker_id
    session_id = await home.session_id()
    delivery = await outbox.claim(session_id, worker_id)
    assert isinstance(delivery, Delivery)
    yield "outbox.claim"
    later = Postpone(wait_ms=30_000, is_ambiguous=False, reason="not reached")
    await outbox.settle(delivery, worker_id, later)
    yield "outbox.settle"
    assert await outbox.hasten(delivery.route.channel) == 1
    yield "outbox.hasten"
    delivery = await outbox.claim(session_id, worker_id)
    assert isinstance(delivery, Delivery)
    yield "outbox.claim"
    await outbox.label(delivery, worker_id)
    yield "outbox.label"
    unsure = Postpone(wait_ms=0, is_ambiguous=True, reason="timeout")
    await outbox.settle(delivery, worker_id, unsure)
    yield "outbox.settle"
    delivery = await outbox.claim(session_id, worker_id)
    assert isinstance(delivery, Delivery)
    yield "outbox.claim"
    await outbox.settle(delivery, worker_id, held("nobody knows"))
    yield "outbox.settle"
    assert await outbox.release(delivery.delivery_id) == 1
    yield "outbox.release"
    delivery = await outbox.claim(session_id, worker_id)
    assert isinstance(delivery, Delivery)
    yield "outbox.claim"
    arrived = Settle(state=DeliveryState.DELIVERED, platform_id="p1")
    await outbox.settle(delivery, worker_id, arrived)
    yield "outbox.settle"


async def with_the_end(home: Home) -> AsyncIterator[str]:
    store = home.store
    await home.say("two", chat="bob", cursor="2")
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    await store.workers.end_left("host", "birth")
    yield "workers.end_left"
    home.worker = await store.workers.start("host", 2, "birth", "0.1")
    yield "workers.start"
    await home.recover(claim.turn_id)
    yield "turns.recover"
    await home.wait_until_due()
    claim = await home.claim()
    yield "turns.claim"
    await home.answer(claim, "an answer")
    yield "turns.answer"
    await home.say("three", chat="bob")
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    await store.turns.fail(claim, "it broke")
    yield "turns.fail"
    await store.workers.report(home.worker.worker_id, "found nothing", "back")
    yield "workers.report"
    await store.workers.begin_drain(home.worker.worker_id)
    yield "workers.begin_drain"
    await store.workers.request_restart(home.worker.worker_id, "entry:1")
    yield "workers.request_restart"
    await store.workers.end(home.worker.worker_id, EndedHow.STOPPED)
    yield "workers.end"


async def with_old_rows(home: Home) -> AsyncIterator[str]:
    """Long after it was closed, what a chat with nothing open has left is forgotten."""
    await home.say("four", chat="eve")
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    await home.answer(claim, "good", "bye")
    yield "turns.answer"
    for _ in range(2):
        owed = await home.take_delivery("eve")
        yield "outbox.claim"
        arrived = Settle(state=DeliveryState.DELIVERED, platform_id=f"p{owed.delivery_id}")
        await home.store.outbox.settle(owed, home.worker.worker_id, arrived)
        yield "outbox.settle"
    await home.command(CommandName.STATUS, chat="bob")
    yield "inbox.accept"
    home.clock.move(91 * DAY_MS)
    retention, now_ms = home.store.retention, home.clock.now_ms()
    lines = await retention.lines(0, now_ms - 90 * DAY_MS, 2**40)
    assert await retention.forget_lines(lines.ids)
    yield "retention.forget_lines"
    deliveries = await retention.deliveries(0, now_ms - 90 * DAY_MS)
    assert await retention.forget_deliveries(deliveries.ids)
    yield "retention.forget_deliveries"


async def tell(path: Path, crash_at: str) -> None:
    home = await open_here(path, crash_at=crash_at)
    async for _verb in story(home):
        pass
    await home.store.close()


def tell_many(folder: Path) -> None:
    """One forked process for each line of input, in the folder `FOLDER/<line>`; prints how it
    ended. Nothing but this thread runs here, so that a fork is a whole process."""
    for line in sys.stdin:
        crash_at = line.strip()
        child = os.fork()
        if child == 0:
            asyncio.run(tell(folder / crash_at, crash_at))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        say(crash_at, -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


async def open_and_close(path: Path) -> None:
    home = await open_here(path)
    say("open", *warnings_of(home))
    await home.store.close()


async def hold(path: Path) -> None:
    home = await open_here(path)
    say("open")
    sys.stdin.read()
    await home.store.close()


async def accept_messages(path: Path, count: int) -> int:
    """Prints `stored n` for every message that the store has, and how it ended."""
    home = await open_here(path)
    say("open")
    try:
        await home.store.workers.start("host", os.getpid(), "birth", "0.1")
        for number in range(count):
            await home.say(f"message {number}", chat=f"chat {number}", key=f"key {number}")
            say("stored", number)
    except StoreFailed as error:
        say("failed", error)
        try:
            await home.say("one more", key="one more")
        except StoreFailed:
            say("refused at once, told", len(home.failures))
        return 74
    await home.store.close()
    say("closed")
    return 0


def say(*words: object) -> None:
    print(*words, flush=True)


def main() -> int:
    task, path, *rest = sys.argv[1:]
    match task:
        case "story":
            asyncio.run(tell(Path(path), os.environ.get(faults.VARIABLE, "")))
        case "stories":
            tell_many(Path(path))
        case "open":
            asyncio.run(open_and_close(Path(path)))
        case "hold":
            asyncio.run(hold(Path(path)))
        case "messages":
            return asyncio.run(accept_messages(Path(path), int(rest[0])))
        case _:
            raise ValueError(f"no task {task!r}")
    return 0


if __name__ == "__main__":
    # Without the end of the interpreter: what a dying gateway would not do is not done here.
    os._exit(main())
