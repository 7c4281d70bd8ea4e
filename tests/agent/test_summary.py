"""When a conversation is summed up, and what of it: nothing that is still needed is taken away."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.agent.context import build_request
from koboshi.agent.size import clip, tokens_in, tokens_of, tokens_of_step
from koboshi.agent.summary import (
    ContextLimits,
    Plan,
    plan_summary,
    summary_of,
    summary_request,
    with_less,
)
from koboshi.domain.ids import (
    CallId,
    ChannelName,
    EntryId,
    Epoch,
    Generation,
    Seq,
    SessionId,
    TurnId,
)
from koboshi.domain.notes import RECOVERY
from koboshi.domain.route import Route
from koboshi.domain.session import Session
from koboshi.domain.transcript import (
    Answer,
    Body,
    Call,
    Effect,
    HeardMessage,
    HeardNote,
    Message,
    Note,
    Reply,
    Result,
    ResultStatus,
    Step,
    Summary,
)
from koboshi.ports.model import Request, ToolSpec
from koboshi.ports.store import Loaded

TURN = TurnId(50)
SESSION = Session(
    session_id=SessionId(3),
    route=Route(channel=ChannelName("web:main"), chat="ann"),
    generation=Generation(1),
    context_from=Seq(0),
)
TOOL = ToolSpec(name="pause", description="Wait.", parameters="{}")
SMALL = ContextLimits(tokens_max=1_000, steps_max=100)


@dataclass
class Talk:
    """A conversation in the making: sizes are in characters."""

    seq: int = 0

    def step(self, turn_id: int, body: Body) -> Step:
        self.seq += 1
        return Step(seq=Seq(self.seq), turn_id=TurnId(turn_id), epoch=Epoch(1), at_ms=0, body=body)

    def message(self, turn_id: int, size: int) -> Step:
        words = f"m{self.seq + 1} ".ljust(size, "x")
        return self.step(turn_id, Message(text=words, sender="ann", entry_id=EntryId(1), sent_ms=0))

    def round(self, turn_id: int, *sizes: int) -> list[Step]:
        """A reply with as many calls as there are sizes, whose results come in reverse."""
        ids = [CallId(f"{self.seq + 1}.{place}") for place in range(len(sizes))]
        calls = tuple(
            Call(call_id=each, tool="pause", arguments="{}", effect=Effect.NONE) for each in ids
        )
        results = [
            Result(call_id=each, status=ResultStatus.OK, text="r" * size)
            for each, size in zip(ids, sizes, strict=True)
        ]
        steps = [self.step(turn_id, Reply(text="", calls=calls))]
        return [*steps, *(self.step(turn_id, result) for result in reversed(results))]

    def turn(self, turn_id: int, message: int, rounds: Sequence[Sequence[int]]) -> list[Step]:
        steps = [self.message(turn_id, message)]
        for sizes in rounds:
            steps += self.round(turn_id, *sizes)
        return steps

    def answered(self, turn_id: int, message: int, rounds: Sequence[Sequence[int]]) -> list[Step]:
        return [
            *self.turn(turn_id, message, rounds),
            self.step(turn_id, Answer(text=f"answer {turn_id}")),
        ]


def loaded_with(context: Sequence[Step], own: Sequence[Step]) -> Loaded:
    return Loaded(
        session=SESSION, context=tuple(context), steps=tuple(own), calls=(), model_tries=0
    )


def request_of(loaded: Loaded) -> Request:
    return build_request(loaded, TURN, "Be kind.", [TOOL])


def plan_of(
    loaded: Loaded, limits: ContextLimits = SMALL, refused_tokens: int | None = None
) -> Plan | None:
    return plan_summary(request_of(loaded), loaded, limits, refused_tokens)


def carried_out(loaded: Loaded, plan: Plan, talk: Talk, text: str = "") -> Loaded:
    """The turn with the longest summary that the plan allows, or with `text`."""
    step = talk.step(TURN, summary_of(text or "s" * 100_000, plan))
    return replace(loaded, steps=(*loaded.steps, step), summary=step)


def texts(request: Request) -> list[str]:
    return [step.body.text for step in request.steps]


# ── what is covered ─────────────────────────────────────────────────────────────────────────────


def test_a_short_conversation_is_left_alone() -> None:
    talk = Talk()
    context = talk.answered(1, 100, [[100]])

    assert plan_of(loaded_with(context, talk.turn(TURN, 100, []))) is None


def test_the_oldest_turns_are_covered_whole_and_the_newest_stay_whole() -> None:
    talk = Talk()
    turns = [talk.answered(number, 400, [[400]]) for number in range(1, 7)]
    loaded = loaded_with([step for turn in turns for step in turn], talk.turn(TURN, 100, []))

    plan = plan_of(loaded)

    assert plan is not None
    assert plan.is_enough
    assert plan.covers in {turn[-1].seq for turn in turns[:-1]}
    after = request_of(carried_out(loaded, plan, talk, "so far"))
    first = after.steps[0].body
    assert isinstance(first, Summary)
    assert [step.seq for step in after.steps[1:]] == [
        step.seq for step in (*loaded.context, *loaded.steps) if step.seq > plan.covers
    ]
    assert tokens_in(after) <= SMALL.tokens_max // 2


def test_a_long_turn_loses_its_oldest_rounds_and_no_word_of_a_person() -> None:
    talk = Talk()
    own = [
        *talk.turn(TURN, 300, [[800], [800]]),
        talk.message(TURN, 300),
        talk.step(TURN, Note(cause=RECOVERY, text="[koboshi] it died")),
        *talk.round(TURN, 800, 800),
        *talk.round(TURN, 100),
    ]
    loaded = loaded_with((), own)

    plan = plan_of(loaded)

    assert plan is not None
    bodies = [step.body for step in request_of(carried_out(loaded, plan, talk, "so far")).steps]
    heard = [HeardMessage, HeardMessage, HeardNote]
    assert [type(body) for body in bodies] == [Summary, *heard, Reply, Result]


def test_many_small_steps_are_too_long_as_well() -> None:
    """Else the oldest would silently fall out of what is loaded."""
    talk = Talk()
    context = [step for number in range(1, 31) for step in talk.answered(number, 4, [])]
    limits = ContextLimits(steps_max=40)
    loaded = loaded_with(context, talk.turn(TURN, 4, []))

    plan = plan_of(loaded, limits)

    assert plan is not None
    assert plan.is_enough
    assert len(request_of(carried_out(loaded, plan, talk)).steps) <= 20


def test_the_newest_round_is_covered_only_when_the_model_has_refused() -> None:
    talk = Talk()
    loaded = loaded_with((), talk.turn(TURN, 100, [[8_000]]))

    assert plan_of(loaded) is None
    plan = plan_of(loaded, refused_tokens=2_100)

    assert plan is not None
    assert plan.is_enough
    after = request_of(carried_out(loaded, plan, talk, "so far"))
    assert [type(step.body) for step in after.steps] == [Summary, HeardMessage]


def test_when_nothing_more_can_be_covered_there_is_no_plan() -> None:
    """A message alone is too long: that is for the model to refuse and for us to say."""
    talk = Talk()
    loaded = loaded_with((), [talk.message(TURN, 9_000)])

    assert plan_of(loaded) is None
    assert plan_of(loaded, refused_tokens=2_500) is None


def test_a_summary_that_would_cost_more_than_it_saves_is_not_made() -> None:
    talk = Talk()
    context = talk.answered(1, 4, [])
    loaded = loaded_with(context, [talk.message(TURN, 9_000)])

    assert plan_of(loaded) is None
    assert plan_of(loaded, refused_tokens=2_500) is not None


def test_a_call_without_a_result_is_never_covered() -> None:
    talk = Talk()
    own = talk.turn(TURN, 100, [[8_000], [8_000]])

    plan = plan_of(loaded_with((), own[:-1]), refused_tokens=4_000)

    assert plan is not None
    assert plan.covers == own[2].seq


def test_the_next_summary_covers_the_one_before() -> None:
    talk = Talk()
    context = talk.answered(1, 4_000, [])
    loaded = loaded_with(context, talk.turn(TURN, 100, []))
    plan = plan_of(loaded)
    assert plan is not None
    loaded = carried_out(loaded, plan, talk, "they like tea")
    loaded = replace(loaded, steps=(*loaded.steps, *talk.round(TURN, 4_000), *talk.round(TURN, 90)))

    later = plan_of(loaded)

    assert later is not None
    assert later.covers > plan.covers
    assert later.steps[0].body == Summary(text="they like tea", covers=plan.covers)
    shown = texts(request_of(carried_out(loaded, later, talk, "they love tea")))
    assert "they love tea" in shown
    assert "they like tea" not in shown


# ── what the model is given, and what it gives back ─────────────────────────────────────────────


def test_what_is_summed_up_is_bounded() -> None:
    talk = Talk()
    context = [step for number in range(1, 40) for step in talk.answered(number, 90_000, [[9_000]])]
    loaded = loaded_with(context, talk.turn(TURN, 10, []))
    limits = ContextLimits(tokens_max=20_000)
    plan = plan_of(loaded, limits)
    assert plan is not None

    asked = summary_request(request_of(loaded), plan, limits)

    assert asked.wants_summary
    assert asked.tools == ()
    assert sum(tokens_of_step(step) for step in asked.steps) <= plan.tokens_max == 10_000
    assert all(step.seq <= plan.covers for step in asked.steps)


def test_the_model_is_told_when_the_oldest_steps_are_not_in_the_record() -> None:
    talk = Talk()
    context = [step for number in range(1, 90) for step in talk.answered(number, 100, [])]
    loaded = loaded_with(context, talk.turn(TURN, 10, []))
    plan = plan_of(loaded, replace(SMALL, steps_max=1_000))
    assert plan is not None

    (gap, *_) = summary_request(request_of(loaded), plan, SMALL).steps

    assert "earlier steps are not in this record" in gap.body.text


def test_a_plan_with_less_comes_to_an_end() -> None:
    plan: Plan | None = Plan(covers=Seq(1), steps=(), is_enough=True, tokens_max=60_000, room=10)
    tries = 0
    while plan is not None:
        plan, tries = with_less(plan), tries + 1

    assert tries < 8


@pytest.mark.parametrize("said", ["", "  \n"])
def test_an_empty_summary_says_that_something_was_left_out(said: str) -> None:
    talk = Talk()
    before = talk.step(1, Summary(text="they like tea", covers=Seq(1)))
    plan = Plan(covers=Seq(9), steps=(before,), is_enough=True, tokens_max=100, room=100)

    made = summary_of(said, plan)

    assert made.covers == 9
    assert made.text.startswith("they like tea\n")
    assert "Earlier conversation left out" in made.text
    alone = summary_of(said, replace(plan, steps=()))
    assert alone.text.startswith("Earlier conversation left out")


@given(text=st.text(), tokens_max=st.integers(2, 50))
def test_a_clipped_text_is_short_enough_and_keeps_its_ends(text: str, tokens_max: int) -> None:
    clipped = clip(text, tokens_max)

    assert tokens_of(clipped) <= tokens_max
    assert clipped == text or text.startswith(clipped.partition(" […] ")[0].rstrip("\ufffd?"))


# ── for any conversation ────────────────────────────────────────────────────────────────────────

sizes = st.integers(0, 3_000)
rounds = st.lists(st.lists(sizes, min_size=1, max_size=3), max_size=4)
earlier = st.lists(st.tuples(sizes, rounds), max_size=5)
budgets = st.builds(
    ContextLimits,
    tokens_max=st.integers(200, 4_000),
    steps_max=st.integers(5, 60),
    summary_tokens_max=st.integers(20, 300),
)


@given(earlier=earlier, message=sizes, own=rounds, limits=budgets, is_refused=st.booleans())
def test_nothing_that_is_needed_is_ever_taken_away(
    earlier: list[tuple[int, list[list[int]]]],
    message: int,
    own: list[list[int]],
    limits: ContextLimits,
    is_refused: bool,
) -> None:
    """Summaries are made until none can be made any more: each covers more, no reply is parted
    from its results, no message that is not covered is lost, and the promised size is kept."""
    talk = Talk()
    context = [
        step
        for number, (size, worked) in enumerate(earlier, start=1)
        for step in talk.answered(number, size, worked)
    ]
    loaded = loaded_with(context, talk.turn(TURN, message, own))
    everything = (*loaded.context, *loaded.steps)
    covers = 0
    while True:
        request = request_of(loaded)
        plan = plan_of(loaded, limits, tokens_in(request) if is_refused else None)
        if plan is None:
            break
        assert plan.covers > covers
        covers = plan.covers
        loaded = carried_out(loaded, plan, talk)
        after = request_of(loaded)
        _no_call_is_parted_from_its_result(after)
        _every_message_is_shown_or_covered(after, everything, covers)
        _whole_turns_go_before_rounds(after, everything, covers)
        if plan.is_enough and not is_refused:
            assert tokens_in(after) <= limits.tokens_max
            assert len(after.steps) <= limits.steps_max
    if is_refused:
        left = [step.body for step in request_of(loaded).steps]
        assert not any(isinstance(body, Reply | Result | Answer) for body in left)


def _no_call_is_parted_from_its_result(request: Request) -> None:
    place = 0
    while place < len(request.steps):
        body = request.steps[place].body
        place += 1
        if isinstance(body, Reply):
            behind = [step.body for step in request.steps[place : place + len(body.calls)]]
            found = [each.call_id for each in behind if isinstance(each, Result)]
            assert found == [call.call_id for call in body.calls]
            place += len(found)
        else:
            assert not isinstance(body, Result)


def _every_message_is_shown_or_covered(
    request: Request, everything: Sequence[Step], covers: int
) -> None:
    needed = [
        step
        for step in everything
        if isinstance(step.body, Message) and (step.seq > covers or step.turn_id == TURN)
    ]
    shown = [step for step in request.steps if isinstance(step.body, Message)]
    assert [(step.seq, step.body.text) for step in shown] == [
        (step.seq, step.body.text) for step in needed
    ]


def _whole_turns_go_before_rounds(
    request: Request, everything: Sequence[Step], covers: int
) -> None:
    of_turns = {step.turn_id for step in everything if step.seq <= covers and step.turn_id != TURN}
    assert not any(step.turn_id in of_turns for step in request.steps)
    if any(step.seq <= covers and step.turn_id == TURN for step in everything):
        shown = {step.turn_id for step in request.steps}
        assert shown == {TURN}
