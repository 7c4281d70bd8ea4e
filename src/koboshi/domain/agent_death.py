"""What happens to a prompt whose agent died, decided by one table of rules.

A prompt has no acknowledgement. What is durably known instead: whether a byte of it was fed,
whether the agent told anything after that, and what a complete replay of its session holds. Only
where these prove that the agent has not received it, the prompt is sent again. In every other case
the agent may have worked, so it is told what happened and goes on.

`decide_death` is total: the last rule always holds. `docs/recovery-rules.md` has the table, drawn
from `DEATH_RULES`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from koboshi.domain.recovery import RecoveryPolicy

DEATHS_MAX = 3


class FedState(StrEnum):
    """How far the prompt of the turn came in the process that died."""

    NONE = "none"  # there was none
    UNBEGUN = "unbegun"  # no byte of it reached the agent
    BEGUN = "begun"  # the first byte was about to be fed, or it is not known


class Memory(StrEnum):
    """What the agent knows of the conversation, in the process that follows."""

    UNTRIED = "untried"  # no process follows yet, or it has not been asked to load
    FIRST = "first"  # the conversation began with this process
    WITH = "with"  # loaded; the replay holds the mark of this turn
    WITHOUT = "without"  # loaded; the complete replay does not
    GONE = "gone"  # it cannot load, or refused: it began anew


class DeathVerdict(StrEnum):
    RESTART = "restart"  # start the agent again, and let it load its session
    PROMPT = "prompt"  # send the prompt: it was certainly not received
    GO_ON = "go-on"  # tell the agent what happened, and let it go on
    ASK = "ask"  # a person decides
    GIVE_UP = "give-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeathFacts:
    fed: FedState
    has_updates: bool
    """The agent told something after the prompt was begun."""
    memory: Memory
    deaths: int
    """Processes that died with a prompt of this turn."""
    policy: RecoveryPolicy
    is_asked: bool
    """A person was asked about this death, and wants it to go on."""
    is_interactive: bool
    is_away: bool = False
    """The process is on another node. What it told there cannot be read, so nothing is proved."""


When: TypeAlias = Callable[[DeathFacts], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeathRule:
    label: str
    when: When
    then: DeathVerdict
    says: str
    """The condition, for the table in the docs."""
    because: str
    """The reason, for a person who asks why."""


DEATH_RULES: tuple[DeathRule, ...] = (
    DeathRule(
        label="agent-exhausted",
        when=lambda facts: facts.deaths >= DEATHS_MAX,
        then=DeathVerdict.GIVE_UP,
        says=f"the agent died {DEATHS_MAX} times in this turn",
        because="the agent died each time this was tried",
    ),
    DeathRule(
        label="agent-restart",
        when=lambda facts: facts.memory is Memory.UNTRIED,
        then=DeathVerdict.RESTART,
        says="no new process has been asked to load the session yet",
        because="the agent is started again; what it remembers decides what follows",
    ),
    DeathRule(
        label="not-prompted",
        when=lambda facts: facts.fed is FedState.NONE,
        then=DeathVerdict.PROMPT,
        says="there was no prompt of this turn",
        because="the agent had not been given this request",
    ),
    DeathRule(
        label="never-begun",
        when=lambda facts: facts.fed is FedState.UNBEGUN,
        then=DeathVerdict.PROMPT,
        says="no byte of the prompt was fed",
        because="the agent died before a byte of the request reached it",
    ),
    DeathRule(
        label="not-received",
        when=lambda facts: (
            facts.memory is Memory.WITHOUT and not facts.has_updates and not facts.is_away
        ),
        then=DeathVerdict.PROMPT,
        says="the agent told nothing after the prompt, and a complete replay lacks its mark",
        because="the agent told nothing after the request, and its own record does not have it",
    ),
    DeathRule(
        label="agent-died-ask",
        when=lambda facts: (
            facts.policy is not RecoveryPolicy.AUTO and facts.is_interactive and not facts.is_asked
        ),
        then=DeathVerdict.ASK,
        says="otherwise, and recovery is `ask` or `off` in the chat",
        because="the agent died at work, how far it came is unknown, and recovery asks first here",
    ),
    DeathRule(
        label="agent-away",
        when=lambda facts: facts.is_away,
        then=DeathVerdict.GO_ON,
        says="otherwise, and the agent works on a node that is away",
        because="the agent works on a node that is away; another one goes on here, and knows that",
    ),
    DeathRule(
        label="memory-gone",
        when=lambda facts: facts.memory in (Memory.GONE, Memory.FIRST),
        then=DeathVerdict.GO_ON,
        says="otherwise, and the agent could not load its session",
        because="the agent died at work and has lost its memory; it goes on from our own record",
    ),
    DeathRule(
        label="agent-died",
        when=lambda _: True,
        then=DeathVerdict.GO_ON,
        says="otherwise",
        because="the agent died at work; it goes on from its own record, and knows what was cut",
    ),
)


def death_words(label: str) -> str:
    """What was done by a rule about an agent, for a person who asks what happened."""
    found = next((rule for rule in DEATH_RULES if rule.label == label), None)
    if found is None or found.then is DeathVerdict.GIVE_UP:
        return f"the agent was given up (rule {label})"
    again = "was asked again" if found.then is DeathVerdict.PROMPT else "was told to go on"
    return f"the agent {again} (rule {label}): {found.because}"


def decide_death(facts: DeathFacts) -> DeathRule:
    """The first rule whose condition holds. Total."""
    return next(rule for rule in DEATH_RULES if rule.when(facts))
