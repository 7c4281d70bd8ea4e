"""The verbs of goals: judge, step, wake, show.

Theory of operation. A goal is judged by a worker that holds its claim: the goal, an epoch and the
worker. The verdict, what it means to the goal and the entry of the next step are one transaction,
which repeats the claim in its condition. So at every moment:

* A goal that is `judging` has an answer and no verdict. Asking again does no harm.
* A step is stored or it is not. Its key has the revision of the goal and the number of the step, so
  no verdict makes two.
* A step whose goal has moved since is dropped by `admit()`.
* No error makes a step: without a verdict, the goal is judged again later, and then paused.
"""

from koboshi.domain import time_words
from koboshi.domain.durations import duration
from koboshi.domain.goal import (
    ENDED,
    UNREADABLE_MAX,
    Goal,
    GoalClaim,
    GoalEvent,
    GoalRule,
    Judgement,
    JudgeVerdict,
    judge_wait_ms,
    why_used_up,
)
from koboshi.domain.ids import Epoch, GoalId, WorkerId, shown
from koboshi.domain.schedule import Trigger
from koboshi.domain.wish import TimedWish, WishOutcome, WishStatus
from koboshi.domain.worker import Breaker
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_number, number, text
from koboshi.kernel.enqueue import enqueue_delivery_once
from koboshi.kernel.facts import breaker_now, policy_of
from koboshi.kernel.filing import FILING, file_timed
from koboshi.kernel.goal_gate import move_goal, pause_goal
from koboshi.kernel.keys import lock_found, of_sessions, rows_locked
from koboshi.kernel.rows import read_open_turn, read_session, read_turn, step_of
from koboshi.kernel.timed_rows import GOAL_COLUMNS, goal_of, read_goal
from koboshi.kernel.transaction import Readers, Reading, Transaction, Writer
from koboshi.kernel.wishes import goal_entry, grant, wisher_in
from koboshi.ports.schedules import GoalCase, GoalView
from koboshi.ports.wakeups import GOALS

STEPS_SHOWN = 12
PROCESSES_SHOWN = 10
_USED_UP = {
    GoalRule.STEPS: "all of its steps are used up",
    GoalRule.TOKENS: "all of its tokens are used up",
}


class GoalVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

    async def claim(self, worker_id: WorkerId, limit: int) -> tuple[GoalClaim, ...]:
        return await self._writer.write(
            "goals.claim", lambda tx: _claim(tx, self._context, worker_id, limit)
        )

    async def due_in_ms(self) -> int | None:
        def look(tx: Reading) -> int | None:
            if tx.rows("goals_to_wake", now=tx.now_ms, limit=1):
                return 0
            due = [first_number(tx.row("goals_next_wake"))]
            if breaker_now(tx, self._context)[0] is not Breaker.OPEN:
                due.append(first_number(tx.row("goals_next_judged")))
            waits = [max(0, each - tx.now_ms) for each in due if each is not None]
            return min(waits, default=None)

        return await self._readers.read(look)

    async def load(self, claim: GoalClaim) -> GoalCase | None:
        return await self._readers.read(lambda tx: _load(tx, claim))

    async def judged(self, claim: GoalClaim, judgement: Judgement, tokens: int) -> None:
        await self._writer.write(
            "goals.judged",
            lambda tx: _judged(tx, self._context, claim, judgement, tokens),
            of_sessions(claim.session_id),
        )

    async def unjudged(
        self, claim: GoalClaim, reason: str, *, is_unreadable: bool, tokens: int = 0
    ) -> None:
        await self._writer.write(
            "goals.unjudged",
            lambda tx: _unjudged(tx, claim, reason, tokens, is_unreadable=is_unreadable),
            of_sessions(claim.session_id),
        )

    async def wake(self, limit: int) -> int:
        def operation(tx: Transaction) -> int:
            rows = rows_locked(tx, "goals_to_wake", GOAL_COLUMNS, now=tx.now_ms, limit=limit)
            woken = [goal_of(row) for row in rows]
            for goal in woken:
                move_goal(tx, goal, GoalEvent.WOKEN, GoalRule.WOKEN, goal.reason)
            return len(woken)

        found = await self._readers.read(
            lambda tx: tx.rows("goals_to_wake", now=tx.now_ms, limit=1)
        )
        return await self._writer.write("goals.wake", operation) if found else 0

    async def views(self, *, limit: int) -> tuple[GoalView, ...]:
        def look(tx: Reading) -> tuple[GoalView, ...]:
            goals = [goal_of(row) for row in tx.rows("goals_all", limit=limit)]
            return tuple(
                GoalView(goal=goal, route=read_session(tx, goal.session_id).route) for goal in goals
            )

        return await self._readers.read(look)

    async def move(self, goal_id: GoalId, wish: TimedWish, by: str) -> WishOutcome:
        def operation(tx: Transaction) -> WishOutcome:
            lock_found(tx, "goal_key", goal_id=goal_id)
            goal = read_goal(tx, goal_id)
            if goal is None:
                return WishOutcome(status=WishStatus.NOT_FOUND, words="there is no such goal")
            if goal.state in ENDED:  # the session may have another one by now
                words = f"{time_words.quoted(goal.text)} is {goal.state}."
                return WishOutcome(status=WishStatus.REFUSED, words=words)
            session = read_session(tx, goal.session_id)
            channel = session.route.channel
            wisher = wisher_in(tx, self._context, channel, goal.person, is_operator=True)
            return grant(tx, self._context, session, wisher, wish, by, FILING)

        return await self._writer.write("goals.move", operation)


def _claim(
    tx: Transaction, context: VerbContext, worker_id: WorkerId, limit: int
) -> tuple[GoalClaim, ...]:
    if breaker_now(tx, context)[0] is Breaker.OPEN:
        return ()
    claims = []
    for row in rows_locked(tx, "goals_to_judge", GOAL_COLUMNS, now=tx.now_ms, limit=limit):
        goal, channel = goal_of(row), row[GOAL_COLUMNS + 1]
        if not context.serves(tx, text(channel), goal.person):
            why = "its person may not use me any more, or its channel is gone"
            pause_goal(tx, goal, GoalRule.NOT_ALLOWED, why, told=False)
            continue
        if _is_idle(tx, context, goal):
            _offer(tx, context, goal, time_words.goal_idle(goal, tx.now_ms), GoalRule.IDLE)
            continue
        held = {"goal_id": goal.goal_id, "epoch": goal.epoch}
        if tx.change("goal_claim", **held, worker_id=worker_id):
            claims.append(
                GoalClaim(
                    goal_id=goal.goal_id,
                    session_id=goal.session_id,
                    epoch=Epoch(goal.epoch + 1),
                    worker_id=worker_id,
                )
            )
    return tuple(claims)


def _is_idle(tx: Reading, context: VerbContext, goal: Goal) -> bool:
    """Whether nothing happened to the goal for longer than is fresh, over a downtime: it was left
    before this boot began."""
    session = read_session(tx, goal.session_id)
    fresh_ms = policy_of(context, session).fresh_ms
    began_ms = first_number(tx.row("boot_began", worker_id=context.worker_id)) or 0
    is_left = goal.changed_ms < began_ms
    return is_left and fresh_ms > 0 and tx.now_ms - goal.changed_ms > fresh_ms


def _load(tx: Reading, claim: GoalClaim) -> GoalCase | None:
    goal = read_goal(tx, claim.goal_id)
    if goal is None or not _is_held(tx, claim):
        return None
    turn = None if goal.judged_turn is None else read_turn(tx, goal.judged_turn)
    first_seq = 0 if turn is None else turn.first_seq
    place = {"session_id": goal.session_id, "first_seq": first_seq}
    rows = tx.rows("goal_evidence", **place, limit=STEPS_SHOWN)
    processes = tx.rows("session_processes", session_id=goal.session_id, limit=PROCESSES_SHOWN)
    return GoalCase(
        goal=goal,
        steps=tuple(step_of(row) for row in reversed(rows)),
        processes=tuple(
            f"{shown('process', number(each[0]))} {text(each[2])}: {text(each[1])[:200]}"
            for each in processes
        ),
    )


def _is_held(tx: Reading, claim: GoalClaim) -> bool:
    held = {"goal_id": claim.goal_id, "epoch": claim.epoch, "worker_id": claim.worker_id}
    return tx.row("goal_held", **held) is not None


def _judged(
    tx: Transaction, context: VerbContext, claim: GoalClaim, judgement: Judgement, tokens: int
) -> None:
    if not _is_held(tx, claim):
        return  # stopped, or judged by another worker
    tx.change("goal_spent", goal_id=claim.goal_id, tokens=tokens)
    goal = read_goal(tx, claim.goal_id)
    assert goal is not None
    why = judgement.reason
    match judgement.verdict:
        case JudgeVerdict.DONE:
            move_goal(tx, goal, GoalEvent.REACHED, GoalRule.JUDGED, why, revised=True)
            words, cause = time_words.goal_done(goal, why), f"goal:{goal.goal_id}:done"
            enqueue_delivery_once(tx, goal.session_id, cause, words, anchor="")
        case JudgeVerdict.WAIT:
            _wait(tx, goal, judgement)
        case JudgeVerdict.BLOCKED:
            _offer(tx, context, goal, time_words.goal_blocked(goal, why), GoalRule.JUDGED, why)
        case JudgeVerdict.CONTINUE:
            _step(tx, context, goal, why)


def _wait(tx: Transaction, goal: Goal, judgement: Judgement) -> None:
    minutes = judgement.minutes
    until_ms = None if minutes is None else tx.now_ms + minutes * 60_000
    move_goal(
        tx,
        goal,
        GoalEvent.WAITS,
        GoalRule.JUDGED,
        judgement.reason,
        wait_process=judgement.process_id,
        wait_until_ms=until_ms,
    )


def _step(tx: Transaction, context: VerbContext, goal: Goal, why: str) -> None:
    """The next step, unless a person comes first: then it is judged again behind them."""
    used_up = why_used_up(goal)
    if used_up is not None:
        pause_goal(tx, goal, used_up, f"{_USED_UP[used_up]}; last verdict: {why}", told=True)
        return
    is_busy = read_open_turn(tx, goal.session_id) is not None
    if is_busy or tx.number("messages_waiting_count", session_id=goal.session_id):
        move_goal(tx, goal, GoalEvent.CONTINUED, GoalRule.PERSON_FIRST, why)
        return
    move_goal(tx, goal, GoalEvent.CONTINUED, GoalRule.JUDGED, why)
    _file_step(tx, context, goal, Trigger(name=goal.text, note=time_words.goal_step(goal, why)))


def _file_step(tx: Transaction, context: VerbContext, goal: Goal, trigger: Trigger) -> None:
    tx.change("goal_stepped", goal_id=goal.goal_id)
    now = read_goal(tx, goal.goal_id)
    assert now is not None
    session = read_session(tx, goal.session_id)
    own = Trigger(
        name=trigger.name,
        ask=trigger.ask,
        yes=trigger.yes,
        no=trigger.no,
        note=trigger.note,
        revision=now.revision,
    )
    entry = goal_entry(
        session,
        goal.goal_id,
        goal.person,
        key=f"{now.revision}.{now.step}",
        text=goal.text,
        trigger=own,
        now_ms=tx.now_ms,
    )
    file_timed(tx, context, session, entry)
    tx.hints.add(GOALS)


def _offer(
    tx: Transaction, context: VerbContext, goal: Goal, ask: str, rule: GoalRule, why: str = ""
) -> None:
    """Ask the person whether to go on, by a turn that begins with the question."""
    used_up = why_used_up(goal)
    if used_up is not None:
        pause_goal(tx, goal, used_up, why or _USED_UP[used_up], told=True)
        return
    move_goal(tx, goal, GoalEvent.CONTINUED, rule, why or goal.reason)
    note = time_words.goal_step(goal, why or goal.reason or "")
    yes, no = time_words.GO_ON, time_words.PAUSE
    _file_step(tx, context, goal, Trigger(name=goal.text, ask=ask, yes=yes, no=no, note=note))


def _unjudged(
    tx: Transaction, claim: GoalClaim, reason: str, tokens: int, *, is_unreadable: bool
) -> None:
    if not _is_held(tx, claim):
        return
    tx.change("goal_spent", goal_id=claim.goal_id, tokens=tokens)
    goal = read_goal(tx, claim.goal_id)
    assert goal is not None
    tries, unreadable = goal.tries + 1, goal.unreadable + int(is_unreadable)
    wait_ms = judge_wait_ms(tries)
    if unreadable >= UNREADABLE_MAX:
        why = "I could not judge this: the verdict could not be read twice"
        pause_goal(tx, goal, GoalRule.UNREADABLE, why, told=True)
    elif wait_ms is None:
        why = f"I could not judge this: {reason}"
        pause_goal(tx, goal, GoalRule.NO_JUDGE, why, told=True)
    else:
        tx.change(
            "goal_try_later",
            goal_id=goal.goal_id,
            epoch=claim.epoch,
            tries=tries,
            unreadable=unreadable,
            not_before_ms=tx.now_ms + wait_ms,
            reason=f"no verdict yet ({reason}); asked again in {duration(wait_ms)}",
        )
