"""Every combination of the facts that recovery may meet, and a second statement of the decision.

The facts fall into two groups. Those that can exclude each other (state, tail, calls, question,
claim, generation, counters, idle time) are enumerated against a second statement of what excludes
what. The consistent ones are then combined with all the others, and each verdict is compared with a
second statement of the table. The kind of interruption is the one fact that no rule reads; that it
changes nothing is shown by itself, so that the rest need not be multiplied by it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from koboshi.domain.recovery import (
    Interruption,
    Policy,
    RecoveryPolicy,
    TurnFacts,
    Verdict,
    VerdictKind,
    decide,
)
from koboshi.domain.transcript import Author, Effect, Tail
from koboshi.domain.turn import TurnState
from koboshi.domain.worker import Breaker

HOUR_MS = 3_600_000
POLICY = Policy()
BOTH = (False, True)
WAITING = ((False, False), (False, True), (True, True))
"""Whether a message waits since the death, and whether any waits."""

AROUND_DEATHS = (0, 2, 3, 4)
AROUND_RECOVERIES = (0, 9, 10, 11)
AROUND_AN_HOUR = (0, HOUR_MS - 1, HOUR_MS, HOUR_MS + 1)

FRESH = TurnFacts(
    state=TurnState.RUNNING,
    tail=Tail.RESULT,
    under_way=None,
    is_claimed_before=True,
    is_willed=False,
    is_postponed=False,
    is_current=True,
    recoveries=0,
    crash_streak=0,
    idle_ms=0,
    message_waits=False,
    message_behind=False,
    asked_by=None,
    is_person_allowed=True,
    is_channel_known=True,
    is_interactive=True,
    interruption=Interruption.CRASH,
    policy=RecoveryPolicy.AUTO,
)


@dataclass(frozen=True, slots=True)
class Case:
    facts: TurnFacts
    policy: Policy
    verdict: Verdict


def is_impossible(facts: TurnFacts) -> bool:
    """Which facts exclude each other, said a second time: by what each state allows."""
    at_work = {Tail.TRIGGER, Tail.PROPOSED, Tail.STARTED, Tail.RESULT}
    tails_of = {
        TurnState.QUEUED: at_work,
        TurnState.RUNNING: at_work,
        TurnState.SUSPENDED: at_work,
        TurnState.WAITING: {Tail.QUESTION},
        TurnState.ANSWERED: {Tail.ANSWER},
    }
    if facts.tail not in tails_of.get(facts.state, ()):
        return True
    if facts.state is TurnState.WAITING:
        agree = facts.asked_by is not None
    else:
        has_started = facts.tail is Tail.STARTED
        agree = facts.asked_by is None and (facts.under_way is not None) is has_started
    is_of_old_generation = facts.state is not TurnState.ANSWERED and not facts.is_current
    is_untouched = facts.state in (TurnState.QUEUED, TurnState.SUSPENDED)
    is_untouched = is_untouched and facts.tail is Tail.TRIGGER
    # An occasion that is too late begins with a question of the gateway.
    is_untouched = is_untouched or facts.asked_by is Author.GATEWAY
    has_history = bool(facts.recoveries or facts.crash_streak)
    is_unclaimed_work = (has_history or not is_untouched) and not facts.is_claimed_before
    is_set_down = facts.state is TurnState.QUEUED and facts.is_claimed_before
    is_never_set_down = facts.is_postponed and not is_set_down
    is_none = facts.message_waits and not facts.message_behind
    is_strange = is_of_old_generation or is_unclaimed_work or is_never_set_down
    return not agree or is_none or is_strange


def expected(facts: TurnFacts, policy: Policy) -> tuple[str, VerdictKind]:
    """The table of section 7 of the design, said a second time: as a chain of questions."""
    kind = VerdictKind
    ask_or_give_up = kind.ASK_USER if facts.is_interactive else kind.GIVE_UP
    if facts.state is TurnState.ANSWERED:
        return "answered", kind.DELIVER
    is_held_up = facts.message_behind and facts.is_channel_known
    if is_held_up and not facts.is_person_allowed:
        return "not-allowed-behind", kind.CLEAR
    if facts.state is TurnState.WAITING:
        is_replied = facts.message_waits and facts.is_person_allowed
        return ("replied", kind.RESUME) if is_replied else ("question-open", kind.STAND)
    if not facts.is_person_allowed:
        return "person-not-allowed", kind.SUSPEND
    if not facts.is_channel_known:
        return "channel-unknown", kind.SUSPEND
    if facts.is_attached:
        return "agent-attached", kind.RESUME
    if facts.is_willed or not facts.is_claimed_before:
        return "fresh", kind.RESUME
    if facts.is_host_away:
        return "host-away", kind.STAND
    if facts.crash_streak >= policy.deaths_max:
        return "exhausted", kind.GIVE_UP
    if facts.recoveries >= policy.recoveries_max:
        return "worn-out", ask_or_give_up
    policy_in_force = RecoveryPolicy.AUTO if facts.is_postponed else facts.policy
    if policy_in_force is not RecoveryPolicy.AUTO and facts.message_waits:
        return "policy-moved-on", kind.CLEAR
    is_unasked = policy_in_force is RecoveryPolicy.ASK and not facts.is_interactive
    if facts.message_behind and (policy_in_force is RecoveryPolicy.OFF or is_unasked):
        return "policy-behind", kind.CLEAR
    if policy_in_force is RecoveryPolicy.OFF:
        return "policy-off", kind.SUSPEND
    if policy_in_force is RecoveryPolicy.ASK:
        return "policy-ask", kind.ASK_USER if facts.is_interactive else kind.SUSPEND
    if 0 < policy.fresh_ms < facts.idle_ms:
        if facts.message_waits:
            return "stale-moved-on", kind.CLEAR
        return "stale" if facts.is_interactive else "stale-unattended", ask_or_give_up
    if facts.under_way is Effect.ONCE and facts.is_interactive and not facts.message_waits:
        return "outcome-unknown", kind.ASK_USER
    held_back = {Breaker.CLOSED: False, Breaker.HALF: facts.crash_streak >= 2, Breaker.OPEN: True}
    if held_back[facts.breaker] and not facts.is_postponed:
        if facts.message_waits:
            return "breaker-moved-on", kind.CLEAR
        return "boot-breaker", kind.STAND
    return "fresh", kind.RESUME


def shapes() -> Iterator[TurnFacts]:
    """Every combination of the facts about what a turn is, possible or not."""
    for state, tail, under_way, asked_by, is_claimed_before, is_postponed, is_current in product(
        TurnState, Tail, (None, *Effect), (None, *Author), BOTH, BOTH, BOTH
    ):
        yield replace(
            FRESH,
            state=state,
            tail=tail,
            under_way=under_way,
            asked_by=asked_by,
            is_claimed_before=is_claimed_before,
            is_postponed=is_postponed,
            is_current=is_current,
        )


def facts_that_may_exclude_each_other() -> Iterator[TurnFacts]:
    """Shapes with histories, once with every other fact true and once with every other false."""
    histories = tuple(product((0, 1), (0, 1), (-1, 0, 1)))
    for shape, (recoveries, crash_streak, idle_ms), others in product(shapes(), histories, BOTH):
        yield combined(
            shape,
            recoveries=recoveries,
            crash_streak=crash_streak,
            idle_ms=idle_ms,
            is_willed=others,
            message_waits=others,
            message_behind=others,
            is_person_allowed=others,
            is_channel_known=others,
            is_interactive=others,
            policy=RecoveryPolicy.OFF if others else RecoveryPolicy.AUTO,
        )


def consistent_facts(
    recoveries: tuple[int, ...], crash_streaks: tuple[int, ...], idles: tuple[int, ...]
) -> Iterator[TurnFacts]:
    """Every possible shape with every combination of the other facts."""
    for shape in shapes():
        if is_impossible(shape):
            continue
        histories = product(recoveries, crash_streaks) if shape.is_claimed_before else [(0, 0)]
        for (
            again,
            deaths,
        ), idle_ms, willed, wait, allowed, known, interactive, policy in product(
            histories, idles, BOTH, WAITING, BOTH, BOTH, BOTH, RecoveryPolicy
        ):
            yield combined(
                shape,
                recoveries=again,
                crash_streak=deaths,
                idle_ms=idle_ms,
                is_willed=willed,
                message_waits=wait[0],
                message_behind=wait[1],
                is_person_allowed=allowed,
                is_channel_known=known,
                is_interactive=interactive,
                policy=policy,
            )


def combined(
    shape: TurnFacts,
    *,
    recoveries: int,
    crash_streak: int,
    idle_ms: int,
    is_willed: bool,
    message_waits: bool,
    message_behind: bool,
    is_person_allowed: bool,
    is_channel_known: bool,
    is_interactive: bool,
    policy: RecoveryPolicy,
) -> TurnFacts:
    """The shape with all other facts. It is written out because replace() takes twice as long."""
    return TurnFacts(
        state=shape.state,
        tail=shape.tail,
        under_way=shape.under_way,
        asked_by=shape.asked_by,
        is_claimed_before=shape.is_claimed_before,
        is_postponed=shape.is_postponed,
        is_current=shape.is_current,
        interruption=shape.interruption,
        recoveries=recoveries,
        crash_streak=crash_streak,
        idle_ms=idle_ms,
        is_willed=is_willed,
        message_waits=message_waits,
        message_behind=message_behind,
        is_person_allowed=is_person_allowed,
        is_channel_known=is_channel_known,
        is_interactive=is_interactive,
        policy=policy,
    )


def few_facts() -> Iterator[TurnFacts]:
    """As above, with one value on each side of a boundary."""
    return consistent_facts((0, 10), (0, 3), (0, HOUR_MS + 1))


def around_each_limit(
    recoveries: tuple[int, ...], crash_streaks: tuple[int, ...], idles: tuple[int, ...]
) -> Iterator[TurnFacts]:
    """Every shape on both sides of all limits at once, and next to each limit by itself."""
    yield from consistent_facts(
        *((each[0], each[-1]) for each in (recoveries, crash_streaks, idles))
    )
    yield from consistent_facts(recoveries[1:-1], (0,), (0,))
    yield from consistent_facts((0,), crash_streaks[1:-1], (0,))
    yield from consistent_facts((0,), (0,), idles[1:-1])


def facts_of_crash_loops() -> Iterator[TurnFacts]:
    """What a gateway meets that has died again and again."""
    for facts in consistent_facts((0,), (0, 1, 2), (0,)):
        yield replace(facts, breaker=Breaker.HALF)
        yield replace(facts, breaker=Breaker.OPEN)
        yield replace(facts, breaker=Breaker.OPEN, is_attached=True)


def facts_of_dead_nodes() -> Iterator[TurnFacts]:
    """A command runs on a node that has just gone away: the call counts as one for once."""
    for facts in consistent_facts((0, 10), (0, 3), (0,)):
        if facts.under_way is Effect.ONCE:
            yield replace(facts, is_host_away=True)


@cache
def cases() -> tuple[Case, ...]:
    facts = around_each_limit(AROUND_RECOVERIES, AROUND_DEATHS, AROUND_AN_HOUR)
    always_fresh = (Policy(fresh_ms=0), Policy(fresh_ms=-1))
    return (
        *(Case(each, POLICY, decide(each, POLICY)) for each in facts),
        *(Case(each, p, decide(each, p)) for p in always_fresh for each in few_facts()),
        *(Case(each, POLICY, decide(each, POLICY)) for each in facts_of_crash_loops()),
        *(Case(each, POLICY, decide(each, POLICY)) for each in facts_of_dead_nodes()),
    )
