"""When a conversation is too long to be shown, and which part of it a summary covers. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import assert_never

from koboshi.agent.context import by_turn, covered_by, is_work
from koboshi.agent.prompt import summary_prompt
from koboshi.agent.size import STEP_TOKENS, clip, tokens_in, tokens_of_step
from koboshi.domain import notes
from koboshi.domain.ids import CallId, Seq
from koboshi.domain.transcript import (
    Answer,
    Body,
    Message,
    Note,
    Question,
    Reply,
    Result,
    Step,
    Summary,
)
from koboshi.ports.model import Request
from koboshi.ports.store import Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLimits:
    """How much the model is shown at once. Tokens are estimated."""

    tokens_max: int = 120_000
    steps_max: int = 300
    summary_tokens_max: int = 3_000
    step_tokens_max: int = 1_000
    """The longest step in a request for a summary."""

    @property
    def summary_room(self) -> int:
        """How long a summary may be: a small part of what is shown."""
        return min(self.summary_tokens_max, self.tokens_max // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A summary to be made."""

    covers: Seq
    steps: tuple[Step, ...]
    """The steps it covers, the summary before it included."""
    is_enough: bool
    """Whether the rest is short enough."""
    tokens_max: int
    """How much of them may be shown to the summarising model."""
    room: int
    """How long it may be."""


def plan_summary(
    request: Request, loaded: Loaded, limits: ContextLimits, refused_tokens: int | None = None
) -> Plan | None:
    """The summary that has to be made before `request` is sent; None if none has to, or can.

    It covers the oldest turns, each whole; if that is not enough, the oldest rounds of this turn,
    never a call without its result, and never a message to the model in this turn. About half of
    the limit is left, so that the next summary is not due soon. `refused_tokens` is the size of a
    request that the model found too long: then much less is left, and even the newest round goes if
    nothing else helps. A later plan always covers more than an earlier one.
    """
    size = tokens_in(request)
    is_refused = refused_tokens is not None
    if not is_refused and size <= limits.tokens_max and len(request.steps) <= limits.steps_max:
        return None
    ends = [*_ends_of_turns(loaded), *_ends_of_rounds(loaded, with_newest=is_refused)]
    if not ends:
        return None
    if refused_tokens is not None:
        limits = _tighter(request, limits, refused_tokens)
    budget = limits.tokens_max
    measured = _Measured(request, limits.summary_room)
    goals = (budget,) if is_refused else (budget // 2, budget)
    covers = _smallest(measured, ends, limits, goals)
    left = measured.left_behind(covers)
    is_enough = left.fits(budget, limits.steps_max)
    if not is_refused and not is_enough and left.tokens >= size:
        return None  # it would cost more than it saves; the model may take it as it is
    return Plan(
        covers=covers,
        steps=tuple(step for step in request.steps if _is_summary(step) or step.seq <= covers),
        is_enough=is_enough,
        tokens_max=budget // 2,
        room=limits.summary_room,
    )


def summary_request(request: Request, plan: Plan, limits: ContextLimits) -> Request:
    """The request for a summary, in place of `request`: the steps that it covers, long ones
    shortened, the oldest left out where they are many."""
    return replace(
        request,
        system=summary_prompt(plan.room),
        steps=_shortened(plan, limits),
        tools=(),
        wants_summary=True,
    )


def with_less(plan: Plan) -> Plan | None:
    """The same summary made from much less; None if that is next to nothing."""
    less = plan.tokens_max // 4
    return replace(plan, tokens_max=less) if less >= 100 else None


def summary_of(text: str, plan: Plan) -> Summary:
    """The summary with the model's text. If that is empty, it says that the covered steps were left
    out."""
    words = text.strip()
    if not words:
        before = plan.steps[0].body if plan.steps else None
        kept = before.text if isinstance(before, Summary) else ""
        words = notes.left_out(clip(kept, plan.room // 2))
    return Summary(text=clip(words, plan.room), covers=plan.covers)


@dataclass(frozen=True, slots=True)
class _Left:
    """What is shown beside a new summary, and with it."""

    tokens: int
    steps: int

    def fits(self, tokens_max: int, steps_max: int) -> bool:
        return self.tokens <= tokens_max and self.steps <= steps_max


class _Measured:
    """A request whose steps were measured once, so that many ends can be tried."""

    def __init__(self, request: Request, summary_room: int) -> None:
        steps = [step for step in request.steps if not _is_summary(step)]
        sizes = {step.seq: tokens_of_step(step) for step in steps}
        may_go = (step for step in steps if is_work(step) or step.turn_id != request.turn_id)
        self._seqs = sorted(step.seq for step in may_go)
        self._gone = [0, *accumulate(sizes[seq] for seq in self._seqs)]
        beside = tokens_in(replace(request, steps=()))
        summary = summary_room + STEP_TOKENS
        self._all = _Left(beside + summary + sum(sizes.values()), len(steps) + 1)

    def left_behind(self, end: Seq) -> _Left:
        """What is left when everything removable is covered up to `end`."""
        count = bisect_right(self._seqs, end)
        return _Left(self._all.tokens - self._gone[count], self._all.steps - count)


def _tighter(request: Request, limits: ContextLimits, refused_tokens: int) -> ContextLimits:
    """Limits that leave out half of the removable part of a refused request."""
    beside = tokens_in(replace(request, steps=()))
    half = beside + max(0, refused_tokens - beside) // 2
    return replace(limits, tokens_max=min(limits.tokens_max, half))


def _smallest(
    measured: _Measured, ends: Sequence[Seq], limits: ContextLimits, goals: Sequence[int]
) -> Seq:
    """The first end that leaves no more than a goal, for the first goal that can be reached; else
    the last end."""
    for goal in goals:
        steps_max = max(1, limits.steps_max * goal // max(1, limits.tokens_max))
        for end in ends:
            if measured.left_behind(end).fits(goal, steps_max):
                return end
    return ends[-1]


def _ends_of_turns(loaded: Loaded) -> Iterator[Seq]:
    """Where each earlier turn ends that is not covered yet."""
    covers = covered_by(loaded)
    for turn in by_turn(step for step in loaded.context if step.seq > covers):
        yield turn[-1].seq


def _ends_of_rounds(loaded: Loaded, *, with_newest: bool) -> Iterator[Seq]:
    """Where each round of this turn ends: a reply and the results of its calls. The newest one is
    what the model responds to next."""
    covers = covered_by(loaded)
    unresolved: set[CallId] = set()
    last = newest = None
    for step in loaded.steps:
        if step.seq <= covers:
            continue
        match step.body:
            case Reply(calls=calls):
                if last is not None and newest is not None and not unresolved:
                    yield last
                unresolved |= {call.call_id for call in calls}
            case Result(call_id=call_id):
                unresolved.discard(call_id)
                newest = step.seq
            case _:
                pass
        last = step.seq
    if with_newest and newest is not None and not unresolved:
        yield newest


def _shortened(plan: Plan, limits: ContextLimits) -> tuple[Step, ...]:
    first, rest = plan.steps[:1], plan.steps[1:]
    if not (first and _is_summary(first[0])):
        first, rest = (), plan.steps
    room = plan.tokens_max - sum(tokens_of_step(step) for step in first)
    each = min(limits.step_tokens_max, max(20, room // max(1, len(rest))))
    kept: list[Step] = []
    for step in reversed(rest):
        short = replace(step, body=_shorter(step.body, each))
        room -= tokens_of_step(short)
        if room < 0:
            break
        kept.append(short)
    if kept and len(kept) < len(rest):
        gap = Note(cause="gap", text=notes.not_in_record(len(rest) - len(kept)))
        kept.append(replace(kept[-1], body=gap))
    return (*first, *reversed(kept))


def _shorter(body: Body, tokens_max: int) -> Body:
    match body:
        case Reply(calls=calls):
            each = tokens_max // (len(calls) + 1)
            short = tuple(replace(call, arguments=clip(call.arguments, each)) for call in calls)
            return replace(body, text=clip(body.text, each), calls=short, raw="")
        case Answer():
            return replace(body, text=clip(body.text, tokens_max), raw="")
        case Message() | Note() | Result() | Question() | Summary():
            return replace(body, text=clip(body.text, tokens_max))
        case _:
            assert_never(body)


def _is_summary(step: Step) -> bool:
    return isinstance(step.body, Summary)
