"""Write docs/recovery-rules.md from the rules in the code. Run it with the project's Python."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

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
    )


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
        product(BOTH, repeat=8),
        RecoveryPolicy,
        (Breaker.CLOSED, Breaker.OPEN),
    ):
        state, tail, under_way, asked_by = shape
        recoveries, crash_streak, idle_ms = history
        claimed, willed, postponed, waits, behind, allowed, known, interactive = switches
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
        )
        if contradiction_in(facts) is None:
            yield facts


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")
