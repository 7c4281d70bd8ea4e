"""A short run of the store: a new home, whole turns of a few messages, two lives, a clean end.

What the store has answered is told in a ledger, a file beside the home: a line is written after the
answer, never before. A doctored run does what a store must never do, so that the one who looks for
losses can be seen to find them.
"""

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import apsw
from anyio import create_task_group

from koboshi.domain.turn import Claim
from koboshi.domain.witness import Reached, gap_words, is_behind
from koboshi.stores.sqlite.witness import read_witness
from tests.harness.homes import Home, a_call
from tests.harness.invariants import check_rows
from tests.harness.rows import Rows, read_rows
from tests.harness.victim import open_here, warnings_of

MESSAGES = 4
"""The first half one after the other, the second half at once, in a life of its own."""
LONG = "a long message " * 1_000

Violations: TypeAlias = list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctored:
    """How a run differs from what a gateway does; the default is not at all."""

    synchronous: str = ""
    """How SQLite flushes, if not as the store says."""
    checkpoint_pages: int = 0
    """How soon the log is moved into the file, if not as the store says."""
    tells_first: bool = False
    """Whether a message is acknowledged before it is stored."""

    def prepare(self) -> None:
        """Make every connection from now on differ. What the store asks for itself is ignored."""
        wanted = {
            name: value
            for name, value in (
                ("synchronous", self.synchronous),
                ("wal_autocheckpoint", self.checkpoint_pages),
            )
            if value
        }

        def differ(connection: apsw.Connection) -> None:
            for name, value in wanted.items():
                connection.execute(f"PRAGMA {name} = {value}")
            connection.authorizer = ignore

        def ignore(action: int, name: str | None, *_: str | None) -> int:
            is_it = action == apsw.SQLITE_PRAGMA and name in wanted
            return apsw.SQLITE_IGNORE if is_it else apsw.SQLITE_OK

        if wanted:
            apsw.connection_hooks.append(differ)


AS_IT_IS = Doctored()


def text_of(number: int) -> str:
    return f"message {number} {LONG if number % 3 == 2 else ''}"


class Ledger:
    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def tell(self, what: str, number: int) -> None:
        os.write(self._descriptor, f"{what} {number}\n".encode())


def run(path: Path, ledger_path: Path, doctored: Doctored = AS_IT_IS) -> None:
    """The whole run, in this process."""
    doctored.prepare()
    path.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(ledger_path)
    half = MESSAGES // 2
    asyncio.run(_one_by_one(path, ledger, range(half), doctored))
    asyncio.run(_at_once(path, ledger, range(half, MESSAGES), doctored))


async def _one_by_one(path: Path, ledger: Ledger, numbers: range, doctored: Doctored) -> None:
    home = await open_here(path)
    await _boot(home)
    for number in numbers:
        await _say(home, ledger, number, doctored)
        await _answer_all(home, ledger)
        await _beat(home)
    await home.store.close()


async def _at_once(path: Path, ledger: Ledger, numbers: range, doctored: Doctored) -> None:
    home = await open_here(path)
    await _boot(home)
    async with create_task_group() as tasks:
        for number in numbers:
            tasks.start_soon(_say, home, ledger, number, doctored)
    await _beat(home)
    await _answer_all(home, ledger)
    await home.store.close()


async def _boot(home: Home) -> None:
    home.worker = await home.store.workers.start("host", 1, "birth", "0.1")


async def _beat(home: Home) -> None:
    await home.store.workers.beat(home.worker.worker_id)


async def _say(home: Home, ledger: Ledger, number: int, doctored: Doctored) -> None:
    ledger.tell("tried", number)
    if doctored.tells_first:
        ledger.tell("accepted", number)
    receipt = await home.say(text_of(number), chat=f"chat-{number}", key=f"key-{number}")
    assert receipt.is_same or not receipt.is_duplicate
    if not doctored.tells_first:
        ledger.tell("accepted", number)


async def _answer_all(home: Home, ledger: Ledger) -> None:
    """Work on every turn that is due, and deliver everything that is owed."""
    for claim in await home.claims():
        await _work(home, claim)
        number = int((await home.view(claim.turn_id)).route.chat.removeprefix("chat-"))
        ledger.tell("answered", number)
        await home.deliver(f"chat-{number}")
        ledger.tell("delivered", number)


async def _work(home: Home, claim: Claim) -> None:
    """One call and an answer, from wherever the transcript is."""
    if not (await home.store.turns.load(claim)).calls:
        await home.propose(claim, a_call())
    for record in (await home.store.turns.load(claim)).calls:
        if record.started_ms is None:
            await home.start(claim, record.call.call_id)
        if record.is_unresolved:
            await home.finish(claim, record.call.call_id)
    await home.answer(claim, "an answer")


# ── what must be true afterwards ────────────────────────────────────────────────────────────────


def check(path: Path, told: str) -> Violations:
    """What is wrong with the files of a run that ended somewhere, against what the ledger tells of
    it; and with what the next life makes of them."""
    return losses(path, told) or _of_the_next_life(path)


def losses(path: Path, told: str) -> Violations:
    """What is wrong with the files, read as they are."""
    try:
        rows = read_rows(path)
        return _losses_in(rows, told) + _false_witness(path, rows)
    except apsw.Error as error:
        return [f"the database is broken: {type(error).__name__}: {error}"]


def _losses_in(rows: Rows, told: str) -> Violations:
    lines = [line.split() for line in told.splitlines()]
    tried = {f"key-{number}" for what, number in lines if what == "tried"}
    by_key = {row["external_id"]: row for row in rows.inbox}
    found = [f"damage: {words}" for words in rows.damage]
    found += [f"{key} was never sent" for key in by_key.keys() - tried]
    for what, number in lines:
        entry = by_key.get(f"key-{number}")
        if what != "tried" and not _holds(rows, what, int(number), entry):
            found.append(f"{what} {number} was told and is not there")
    return found


def _false_witness(path: Path, rows: Rows) -> Violations:
    """The witness never tells of more than there is, whatever was cut or killed."""
    witness = read_witness(path)
    newest = rows.journal[-1] if rows.journal else {"seq": 0, "at_ms": 0}
    if witness is None:
        return []
    reached = Reached(
        journal=newest["seq"],
        at_ms=newest["at_ms"],
        knows_boot=bool(rows.of("workers", worker_id=witness.boot, birth=witness.birth)),
    )
    return [f"false alarm: {gap_words(witness, reached)}"] if is_behind(witness, reached) else []


def _holds(rows: Rows, what: str, number: int, entry: dict[str, object] | None) -> bool:
    if entry is None:
        return False
    turn_id = entry["turn_id"]
    match what:
        case "accepted":
            return bool(json.loads(str(entry["body"]))["text"] == text_of(number))
        case "answered":
            return len(rows.of("steps", turn_id=turn_id, kind="answer")) == 1
        case _:
            return len(rows.of("outbox", turn_id=turn_id, state="delivered")) == 1


def _of_the_next_life(path: Path) -> Violations:
    """The next life takes everything up, hears all messages again, and comes to rest."""
    try:
        asyncio.run(_finish(path))
        rows = read_rows(path)
        check_rows(rows)
    except Exception as error:  # whatever it is, it is a finding
        return [f"the next life: {type(error).__name__}: {error}"]
    keys = sorted(row["external_id"] for row in rows.inbox)
    if keys != [f"key-{number}" for number in range(MESSAGES)]:
        return [f"in the end there are {keys}"]
    return []


async def _finish(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    home = await open_here(path)
    assert not warnings_of(home), "nothing is wrong with what a death leaves"
    await _boot(home)
    for turn_id in await home.store.turns.unowned(with_suspended=True):
        await home.recover(turn_id)
    for number in range(MESSAGES):
        await home.say(text_of(number), chat=f"chat-{number}", key=f"key-{number}")
    while not await _is_over(home):
        for claim in await home.claims():
            await _work(home, claim)
        for number in range(MESSAGES):
            await home.deliver(f"chat-{number}")
    await home.store.close()


async def _is_over(home: Home) -> bool:
    """Nothing is left to do; or it is not time for it yet, and then it is."""
    await home.wait_until_due()
    status = await home.store.views.status()
    return not any((*status.turns.values(), status.inbox_waiting, status.outbox_unsettled))
