"""The verbs of the budget: reserve before a call, settle after it, hold a turn, allow more.

Every one of them holds the key of the budget, so that on several nodes no two calls find the same
room. A call whose worker is gone is settled at its estimate by the next that reserves.
"""

from koboshi.domain.budget import (
    HELD,
    Bill,
    OverBudget,
    Purse,
    admits,
    offers,
    question_words,
    used_words,
)
from koboshi.domain.ids import ChannelName, SessionId, TurnId
from koboshi.domain.phrases import excerpt
from koboshi.domain.role import Role
from koboshi.domain.turn import Claim, TurnEvent, TurnState
from koboshi.domain.usage import begin_of_day
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import encoded, number, numbers_in
from koboshi.kernel.enqueue import enqueue_delivery, enqueue_delivery_once
from koboshi.kernel.keys import BUDGET_KEY, lock_session
from koboshi.kernel.owners import owner_chats
from koboshi.kernel.purses import paying_chat, purses_for, purses_today
from koboshi.kernel.record import move_turn
from koboshi.kernel.rows import read_session, read_turn
from koboshi.kernel.transaction import Keys, Readers, Row, Transaction, Writer


class BudgetVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

    async def reserve(
        self, session_id: SessionId, turn_id: TurnId, model: str, amount: int
    ) -> Bill | OverBudget:
        def operation(tx: Transaction) -> Bill | OverBudget:
            return _reserve(tx, self._context, session_id, turn_id, model, amount)

        keys = Keys(chats=(BUDGET_KEY,), sessions=(session_id,))
        return await self._writer.write("budget.reserve", operation, keys)

    async def settle(self, bill: Bill, paid: int | None) -> None:
        def operation(tx: Transaction) -> None:
            row = tx.row("bill", bill_id=bill.bill_id)
            if row is not None:
                _settle(tx, row, paid)

        await self._writer.write("budget.settle", operation, Keys(chats=(BUDGET_KEY,)))

    async def hold(self, claim: Claim, wait_ms: int, words: str) -> None:
        def operation(tx: Transaction) -> None:
            due_ms = tx.now_ms + wait_ms
            move_turn(
                tx,
                claim.turn_id,
                claim.epoch,
                TurnState.RUNNING,
                TurnEvent.POSTPONED,
                reason=f"{HELD}{words}",
                worked_ms=due_ms,
                not_before_ms=due_ms,
            )

        keys = Keys(chats=(BUDGET_KEY,), sessions=(claim.session_id,))
        await self._writer.write("budget.hold", operation, keys)

    async def today(self) -> tuple[Purse, ...]:
        return await self._readers.read(lambda tx: purses_today(tx, self._context))


def _reserve(
    tx: Transaction,
    context: VerbContext,
    session_id: SessionId,
    turn_id: TurnId,
    model: str,
    amount: int,
) -> Bill | OverBudget:
    for row in tx.rows("bills_lost"):
        _settle(tx, row, None)
    purses, is_timed = purses_for(tx, context, session_id, turn_id)
    for purse in purses:
        if not admits(purse, amount, is_timed=is_timed):
            return _refused(tx, context, session_id, turn_id, purse, is_timed=is_timed)
    for purse in purses:
        tx.change("purse_reserve", purse_id=purse.purse_id, amount=amount)
    bill_id = tx.insert(
        "bill_make",
        worker_id=context.worker_id or 0,
        purses=encoded([purse.purse_id for purse in purses]),
        model=model,
        amount=amount,
        now=tx.now_ms,
    )
    return Bill(bill_id=bill_id, is_limited=bool(purses))


def _settle(tx: Transaction, row: Row, paid: int | None) -> None:
    bill_id, purses, amount = row
    for purse_id in numbers_in(purses):
        cost = number(amount) if paid is None else paid
        tx.change("purse_settle", purse_id=purse_id, amount=amount, paid=cost)
    tx.change("bill_delete", bill_id=bill_id)


def _refused(
    tx: Transaction,
    context: VerbContext,
    session_id: SessionId,
    turn_id: TurnId,
    purse: Purse,
    *,
    is_timed: bool,
) -> OverBudget:
    """The turn has to wait. Owners are asked once for each limit, unless time began the turn."""
    zone = context.zone_named("")
    wait_ms = begin_of_day(tx.now_ms, zone, days_before=-1) - tx.now_ms
    words = used_words(purse, is_timed=is_timed)
    turn, session_id = read_turn(tx, turn_id), paying_chat(tx, session_id)
    route = read_session(tx, session_id).route
    anchor = "" if turn is None else turn.anchor
    is_owner = turn is not None and (
        context.role_of(tx, ChannelName(route.channel), turn.person) is Role.OWNER
    )
    asked = [] if is_timed else [each for each in owner_chats(tx, context) if each != session_id]
    if is_owner and not is_timed:
        asked.append(session_id)
    for chat in asked:
        lock_session(tx, chat)
        _ask(tx, context, chat, purse, "A request" if chat == session_id else f"{route}")
    if session_id not in asked:
        lock_session(tx, session_id)
        told = f"{words}. I go on tomorrow" + (", or when an owner allows more." if asked else ".")
        cause = f"budget:{purse.purse_id}:{purse.limit}:{turn_id}"
        enqueue_delivery_once(tx, session_id, cause, told, anchor=anchor)
    return OverBudget(words, wait_ms)


def _ask(tx: Transaction, context: VerbContext, chat: SessionId, purse: Purse, who: str) -> None:
    cause = f"budget:{purse.purse_id}:{purse.limit}"
    if tx.row("delivery_by_cause", session_id=chat, cause=cause) is None:
        words = question_words(purse, excerpt(who, 120))
        choices = offers(purse, context.world.budget)
        enqueue_delivery(tx, chat, None, cause, (words,), anchor="", choices=choices)
