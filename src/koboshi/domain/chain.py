"""The chain of models: which of them a request goes to, and how long one is benched. Pure.

A bench is a stored row, so a restart neither forgets that a model is unwell nor asks it again too
early. The choice is made anew for each request, from these rows and from the row that says which
model the turn is on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from koboshi.domain.durations import duration
from koboshi.domain.phrases import excerpt
from koboshi.domain.trouble import TROUBLE_RULES, ModelTrouble

ASKED_MS_MAX = 24 * 3_600_000
"""A provider that wants a longer pause is asked again once a day."""
ASKED_MS_MIN = 1_000
REASON_CHARS_MAX = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLink:
    """A model of the chain, and what it can take."""

    name: str
    """As it is configured: `openai:gpt-5`, or the name of its section."""
    model: str = ""
    """As its provider calls it: `openai:gpt-5`."""
    sees_pictures: bool = True
    takes_tools: bool = True
    tokens_max: int = 0
    """How long a request may be; 0: no limit is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a request asks of a model."""

    pictures: bool = False
    tools: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFailure:
    """A request that a model did not answer, and how long its provider wants it left alone."""

    model: str
    trouble: ModelTrouble
    reason: str
    asked_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A model that is not asked until a moment. `node` is empty if that counts on all nodes."""

    model: str
    node: str
    trouble: ModelTrouble
    reason: str
    tries: int
    """How often it failed in a row."""
    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    link: ModelLink
    because: str
    """Why it is not the first one; empty if it is."""
    was_benched: bool = False
    """It failed when it was last asked: a reply lifts the bench."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllBenched:
    """All that could answer are benched; the first of them for so long."""

    wait_ms: int
    reason: str
    is_lasting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NoneFits:
    reason: str
    is_too_long: bool
    """A shorter request would have a model."""


Choice: TypeAlias = Use | AllBenched | NoneFits


def benched(before: Bench | None, failure: LinkFailure, node: str, now_ms: int) -> Bench:
    """The bench of a model that failed. One that is benched already was asked at the same time by
    another turn: that is no further failure in a row."""
    rule = TROUBLE_RULES[failure.trouble]
    is_known = before is not None and before.until_ms > now_ms
    tries = 1 if before is None else before.tries + (0 if is_known else 1)
    if failure.asked_ms is None:
        wait_ms = min(rule.first_ms * 2 ** min(tries - 1, 10), rule.longest_ms)
    else:
        wait_ms = min(max(failure.asked_ms, ASKED_MS_MIN), ASKED_MS_MAX)
    until_ms = now_ms + wait_ms
    return Bench(
        model=failure.model,
        node=node if rule.is_of_node else "",
        trouble=failure.trouble,
        reason=failure.reason,
        tries=tries,
        since_ms=now_ms if before is None else before.since_ms,
        until_ms=max(until_ms, before.until_ms) if is_known and before else until_ms,
    )


def choose(
    links: Sequence[ModelLink],
    benches: Sequence[Bench],
    needs: Needs,
    *,
    now_ms: int,
    on: str | None = None,
    wished: str | None = None,
) -> Choice:
    """Which model a request goes to: the one that the turn is on, else the one that the chat
    wishes, else the first of the chain; of those that can take it, and are not benched.

    Pictures that no model of the chain sees are words for all of them.
    """
    if needs.pictures and not any(link.sees_pictures for link in links):
        needs = Needs(tools=needs.tools, tokens=needs.tokens)
    fit = [link for link in links if unfit(link, needs) is None]
    if not fit:
        listed = "; ".join(f"{link.name}: {unfit(link, needs)}" for link in links)
        is_too_long = any(
            unfit(link, Needs(pictures=needs.pictures, tools=needs.tools)) is None for link in links
        )
        return NoneFits(reason=f"no model can take this ({listed})", is_too_long=is_too_long)
    order = sorted(fit, key=lambda link: (link.name != on, link.name != wished))
    newest = {link.name: _newest(benches, link.name) for link in order}
    for link in order:
        bench = newest[link.name]
        if bench is None or bench.until_ms <= now_ms:
            because = _because(links, newest, needs, link, wished, now_ms)
            return Use(link=link, because=because, was_benched=bench is not None)
    in_order = (newest[link.name] for link in fit)
    waits = [bench for bench in in_order if bench is not None]
    return AllBenched(
        wait_ms=min(bench.until_ms for bench in waits) - now_ms,
        reason="; ".join(
            f"{each.model}: {excerpt(each.reason, REASON_CHARS_MAX)}" for each in waits
        ),
        is_lasting=all(TROUBLE_RULES[each.trouble].is_lasting for each in waits),
    )


def unfit(link: ModelLink, needs: Needs) -> str | None:
    """Why a model cannot take a request; None if it can."""
    if needs.pictures and not link.sees_pictures:
        return "it takes no pictures"
    if needs.tools and not link.takes_tools:
        return "it takes no tools"
    if link.tokens_max and needs.tokens > link.tokens_max:
        return f"it takes {link.tokens_max} tokens at most"
    return None


def bench_words(bench: Bench, now_ms: int) -> str:
    """How a benched model is, for people."""
    left_ms = bench.until_ms - now_ms
    where = f" from {bench.node}" if bench.node else ""
    when = f"asked again in {duration(left_ms)}" if left_ms > 0 else "asked again next time"
    return f"{bench.trouble}{where}, {when}: {excerpt(bench.reason, REASON_CHARS_MAX)}"


def _newest(benches: Sequence[Bench], name: str) -> Bench | None:
    """The bench of a model that lasts longest: it may have one of its own on this node."""
    of_model = [bench for bench in benches if bench.model == name]
    return max(of_model, key=lambda bench: bench.until_ms, default=None)


def _because(
    links: Sequence[ModelLink],
    newest: dict[str, Bench | None],
    needs: Needs,
    used: ModelLink,
    wished: str | None,
    now_ms: int,
) -> str:
    """Why not the one that would be first."""
    first = next((link for link in links if link.name == wished), links[0])
    if first.name == used.name:
        return ""
    if why := unfit(first, needs):
        return f"{first.name}: {why}"
    bench = newest[first.name]
    if bench is not None and bench.until_ms > now_ms:
        return f"{first.name}: {excerpt(bench.reason, REASON_CHARS_MAX)}"
    return f"the turn went on with it after {first.name} had failed"
