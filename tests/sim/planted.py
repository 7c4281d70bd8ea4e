"""Bugs that gateways have had, planted into this one for the length of a block.

Each takes away one promise of the store; nothing else is changed. A campaign that does not notice
proves nothing.
"""

from asyncio import get_running_loop
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any, TypeVar
from unittest.mock import patch

from anyio import CapacityLimiter

from koboshi.agent.context import build_request
from koboshi.domain import backlog, outbox, recovery
from koboshi.domain.backlog import AcceptedMessage
from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.domain.files import Parcel
from koboshi.domain.ids import CallId, ChannelName, Generation, ProcessId, TurnId
from koboshi.domain.inbox import Admission, Entry, admit
from koboshi.domain.outbox import Delivery, DeliveryState, Later, SendOutcome, Settle, Unsure
from koboshi.domain.recovery import TurnFacts
from koboshi.domain.role import Role
from koboshi.domain.telling import Teller
from koboshi.domain.transcript import Note, Result, ResultStatus, Step
from koboshi.domain.turn import Claim
from koboshi.kernel import claims, joining, next_turn, record, telling, turns
from koboshi.kernel import recovery as kernel_recovery
from koboshi.kernel.accept import InboxVerbs
from koboshi.kernel.context import VerbContext
from koboshi.kernel.facts import facts_of
from koboshi.kernel.queries import QUERIES
from koboshi.kernel.transaction import NO_KEYS, Keys, Transaction
from koboshi.kernel.turns import TurnVerbs
from koboshi.ports.channel import Channel
from koboshi.ports.model import ModelReply, Request
from koboshi.ports.store import Loaded
from koboshi.runtime import deliver
from koboshi.runtime import model_caller as asking
from koboshi.runtime.deliver import Deliver
from koboshi.runtime.slots import Slot
from koboshi.stores.sqlite.transaction import QUERIES as PERFORMED
from tests.sim.crowd import FIRST_BOT
from tests.sim.model import SimModel
from tests.sim.store import SimWriter

Outcome = TypeVar("Outcome")


@contextmanager
def no_epoch_in_claimed_writes() -> Iterator[None]:
    """The one who once held a turn may write to it for ever."""
    claimed = "turn_progress turn_held turn_tried_model turn_move call_start_settled".split()
    blind = {name: QUERIES[name].replace("epoch = :epoch", ":epoch = :epoch") for name in claimed}
    with _queries(blind):
        yield


@contextmanager
def answer_and_outbox_apart() -> Iterator[None]:
    """The answer is stored; that it is owed, a moment later."""
    with _done_later(claims, "enqueue_delivery"):
        yield


@contextmanager
def disarmed_apart() -> Iterator[None]:
    """The result that shows how a process ended is stored; that no one needs to be told any more,
    a moment later."""
    with _done_later(turns, "mark_exit_read"):
        yield


@contextmanager
def started_after_the_effect() -> Iterator[None]:
    """That a call has begun is stored when it has ended."""
    start_call, finish_call = TurnVerbs.start_call, TurnVerbs.finish_call

    async def not_yet(
        self: TurnVerbs,
        claim: Claim,
        call_id: CallId,
        seal: str | None = None,
        role: Role = Role.MEMBER,
    ) -> bool:
        return True

    async def start_and_finish(
        self: TurnVerbs,
        claim: Claim,
        result: Result,
        exits_read: Sequence[ProcessId] = (),
        parcel: Parcel | None = None,
    ) -> tuple[Step, ...]:
        await start_call(self, claim, result.call_id)
        return await finish_call(self, claim, result, exits_read, parcel)

    with (
        patch.object(TurnVerbs, "start_call", not_yet),
        patch.object(TurnVerbs, "finish_call", start_and_finish),
    ):
        yield


@contextmanager
def tries_counted_afterwards() -> Iterator[None]:
    """A send is counted when its outcome is known."""
    send = QUERIES["delivery_send"].replace("attempts = attempts + 1,", "")
    known = {
        name: QUERIES[name].replace(
            "worker_id = NULL,", "worker_id = NULL, attempts = attempts + 1,"
        )
        for name in ("delivery_settle", "delivery_postpone")
    }
    with _queries({"delivery_send": send, **known}):
        yield


@contextmanager
def _queries(changed: Mapping[str, str]) -> Iterator[None]:
    """Changed where the store performs them: it has the queries of the kernel and its own."""
    assert changed, "nothing is planted"
    assert all(PERFORMED[name] != query for name, query in changed.items()), "nothing is planted"
    with patch.dict(PERFORMED, changed):
        yield


@contextmanager
def _done_later(module: ModuleType, name: str) -> Iterator[None]:
    """What a function does to the database for a module gets a transaction of its own, behind that
    of the verb."""
    real, write = getattr(module, name), SimWriter.write
    later: dict[Transaction, list[Callable[[Transaction], None]]] = defaultdict(list)
    """By the life that put it off: what is only remembered dies with it."""

    def put_off(tx: Transaction, *arguments: Any, **named: Any) -> None:
        later[tx].append(lambda other: real(other, *arguments, **named))

    async def write_twice(
        self: SimWriter,
        verb: str,
        operation: Callable[[Transaction], Outcome],
        keys: Keys = NO_KEYS,
    ) -> Outcome:
        outcome = await write(self, verb, operation, keys)
        while later[self.transaction]:
            await write(self, f"{verb} (the rest)", later[self.transaction].pop(0), keys)
        return outcome

    with patch.object(module, name, put_off), patch.object(SimWriter, "write", write_twice):
        yield


# ── what the simulation was blind to ────────────────────────────────────────────────────────────


@contextmanager
def abandoned_at_the_first_unsure() -> Iterator[None]:
    """A send of unknown outcome is given up."""

    def give_up(delivery: Delivery, outcome: SendOutcome, *rest: Any, **named: Any) -> Any:
        if isinstance(outcome, Unsure):
            return Settle(state=DeliveryState.ABANDONED, reason="its outcome is unknown")
        return outbox.after_send(delivery, outcome, *rest, **named)

    with patch.object(deliver, "after_send", give_up):
        yield


@contextmanager
def deaths_not_counted() -> Iterator[None]:
    """Each death of a turn is its first."""

    def facts(*arguments: Any, **named: Any) -> TurnFacts:
        found = facts_of(*arguments, **named)
        return replace(found, crash_streak=min(found.crash_streak, 1))

    with patch.object(kernel_recovery, "facts_of", facts):
        yield


@contextmanager
def nothing_is_stale() -> Iterator[None]:
    """However long a turn lay idle, it goes on."""
    with patch.object(recovery, "is_stale", lambda facts, policy: False):
        yield


@contextmanager
def old_generations_are_heard() -> Iterator[None]:
    """What was born before a cut counts as born after it."""

    def as_if_new(entry: Entry, *, generation: Generation, **named: Any) -> Admission:
        return admit(replace(entry, generation=generation), generation=generation, **named)

    with patch.object(next_turn, "admit", as_if_new):
        yield


@contextmanager
def every_person_is_allowed() -> Iterator[None]:
    """No person is checked."""
    with patch.object(VerbContext, "allows", lambda self, tx, channel, person: True):
        yield


# ── what issue 12 promises ──────────────────────────────────────────────────────────────────────


@contextmanager
def no_one_looks_before_a_repeat() -> Iterator[None]:
    """A1: a send of unknown outcome is repeated at once, where the platform could tell."""

    async def no_look(self: Deliver, channel: Channel, delivery: Delivery) -> SendOutcome:
        return Later(wait_ms=0)

    with patch.object(Deliver, "_find", no_look):
        yield


@contextmanager
def newest_first() -> Iterator[None]:
    """A1: what was owed last is said first, also of the parts of one answer."""
    head = QUERIES["delivery_head"]
    with _queries(
        {"delivery_head": head.replace("o.delivery_id LIMIT", "o.delivery_id DESC LIMIT")}
    ):
        yield


@contextmanager
def closed_turns_leave_no_note() -> Iterator[None]:
    """A2: the model is not told how an earlier turn ended."""

    def build(loaded: Loaded, turn_id: TurnId, *rest: Any, **named: Any) -> Request:
        request = build_request(loaded, turn_id, *rest, **named)
        steps = [
            step
            for step in request.steps
            if step.turn_id == turn_id or not isinstance(step.body, Note)
        ]
        return replace(request, steps=tuple(steps))

    with patch.object(asking, "build_request", build):
        yield


@contextmanager
def others_speak_for_the_revoked() -> Iterator[None]:
    """A3: the turn of a person who lost the right goes on when another person record."""

    def facts(*arguments: Any, **named: Any) -> TurnFacts:
        found = facts_of(*arguments, **named)
        is_spoken_for = found.is_person_allowed or found.message_behind
        return replace(found, is_person_allowed=is_spoken_for)

    with patch.object(kernel_recovery, "facts_of", facts):
        yield


@contextmanager
def unknown_outcomes_are_errors() -> Iterator[None]:
    """A4: a call of which it is unknown how it ended is said to have failed."""
    real = TurnVerbs.finish_call

    async def finish(
        self: TurnVerbs, claim: Claim, result: Result, *rest: Any, **named: Any
    ) -> tuple[Step, ...]:
        is_unknown = result.status is ResultStatus.UNKNOWN
        said = replace(result, status=ResultStatus.ERROR) if is_unknown else result
        return await real(self, claim, said, *rest, **named)

    with patch.object(TurnVerbs, "finish_call", finish):
        yield


@contextmanager
def waits_are_not_capped() -> Iterator[None]:
    """A5: a time that was stored is waited for, wherever the clock was set since."""
    capping = {name: query for name, query in QUERIES.items() if name.startswith("waits_cap_")}
    with _queries({name: query.replace("WHERE", "WHERE 0 AND") for name, query in capping.items()}):
        yield


@contextmanager
def places_are_not_given_back() -> Iterator[None]:
    """B10: a turn that has ended still counts as one that works."""
    with patch.object(Slot, "leave", lambda self: None):
        yield


@contextmanager
def one_limit_for_all_channels() -> Iterator[None]:
    """B9: sends that hang on one channel take the room of the others."""
    limits: dict[object, CapacityLimiter] = {}

    def same(places: float) -> CapacityLimiter:
        loop = get_running_loop()
        return limits.setdefault(loop, CapacityLimiter(places))

    with patch.object(deliver, "CapacityLimiter", same):
        yield


@contextmanager
def one_cursor_for_all_bots() -> Iterator[None]:
    """A6: another bot reads on where the first one was."""
    real = InboxVerbs.cursor

    async def cursor(self: InboxVerbs, channel: ChannelName, account: str = "") -> str | None:
        return await real(self, channel, account) or await real(self, channel, FIRST_BOT)

    with patch.object(InboxVerbs, "cursor", cursor):
        yield


@contextmanager
def an_outage_fails_the_turn() -> Iterator[None]:
    """B13: the first time that the model does not answer is the last."""
    real = SimModel.respond

    async def respond(self: SimModel, request: Request, on_text: Any = None) -> ModelReply:
        try:
            return await real(self, request, on_text)
        except ModelBusy as busy:
            raise ModelRefused(busy.reason) from busy

    with patch.object(SimModel, "respond", respond):
        yield


# ── what issue 13 promises ──────────────────────────────────────────────────────────────────────


@contextmanager
def no_one_tells_of_an_end() -> Iterator[None]:
    """Issue 13, B11: the model says nothing of it, and neither do we."""
    with patch.object(telling, "teller_of", lambda end, is_answered: Teller.WORDS):
        yield


@contextmanager
def a_backlog_of_two_people() -> Iterator[None]:
    """B10: by whatever person it was written before the boot, it is all one request."""

    def all_peoples(begun: Sequence[AcceptedMessage], waiting: Any, *rest: Any) -> Any:
        one = begun[0].entry.sender if begun else ""
        others = [replace(each, entry=replace(each.entry, sender=one)) for each in waiting]
        return backlog.joined(begun, others, *rest)

    with patch.object(joining, "joined", all_peoples):
        yield


@contextmanager
def joined_and_not_heard() -> Iterator[None]:
    """B10: a message of a backlog is said to be in the turn, and the model is not shown it."""

    def marked(tx: Transaction, session_id: Any, turn_id: TurnId, epoch: Any, entry: Entry) -> None:
        record.mark_attached(tx, entry.entry_id, turn_id)

    with patch.object(joining, "attach_entry", marked):
        yield


@contextmanager
def a_live_talk_is_joined() -> Iterator[None]:
    """B10: what is sent to this boot joins as well."""
    with patch.object(backlog, "was_sent_before", lambda accepted, boot: True):
        yield
