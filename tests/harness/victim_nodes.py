"""The verbs of gateways that share a database, one after the other, for the story that is killed
at each. A file has one gateway; the rows of another one are put there."""

from asyncio import sleep
from collections.abc import AsyncIterator, Awaitable, Generator
from types import coroutine
from unittest.mock import patch

from koboshi.kernel.kept_files import PIECE_BYTES
from koboshi.kernel.transaction import NO_KEYS, Keys, Operation, Outcome
from koboshi.stores.sqlite.store import SqliteStore
from tests.harness.fake_time import DAY_MS
from tests.harness.homes import FRONT, Home, a_call

OTHER = 77
"""A worker on another node."""


async def with_nodes(home: Home) -> AsyncIterator[str]:
    """Another gateway is found dead, and what it held is seen to."""
    store, worker_id = home.store, home.worker.worker_id
    async for verb in _with_another(home):
        yield verb
    (sign,) = await store.workers.others(worker_id)
    async for verb in _write_by_write(home, store.workers.bury(sign)):
        yield verb
    home.clock.move(1_000)
    assert await store.processes.look_elsewhere(told_ms=1_000, lost_ms=DAY_MS) == 1
    yield "processes.look_elsewhere"
    home.clock.move(DAY_MS)
    assert await store.processes.look_elsewhere(told_ms=1_000, lost_ms=DAY_MS) == 1
    yield "processes.look_elsewhere"
    content = bytes(PIECE_BYTES + 1)
    async for verb in _write_by_write(home, store.files.put("files/a", content)):
        yield verb
    assert await store.files.get("files/a") == content
    epoch = await store.accounts.take(FRONT, worker_id)
    assert epoch is not None
    yield "accounts.take"
    await store.accounts.give_back(FRONT, worker_id, epoch)
    yield "accounts.give_back"
    await store.files.forget("files/a")
    yield "files.forget"
    await store.browsers.offer("new", life_ms=1_000, kept=2)
    assert home.sql("SELECT code_hash FROM login_codes") == [("new",)]
    yield "browsers.offer"
    assert await store.browsers.redeem("new")
    yield "browsers.redeem"


async def _with_another(home: Home) -> AsyncIterator[str]:
    """Another gateway has a turn, of which it told, and a process of it; and a code has expired.
    This one does not know whether two sends of its own arrived."""
    store, worker_id = home.store, home.worker.worker_id
    await home.say("long work", chat="nan")
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    (call_id,) = await home.propose(claim, a_call("run"))
    yield "turns.append"
    process = await store.processes.begin(
        claim, call_id, command="make", workdir=".", is_foreground=False
    )
    yield "processes.begin"
    await store.turns.tell_progress(claim, 1, "Still working.")
    yield "turns.tell_progress"
    now_ms = home.clock.now_ms()
    home.sql(
        "INSERT INTO workers (worker_id, host, pid, birth, version, started_ms, heartbeat_ms, "
        f"node, home) VALUES ({OTHER}, 'b', 1, 'x/1', '0.1', {now_ms}, {now_ms}, 'b', 'elsewhere')",
        f"UPDATE turns SET worker_id = {OTHER} WHERE turn_id = {claim.turn_id}",
        "UPDATE processes SET node = 'b', home = 'elsewhere' "
        f"WHERE process_id = {process.process_id}",
        f"INSERT INTO login_codes (code_hash, expires_ms) VALUES ('old', {now_ms})",
    )
    for chat in ("neil", "nora"):
        await home.say("short work", chat=chat)
        yield "inbox.accept"
        claim = await home.claim()
        yield "turns.claim"
        await home.answer(claim, "done")
        yield "turns.answer"
        await home.take_delivery(chat)
        yield "outbox.claim"
    assert await store.outbox.let_go(worker_id, frozenset()) == 2
    yield "outbox.let_go"


async def _write_by_write(home: Home, call: Awaitable[object]) -> AsyncIterator[str]:
    """Carry out a call that writes more than once; yields the verb of each write once it is
    durable, and the call goes on when the next one is asked for."""
    assert isinstance(home.store, SqliteStore)
    write, durable = home.store._writer.write, list[str]()

    async def pausing(verb: str, operation: Operation[Outcome], keys: Keys = NO_KEYS) -> Outcome:
        outcome = await write(verb, operation, keys)
        durable.append(verb)
        await sleep(0)  # where `_until_durable` leaves it
        return outcome

    running = call.__await__()
    with patch.object(home.store._writer, "write", pausing):
        await _until_durable(running, durable)
        while durable:
            yield durable.pop()
            await _until_durable(running, durable)


@coroutine
def _until_durable(
    running: Generator[object, None, object], durable: list[str]
) -> Generator[object, None, None]:
    """Go on with what runs until it has written something or has ended."""
    for waited_for in running:
        if durable:
            return
        yield waited_for
