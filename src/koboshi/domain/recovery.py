"""What happens to a turn that no worker holds, decided from durable facts by one table of rules.

Theory of operation. A gateway may die at any instruction, so a turn that is not closed must be
complete in the database at every moment: its transcript says what was done, its row who held it,
and the calls say what was started. `TurnFacts` is all that a decision may rest on. It is read from
rows and from this boot's configuration, never from memory, a file or the way the last boot ended.

* `decide` is total. The last rule always holds, so every turn that is not closed has a verdict.
* The order of `RULES` is the argument. A rule may assume that no rule above it holds. What needs no
  work (an answer to deliver, an open question) and what must not go on (a person without the
  right, an unknown channel) stand above what is doubtful (too many deaths, a stale turn, an
  unknown outcome), and that above the ordinary way to go on.
* A verdict is computed inside the transaction that applies it. `koboshi explain` calls it, too.
* Facts that a correct store cannot produce raise `ContradictoryFacts`: a bug is not recovered from.
* Deciding twice does no harm: after a crash between verdict and work the next boot decides again.

`docs/recovery-rules.md` is drawn from `RULES`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from koboshi.domain.errors import ContradictoryFacts
from koboshi.domain.recovery_facts import BootConfig as BootConfig
from koboshi.domain.recovery_facts import Interruption as Interruption
from koboshi.domain.recovery_facts import Policy as Policy
from koboshi.domain.recovery_facts import RecoveryPolicy as RecoveryPolicy
from koboshi.domain.recovery_facts import TurnFacts as TurnFacts
from koboshi.domain.transcript import Author, Effect, Tail
from koboshi.domain.turn import CLOSED, TurnState
from koboshi.domain.worker import Breaker


class VerdictKind(StrEnum):
    RESUME = "resume"  # back to the queue
    DELIVER = "deliver"  # the answer exists; only its delivery is left
    STAND = "stand"  # leave it as it is
    CLEAR = "clear"  # end it; a newer message goes on
    ASK_USER = "ask-user"  # a person decides
    SUSPEND = "suspend"  # set it aside until the world changes
    GIVE_UP = "give-up"  # end it with one apology


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    kind: VerdictKind
    rule: str
    because: str


When: TypeAlias = Callable[[TurnFacts, Policy], bool]
Then: TypeAlias = Callable[[TurnFacts], VerdictKind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    label: str
    when: When
    then: Then
    says: str
    """The condition in words, for the table in the docs."""
    because: str
    """The reason in words, for a person who asks why."""


def is_stale(facts: TurnFacts, policy: Policy) -> bool:
    return policy.fresh_ms > 0 and facts.idle_ms > policy.fresh_ms


def _is_taken_up(facts: TurnFacts) -> bool:
    """Rules about a turn's history concern only turns that a worker held before, and that no person
    has asked for since."""
    return facts.is_claimed_before and not facts.is_willed


def _is_up_to_policy(facts: TurnFacts) -> bool:
    return _is_taken_up(facts) and not facts.is_postponed


def _is_held_back(facts: TurnFacts) -> bool:
    """The gateway keeps dying, perhaps over this."""
    if not _is_up_to_policy(facts):
        return False
    dies_again = facts.crash_streak > 1
    return facts.breaker is Breaker.OPEN or (facts.breaker is Breaker.HALF and dies_again)


def _is_left_alone(facts: TurnFacts) -> bool:
    """The policy would set it aside, and everything behind it with it."""
    is_unasked = facts.policy is RecoveryPolicy.ASK and not facts.is_interactive
    return facts.policy is RecoveryPolicy.OFF or is_unasked


def _always(kind: VerdictKind) -> Then:
    return lambda _facts: kind


def _ask_or(kind: VerdictKind) -> Then:
    return lambda facts: VerdictKind.ASK_USER if facts.is_interactive else kind


DIED_EACH_TIME = "the gateway died each time this was tried, without getting any further"
RULES: tuple[Rule, ...] = (
    Rule(
        label="answered",
        when=lambda facts, _: facts.state is TurnState.ANSWERED,
        then=_always(VerdictKind.DELIVER),
        says="the answer is stored",
        because="the answer exists and is on its way; there is nothing to work on",
    ),
    Rule(
        label="not-allowed-behind",
        when=lambda facts, _: (
            not facts.is_person_allowed and facts.message_behind and facts.is_channel_known
        ),
        then=_always(VerdictKind.CLEAR),
        says="a person whose message is in it is no longer allowed, and a message of an allowed "
        "person waits",
        because="a person whose message is in it is no longer allowed to use this gateway, and a "
        "message of another person waits",
    ),
    Rule(
        label="replied",
        when=lambda facts, _: (
            facts.state is TurnState.WAITING and facts.message_waits and facts.is_person_allowed
        ),
        then=_always(VerdictKind.RESUME),
        says="waiting for a person, and their message is there",
        because="the person has answered the question",
    ),
    Rule(
        label="question-open",
        when=lambda facts, _: facts.state is TurnState.WAITING,
        then=_always(VerdictKind.STAND),
        says="waiting for a person",
        because="a question is open and waits for its answer",
    ),
    Rule(
        label="person-not-allowed",
        when=lambda facts, _: not facts.is_person_allowed,
        then=_always(VerdictKind.SUSPEND),
        says="a person whose message is in it is no longer allowed",
        because="a person whose message is in it is no longer allowed to use this gateway",
    ),
    Rule(
        label="channel-unknown",
        when=lambda facts, _: not facts.is_channel_known,
        then=_always(VerdictKind.SUSPEND),
        says="the channel is not in the configuration",
        because="its channel is not configured; it comes back when the channel does",
    ),
    Rule(
        label="agent-attached",
        when=lambda facts, _: facts.is_attached,
        then=_always(VerdictKind.RESUME),
        says="a foreign agent works on it, or has said more than is stored",
        because="its agent works on; what it says is read from where we stopped",
    ),
    Rule(
        label="host-away",
        when=lambda facts, _: _is_taken_up(facts) and facts.is_host_away,
        then=_always(VerdictKind.STAND),
        says="a command of it, or its foreign agent, runs on a node that went away less than a "
        "minute ago",
        because="its command or agent runs on a node that is away, and may be back in a moment",
    ),
    Rule(
        label="exhausted",
        when=lambda facts, policy: _is_taken_up(facts) and facts.crash_streak >= policy.deaths_max,
        then=_always(VerdictKind.GIVE_UP),
        says="as many deaths in a row without a new step as `attempts` allows",
        because=DIED_EACH_TIME,
    ),
    Rule(
        label="worn-out",
        when=lambda facts, policy: (
            _is_taken_up(facts) and facts.recoveries >= policy.recoveries_max
        ),
        then=_ask_or(VerdictKind.GIVE_UP),
        says="taken up again too often (10 times), with progress or without",
        because="this was interrupted and taken up again too often",
    ),
    Rule(
        label="policy-moved-on",
        when=lambda facts, _: (
            _is_up_to_policy(facts)
            and facts.policy is not RecoveryPolicy.AUTO
            and facts.message_waits
        ),
        then=_always(VerdictKind.CLEAR),
        says="it was interrupted, recovery is `ask` or `off`, and the person has written since",
        because="the person went on with a new message; it sees what was done so far",
    ),
    Rule(
        label="policy-behind",
        when=lambda facts, _: (
            _is_up_to_policy(facts) and facts.message_behind and _is_left_alone(facts)
        ),
        then=_always(VerdictKind.CLEAR),
        says="it was interrupted, recovery is `off` (or `ask`, where no question is possible), and "
        "a message waits behind it",
        because="recovery does not continue it in this session, and a message waits behind it",
    ),
    Rule(
        label="policy-off",
        when=lambda facts, _: _is_up_to_policy(facts) and facts.policy is RecoveryPolicy.OFF,
        then=_always(VerdictKind.SUSPEND),
        says="it was interrupted, and recovery is `off`",
        because="recovery is switched off for this session; /resume continues it",
    ),
    Rule(
        label="policy-ask",
        when=lambda facts, _: _is_up_to_policy(facts) and facts.policy is RecoveryPolicy.ASK,
        then=_ask_or(VerdictKind.SUSPEND),
        says="it was interrupted, and recovery is `ask`",
        because="recovery asks first in this session",
    ),
    Rule(
        label="stale-moved-on",
        when=lambda facts, policy: (
            _is_taken_up(facts) and is_stale(facts, policy) and facts.message_waits
        ),
        then=_always(VerdictKind.CLEAR),
        says="idle for longer than `fresh_seconds`, and the person has written since",
        because="it was interrupted long ago and the person has written since",
    ),
    Rule(
        label="stale",
        when=lambda facts, policy: (
            _is_taken_up(facts) and is_stale(facts, policy) and facts.is_interactive
        ),
        then=_always(VerdictKind.ASK_USER),
        says="idle for longer than `fresh_seconds`",
        because="it was interrupted long ago and may not be wanted any more",
    ),
    Rule(
        label="stale-unattended",
        when=lambda facts, policy: _is_taken_up(facts) and is_stale(facts, policy),
        then=_always(VerdictKind.GIVE_UP),
        says="idle for longer than `fresh_seconds`, and no question is possible",
        because="it was interrupted long ago, and there is no person to ask",
    ),
    Rule(
        label="outcome-unknown",
        when=lambda facts, _: (
            _is_taken_up(facts)
            and facts.under_way is Effect.ONCE
            and facts.is_interactive
            and not facts.message_waits
        ),
        then=_always(VerdictKind.ASK_USER),
        says="a call that must not be repeated was under way, and no message has come since",
        because="something that must not be done twice was under way, and its outcome is unknown",
    ),
    Rule(
        label="breaker-moved-on",
        when=lambda facts, _: _is_held_back(facts) and facts.message_waits,
        then=_always(VerdictKind.CLEAR),
        says="the gateway keeps dying, and the person has written since",
        because="the gateway kept dying, and the person has written since",
    ),
    Rule(
        label="boot-breaker",
        when=lambda facts, _: _is_held_back(facts),
        then=_always(VerdictKind.STAND),
        says="the gateway died while it worked at 3 boots in ten minutes (and this turn twice in a "
        "row without a new step), or at 5",
        because="the gateway keeps dying; it goes on after ten quiet minutes, or by /resume",
    ),
    Rule(
        label="fresh",
        when=lambda _facts, _policy: True,
        then=_always(VerdictKind.RESUME),
        says="otherwise",
        because="nothing forbids it, so it continues from its last saved step",
    ),
)


def decide(facts: TurnFacts, policy: Policy) -> Verdict:
    """The verdict over a turn that is not closed. Total; raises ContradictoryFacts for facts that
    a correct store cannot produce."""
    contradiction = contradiction_in(facts)
    if contradiction:
        raise ContradictoryFacts(contradiction)
    rule = next(rule for rule in RULES if rule.when(facts, policy))
    return Verdict(kind=rule.then(facts), rule=rule.label, because=rule.because)


def contradiction_in(facts: TurnFacts) -> str | None:
    """The first pair of facts that exclude each other, in words."""
    waiting = facts.state is TurnState.WAITING
    started = facts.tail is Tail.STARTED
    impossible = {
        "a closed turn was brought to recovery": facts.state in CLOSED,
        "an open turn belongs to an older generation": not facts.is_current
        and facts.state is not TurnState.ANSWERED,
        "answered and answer do not go together": (facts.state is TurnState.ANSWERED)
        != (facts.tail is Tail.ANSWER),
        "waiting and question do not go together": waiting != (facts.tail is Tail.QUESTION),
        "waiting and asked do not go together": waiting != (facts.asked_by is not None),
        "a call is under way without having been started": not waiting
        and (facts.under_way is not None) != started,
        "running without ever having been claimed": facts.state is TurnState.RUNNING
        and not facts.is_claimed_before,
        "died without ever having been claimed": (facts.crash_streak > 0 or facts.recoveries > 0)
        and not facts.is_claimed_before,
        "worked on without ever having been claimed": not facts.is_claimed_before
        and facts.tail is not Tail.TRIGGER
        # An occasion that is too late begins with a question of the gateway.
        and not (waiting and facts.asked_by is Author.GATEWAY),
        "a message waits since the death, and none waits": facts.message_waits
        and not facts.message_behind,
        "postponed without waiting in the queue": facts.is_postponed
        and (facts.state is not TurnState.QUEUED or not facts.is_claimed_before),
    }
    return next((words for words, holds in impossible.items() if holds), None)
