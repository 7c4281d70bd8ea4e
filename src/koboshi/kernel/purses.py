"""The counters of the budget: how they stand, and more of one."""

from koboshi.domain.budget import BudgetScope, BudgetUnit, Purse, day_of
from koboshi.domain.ids import SessionId, TurnId
from koboshi.domain.inbox import EntryKind
from koboshi.kernel.child_rows import child_in
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import number, text
from koboshi.kernel.keys import BUDGET_KEY, lock
from koboshi.kernel.rows import find_session, read_session, read_turn
from koboshi.kernel.transaction import Reading, Row, Transaction
from koboshi.ports.wakeups import TURNS


def purses_today(tx: Reading, context: VerbContext) -> tuple[Purse, ...]:
    """How each limit stands, as far as anything was spent of it."""
    limits = context.world.budget
    day = day_of(tx.now_ms, context.zone_named(""))
    rows = tx.rows("purses_of_day", day=day, unit=limits.unit)
    return tuple(purse_of(context, row) for row in rows)


def allow_more(tx: Transaction, context: VerbContext, purse_id: int, amount: int) -> None:
    """An owner allows more today, and the turns that wait for it go on."""
    lock(tx, BUDGET_KEY)
    day = day_of(tx.now_ms, context.zone_named(""))
    tx.change("purse_add", purse_id=purse_id, amount=amount, day=day)
    for turn_id, key in tx.rows("turns_held_by_budget"):
        lock(tx, number(key))
        tx.change("turn_due_now", turn_id=turn_id, now=tx.now_ms)
    tx.hints.add(TURNS)


def purse_of(context: VerbContext, row: Row) -> Purse:
    purse_id, scope, subject, unit, used, reserved, more = row
    of = BudgetScope(text(scope))
    return Purse(
        purse_id=number(purse_id),
        scope=of,
        subject=text(subject),
        unit=BudgetUnit(text(unit)),
        limit=context.world.budget.of(of) + number(more),
        used=number(used),
        reserved=number(reserved),
    )


def charge_turn(tx: Transaction, context: VerbContext, turn_id: TurnId, cost: int) -> None:
    """Count what was spent in a turn without a reservation. The caller sees to it that it is
    counted once."""
    turn = read_turn(tx, turn_id)
    if turn is None or not context.world.budget.is_set:
        return
    lock(tx, BUDGET_KEY)
    for purse in purses_for(tx, context, turn.session_id, turn_id)[0]:
        tx.change("purse_settle", purse_id=purse.purse_id, amount=0, paid=cost)


def purses_for(
    tx: Transaction, context: VerbContext, session_id: SessionId, turn_id: TurnId
) -> tuple[list[Purse], bool]:
    """The counters that a call of the turn is counted in, and whether time began it."""
    route, turn = read_session(tx, session_id).route, read_turn(tx, turn_id)
    begun = tx.row("turn_begun_by", turn_id=_first_turn(tx, session_id, turn_id))
    kind, source = (None, "") if begun is None else begun
    subjects = {BudgetScope.ALL: "", BudgetScope.CHAT: str(paying_chat(tx, session_id))}
    if turn is not None and turn.person:
        subjects[BudgetScope.PERSON] = f"{route.channel}/{turn.person}"
    if kind == EntryKind.OCCASION:
        subjects[BudgetScope.SCHEDULE] = text(source)
    limited = {each: name for each, name in subjects.items() if context.world.budget.of(each)}
    found = [_found(tx, context, scope, name) for scope, name in limited.items()]
    return found, kind in (EntryKind.OCCASION, EntryKind.GOAL)


def _first_turn(tx: Transaction, session_id: SessionId, turn_id: TurnId) -> TurnId:
    """The turn that gave the work away, and that is begun by a person or by time."""
    while (child := child_in(tx, session_id)) is not None:
        session_id, turn_id = child.session_id, child.turn_id
    return turn_id


def paying_chat(tx: Transaction, session_id: SessionId) -> SessionId:
    """The conversation that pays: children and schedules work beside it."""
    session = read_session(tx, session_id)
    found = find_session(tx, session.route) if session.aside else None
    return session_id if found is None else found.session_id


def _found(tx: Transaction, context: VerbContext, scope: BudgetScope, subject: str) -> Purse:
    day = day_of(tx.now_ms, context.zone_named(""))
    unit = context.world.budget.unit
    row = tx.row("purse", day=day, scope=scope, subject=subject, unit=unit)
    if row is None:
        purse_id = tx.insert("purse_make", day=day, scope=scope, subject=subject, unit=unit)
        row = (purse_id, scope, subject, unit, 0, 0, 0)
    return purse_of(context, row)
