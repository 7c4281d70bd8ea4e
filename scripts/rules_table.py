"""Write docs/recovery-rules.md from the rules in the code. Run it with the project's Python."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

from koboshi.domain.agent_death import DEATH_RULES
from koboshi.domain.recovery import (
    RULES,
    Interruption,
    Policy,
    RecoveryPolicy,
    Rule,
    TurnFacts,
    VerdictKind,
    contradiction_in,
)
from koboshi.domain.transcript import Author, Effect, Tail
from koboshi.domain.turn import TurnState
from koboshi.domain.worker import Breaker

PAGE = Path(__file__).resolve().parent.parent / "docs" / "recovery-rules.md"
POLICY = Policy()
BOTH = (False, True)

TEMPLATE = """\
<!-- Written by scripts/rules_table.py from the rules in the code. Do not edit. -->

# Recovery rules

What happens to a turn that no worker holds. The rules are asked from top to bottom and the first
whose condition holds speaks; `koboshi explain` prints the same decision for one turn. They are
`RULES` in `src/koboshi/domain/recovery.py`.

The two columns of verdicts say what happens where a person can answer a question, and where none
can; — means that the rule does not apply there. A rule marked *taken up* concerns only turns that
a worker held before and that no person has asked for since: it does not concern a message
that waits for its first claim, an answered question, or what `/resume` and `/retry` ask for.

{rules}

As shipped: fresh means idle for at most {fresh_minutes} minutes, {deaths_max} deaths in a row
exhaust a turn, and {recoveries_max} recoveries wear it out.

## A foreign agent that died

A turn whose agent lives, or has said more than is stored, is attached first (`agent-attached`).
When its [agent](agents.md) is dead and all that it wrote is stored, these rules decide about its
prompt. They are `DEATH_RULES` in `src/koboshi/domain/agent_death.py`, and each repeat leaves a note
with its rule in the transcript, which `koboshi explain` and `/why` show.

{deaths}

*restart*: start the agent again, and let it load its session. *prompt*: send the prompt, which was
certainly not received. *go-on*: tell the agent what happened, with its calls that have no end, and
let it go on. *ask*: a person decides. *give-up*: the turn fails, with the agent's last words.

An agent that lives is given up, and ended, by one of three rules: `agent-silent` (it does not
answer `initialize`, `session/new` or `session/load` within `agents.NAME.start_seconds`),
`agent-refused` (it answers one of the first two with an error) and `agent-line-too-long`.
"""


def render() -> str:
    """The whole page, as the code stands now."""
    header = ("#", "rule", "when", "only if", "with a person", "without", "because")
    rows = (
        (
            str(number),
            f"`{rule.label}`",
            rule.says,
            "taken up" if concerns_only_what_was_taken_up(rule) else "",
            verdicts(rule, is_interactive=True),
            verdicts(rule, is_interactive=False),
            rule.because,
        )
        for number, rule in enumerate(RULES, start=1)
    )
    lines = [header, ("---",) * len(header), *rows]
    return TEMPLATE.format(
        rules="\n".join("| " + " | ".join(cells) + " |" for cells in lines),
        fresh_minutes=POLICY.fresh_ms // 60_000,
        deaths_max=POLICY.deaths_max,
        recoveries_max=POLICY.recoveries_max,
        deaths=deaths(),
    )


def deaths() -> str:
    """The table about agents that died."""
    header = ("#", "rule", "when", "then", "because")
    rows = (
        (str(number), f"`{rule.label}`", rule.says, f"**{rule.then}**", rule.because)
        for number, rule in enumerate(DEATH_RULES, start=1)
    )
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def verdicts(rule: Rule, *, is_interactive: bool) -> str:
    """What the rule says of the turns that reach it."""
    kinds = {
        rule.then(facts)
        for facts in facts_that_reach()[rule.label]
        if facts.is_interactive == is_interactive
    }
    return ", ".join(f"**{kind}**" for kind in VerdictKind if kind in kinds) or "—"


def concerns_only_what_was_taken_up(rule: Rule) -> bool:
    return all(
        facts.is_claimed_before and not facts.is_willed for facts in facts_that_reach()[rule.label]
    )


@cache
def facts_that_reach() -> dict[str, list[TurnFacts]]:
    """For each rule, facts for which it is the first that holds."""
    reached: dict[str, list[TurnFacts]] = {rule.label: [] for rule in RULES}
    for facts in some_facts():
        rule = next(rule for rule in RULES if rule.when(facts, POLICY))
        reached[rule.label].append(facts)
    return reached


def some_facts() -> Iterator[TurnFacts]:
    """Consistent facts, with one value on each side of every boundary."""
    shapes = (
        (TurnState.QUEUED, Tail.TRIGGER, None, None),
        (TurnState.QUEUED, Tail.STARTED, Effect.ONCE, None),
        (TurnState.WAITING, Tail.QUESTION, None, Author.MODEL),
        (TurnState.ANSWERED, Tail.ANSWER, None, None),
    )
    histories = product(
        (0, POLICY.recoveries_max), (0, POLICY.deaths_max), (0, POLICY.fresh_ms + 1)
    )
    for shape, history, switches, policy, breaker in product(
        shapes,
        tuple(histories),
        product(BOTH, repeat=9),
        RecoveryPolicy,
        (Breaker.CLOSED, Breaker.OPEN),
    ):
        state, tail, under_way, asked_by = shape
        recoveries, crash_streak, idle_ms = history
        claimed, willed, postponed, waits, behind, allowed, known, interactive, attached = switches
        facts = TurnFacts(
            state=state,
            tail=tail,
            under_way=under_way,
            is_claimed_before=claimed,
            is_willed=willed,
            is_postponed=postponed,
            is_current=True,
            recoveries=recoveries,
            crash_streak=crash_streak,
            idle_ms=idle_ms,
            message_waits=waits,
            message_behind=behind,
            asked_by=asked_by,
            is_person_allowed=allowed,
            is_channel_known=known,
            is_interactive=interactive,
            interruption=Interruption.CRASH,
            policy=policy,
            breaker=breaker,
            is_attached=attached,
        )
        if contradiction_in(facts) is None:
            yield facts
            yield replace(facts, is_host_away=True)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")
