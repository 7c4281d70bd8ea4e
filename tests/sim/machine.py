"""The real store on real files, driven by rules in any order, beside the reference.

A rule does one thing that a person, a worker, the platform or fate may do. What must be true is
looked at after each.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import apsw

from koboshi.domain.errors import Fenced
from koboshi.domain.ids import CallId, DeliveryId, ProcessId, WorkerId
from koboshi.domain.outbox import (
    Delivery,
    DeliveryState,
    GivenUp,
    SendOutcome,
    Settle,
    after_send,
)
from koboshi.domain.turn import Claim
from koboshi.domain.worker import EndedHow
from koboshi.stores.sqlite.file import DATABASE_NAME, open_reader
from tests.harness.fake_time import DAY_MS, SECOND_MS
from tests.harness.homes import Home
from tests.harness.invariants import check_growth, check_rows
from tests.harness.rows import Row, Rows, read_rows, rows_in
from tests.sim.direct import DirectBackend, close_as_it_is, done
from tests.sim.reference import ChatModel
from tests.sim.run import SHARED_MEMORY

Outcome = TypeVar("Outcome")
CHATS = ("ann", "bob")
ROUNDS_MAX = 60
_ALL = DeliveryId(0)


class Machine:
    """A home with its lives, what the reference says of it, and ledgers of our own."""

    def __init__(self) -> None:
        place = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="koboshi-machine-", dir=place))
        self.backend = DirectBackend(self.folder / "home")
        self.home = self.do(_made(self.backend))
        self.chats = {chat: ChatModel() for chat in CHATS}
        self.places = {chat: chat for chat in CHATS}
        """Where each chat lives now."""
        self.claims: list[Claim] = []
        self.old_claims: list[Claim] = []
        self.sending: list[Delivery] = []
        self.old_sending: list[tuple[Delivery, WorkerId]] = []
        self.keys: list[tuple[str, str, str]] = []
        """What was accepted: chat, key and words."""
        self.held_back: list[tuple[str, str, str]] = []
        """What was written, and the platform has not brought yet."""
        self.started: Counter[tuple[int, str]] = Counter()
        self.started_in: dict[tuple[int, str], int] = {}
        self.processes: list[ProcessId] = []
        self.read: dict[ProcessId, bool] = {}
        """Processes whose end was shown to a model, and whether it had been told before that."""
        self.tally: Counter[str] = Counter()
        self.reader = self._open_reader()
        self.rows = rows_in(self.reader)
        self.version = self._version()
        """Of the file when the rows were read; it changes with every commit."""

    def do(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        return done(work)

    def close(self) -> None:
        close_as_it_is(self.reader)
        self.do(self.home.store.close())
        shutil.rmtree(self.folder, ignore_errors=True)

    # ── what fate does ──────────────────────────────────────────────────────────────────────────

    def crash(self) -> None:
        """The worker is gone, and another one begins."""
        close_as_it_is(self.reader)
        worker = self.home.worker.worker_id
        self.do(self.home.reopen(crash=True))
        self.reader = self._open_reader()
        self.old_claims += self.claims
        self.old_sending += [(delivery, worker) for delivery in self.sending]
        self.claims, self.sending = [], []
        self.tally["crashes"] += 1

    def take_over(self) -> None:
        """Another worker begins on the same store. The first one does not know, and holds on to
        its claims until recovery has moved them."""
        worker = self.home.worker.worker_id
        self.home.worker = self.do(self.home.store.workers.start("host", 4712, "other", "0.1"))
        self.old_sending += [(delivery, worker) for delivery in self.sending]
        self.sending = []
        self.tally["workers that took over"] += 1

    def drain(self, words: str) -> None:
        """The worker is asked to leave: it takes what people say, gives back what it works on, and
        another one begins."""
        store, worker_id = self.home.store, self.home.worker.worker_id
        self.do(store.workers.begin_drain(worker_id))
        self.look()
        if words:
            self.says(CHATS[0], words)
        for claim in self._good_claims():
            self.do(store.turns.release(claim))
            self.chats[self.chat_of(claim.session_id)].is_judged("queued")
        self.do(store.workers.end(worker_id, EndedHow.LEFTOVERS))
        close_as_it_is(self.reader)
        self.do(self.home.reopen(crash=False))
        self.reader = self._open_reader()
        self.old_claims += self.claims
        self.old_sending += [(delivery, worker_id) for delivery in self.sending]
        self.claims, self.sending = [], []
        self.tally["drains"] += 1

    def recover(self) -> None:
        """Every turn that no worker holds gets its verdict."""
        turns = self.home.store.turns
        for turn_id in self.do(turns.unowned(with_suspended=True)):
            before = self.look().one("turns", turn_id=turn_id)
            self.do(turns.recover(turn_id))
            after = self.look().one("turns", turn_id=turn_id)
            if before["crash_streak"] >= 2 and before["state"] == "running":
                assert after["state"] == "failed", "it died three times in a row"
            self._judged(turn_id)

    def claim(self) -> None:
        before = {row["turn_id"]: row for row in self.rows.turns}
        claims = self.do(self.home.claims())
        self.claims += claims
        self.tally["claims"] += len(claims)
        for claim in claims:
            assert claim.epoch == before[claim.turn_id]["epoch"] + 1
            if claim.epoch == 1:
                chat = self.chat_of(claim.session_id)
                self.chats[chat].is_claimed_first(claim.worker_id)
        for row in before.values():
            if row["state"] == "queued":
                self._judged(row["turn_id"])

    def _judged(self, turn_id: int) -> None:
        row = self.look().one("turns", turn_id=turn_id)
        chat = self.chat_of(row["session_id"])
        self.chats[chat].is_judged(row["state"], is_new=row["epoch"] == 0)

    # ── what is looked at after each rule ───────────────────────────────────────────────────────

    def look(self) -> Rows:
        """The rows as they are now; what was there before may only have grown."""
        version = self._version()
        if version == self.version:
            return self.rows
        rows = rows_in(self.reader)
        check_growth([self.rows], rows)
        self.rows, self.version = rows, version
        return rows

    def _version(self) -> tuple[int, int]:
        """Each connection counts for itself."""
        lives = self.tally["crashes"] + self.tally["drains"]
        return lives, self.reader.pragma("data_version")

    def check(self) -> None:
        rows = self.look()
        stored = {row["external_id"] for row in rows.inbox}
        assert {key for _, key, _ in self.keys} <= stored, "an accepted message is lost"
        for chat in CHATS:
            self._check_chat(chat, rows)
        self._check_calls(rows)
        self._check_reports(rows)

    def _check_chat(self, chat: str, rows: Rows) -> None:
        found = rows.of("sessions", chat=self.places[chat])
        if not found:
            return
        session_id, model = found[0]["session_id"], self.chats[chat]
        turns = rows.of("turns", session_id=session_id)
        opened = [row for row in turns if row["state"] not in ("answered", *_ENDED)]
        assert len(opened) <= 1, "two open turns in one session"
        state = opened[0]["state"] if opened else None
        entries = rows.of("inbox", session_id=session_id, state="waiting")
        waiting = [row["external_id"] for row in entries if row["kind"] == "message"]
        if model.may_open:
            model.learns(state, waiting)
        assert (model.state, model.waiting) == (state, waiting), "the reference says otherwise"
        model.may_open = any(row["kind"] == "report" for row in entries)

    def _check_calls(self, rows: Rows) -> None:
        for place, count in self.started.items():
            assert count == 1, f"call {place} was started {count} times"
        worker_id = self.home.worker.worker_id
        for turn in rows.of("turns", state="running", worker_id=worker_id):
            for call in rows.of("calls", turn_id=turn["turn_id"], effect="once"):
                if call["started_ms"] and not call["finished_ms"] and call["need"] != "answer":
                    begun = self.started_in[call["turn_id"], call["call_id"]]
                    assert begun == turn["epoch"], "a call of an earlier life looks runnable"

    def _check_reports(self, rows: Rows) -> None:
        for process_id, was_told in self.read.items():
            found = rows.of("inbox", external_id=f"{process_id}:end")
            is_told = any(row["state"] in ("attached", "handled") for row in found)
            assert was_told or not is_told, f"process {process_id} is announced after it was read"

    # ── what the rules need to know ─────────────────────────────────────────────────────────────

    def chat_of(self, session_id: int) -> str:
        place = self.rows.one("sessions", session_id=session_id)["chat"]
        return next(chat for chat in CHATS if self.places[chat] == place)

    @property
    def all_claims(self) -> list[Claim]:
        """Every claim there ever was."""
        return [*self.old_claims, *self.claims]

    def claimed(self, pick: int) -> tuple[Claim, ChatModel] | None:
        """One of the claims that are good, with its chat. Where there is none, a person writes and
        is claimed; None if what is open cannot be worked on now."""
        if not self._good_claims():
            if all(model.turn is None for model in self.chats.values()):
                self.says(CHATS[pick % len(CHATS)], "hello")
            self.claim()
            self.look()
        good = self._good_claims()
        if not good:
            return None
        claim = good[pick % len(good)]
        return claim, self.chats[self.chat_of(claim.session_id)]

    def says(self, chat: str, text: str) -> None:
        """A person writes something new."""
        self.comes(chat, self._next_key(), text)

    def writes(self, chat: str, text: str) -> None:
        """A person writes something that the platform does not bring yet."""
        self.held_back.append((chat, self._next_key(), text))

    def _next_key(self) -> str:
        return f"key-{len(self.keys) + len(self.held_back)}"

    def comes(self, chat: str, key: str, text: str) -> None:
        """The platform brings what a person wrote."""
        self.chats[chat].hears(key, text, self.home.worker.worker_id)
        self.do(self.home.say(text, chat=self.places[chat], key=key))
        self.keys.append((chat, key, text))
        self.look()

    def _good_claims(self) -> list[Claim]:
        return [claim for claim in self.claims if self.is_held(claim)]

    def is_held(self, claim: Claim) -> bool:
        row = self.rows.one("turns", turn_id=claim.turn_id)
        return (row["state"], row["epoch"]) == ("running", claim.epoch)

    def open_calls(self, claim: Claim) -> list[Row]:
        calls = self.rows.of("calls", turn_id=claim.turn_id)
        return [call for call in calls if not call["finished_ms"] and not call["skipped_ms"]]

    def start(self, claim: Claim, call_id: CallId) -> bool:
        """Whether the call may run; then it did."""
        is_started = self.do(self.home.store.turns.start_call(claim, call_id))
        if is_started:
            self.started[claim.turn_id, call_id] += 1
            self.started_in[claim.turn_id, call_id] = claim.epoch
        return is_started

    def take(self, chat: str) -> Delivery | None:
        """The oldest that is owed, if it is due."""
        session = self.rows.of("sessions", chat=self.places[chat])
        if not session:
            return None
        session_id = session[0]["session_id"]
        worker_id = self.home.worker.worker_id
        taken = self.do(self.home.store.outbox.claim(session_id, worker_id))
        if not isinstance(taken, Delivery):
            return None
        owed = self.rows.of("outbox", session_id=session_id)
        unsettled = [row["delivery_id"] for row in owed if row["settled_ms"] is None]
        is_reply = taken.cause.startswith("command:")
        assert taken.delivery_id == unsettled[0] or is_reply, "not the oldest one"
        before = self.rows.one("outbox", delivery_id=taken.delivery_id)
        after = self.look().one("outbox", delivery_id=taken.delivery_id)
        assert after["attempts"] == before["attempts"] + 1, "a try that is not counted"
        assert taken.is_ambiguous or before["state"] != "sending", "a lost send is called new"
        return taken

    def settle(self, delivery: Delivery, outcome: SendOutcome) -> None:
        self.do(self.settling(delivery, self.home.worker.worker_id, outcome))

    async def settling(self, delivery: Delivery, worker_id: WorkerId, outcome: SendOutcome) -> None:
        change = after_send(delivery, outcome)
        await self.home.store.outbox.settle(delivery, worker_id, change)

    def is_refused(self, write: Coroutine[Any, Any, object]) -> None:
        """A write of a person whose claim is over changes nothing, and they are told so."""
        before = self.look()
        try:
            is_taken = self.do(write) is not False
        except Fenced:
            is_taken = False
        assert not is_taken, "a write of an old claim was taken"
        self.tally["fenced"] += 1
        assert rows_in(self.reader) == before, "a refused write changed something"

    def come_to_rest(self) -> None:
        """Restart until everything has come to an end, then look at everything."""
        for _ in range(ROUNDS_MAX):
            rows = self.look()
            is_quiet = all(row["closed_ms"] for row in rows.turns)
            if is_quiet and all(row["settled_ms"] for row in rows.outbox):
                break
            self.crash()
            self.do(_finish(self.home))
        final = read_rows(self.backend.path)
        check_growth([self.rows], final)
        check_rows(final)
        self.tally["messages"] += len(final.of("inbox", kind="message"))
        self.tally["answers"] += len(final.of("steps", kind="answer"))
        self.tally["deliveries"] += len(final.outbox)

    def _open_reader(self) -> apsw.Connection:
        return open_reader(self.backend.path / DATABASE_NAME)


_ENDED = ("done", "stopped", "failed")


async def _made(backend: DirectBackend) -> Home:
    home = Home(backend)
    await home.boot()
    return home


async def _finish(home: Home) -> None:
    """One life in which everything goes well, as far as it can."""
    store, worker_id = home.store, home.worker.worker_id
    for turn_id in await store.turns.unowned(with_suspended=True):
        await store.turns.recover(turn_id)
    await store.turns.expire(100)
    home.clock.move(60 * SECOND_MS)
    for claim in await home.claims():
        await home.answer(claim)
    for due in await store.outbox.due(_ALL):
        while taken := await store.outbox.claim(due.session_id, worker_id):
            if isinstance(taken, GivenUp):
                continue
            if not isinstance(taken, Delivery):
                break
            arrived = Settle(state=DeliveryState.DELIVERED, platform_id="p")
            await store.outbox.settle(taken, worker_id, arrived)
    home.clock.move(DAY_MS)
