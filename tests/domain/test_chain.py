"""The chain of models: what is passed on, who can take a request, and for how long one is left."""

from itertools import product

import pytest

from koboshi.domain.chain import (
    AllBenched,
    Bench,
    LinkFailure,
    ModelLink,
    Needs,
    NoneFits,
    Use,
    bench_words,
    benched,
    choose,
    unfit,
)
from koboshi.domain.errors import ModelBusy, ModelOverfull, ModelRefused
from koboshi.domain.trouble import TROUBLE_RULES, ModelTrouble

LINKS = tuple(ModelLink(name=name) for name in ("a:1", "b:2", "c:3"))
NOW_MS = 1_000_000
PASSED_ON = {
    ModelTrouble.BUSY,
    ModelTrouble.OVERLOADED,
    ModelTrouble.FAILED,
    ModelTrouble.QUOTA,
    ModelTrouble.UNREACHABLE,
    ModelTrouble.KEY,
}


def a_bench(name: str, trouble: ModelTrouble = ModelTrouble.BUSY, left_ms: int = 5_000) -> Bench:
    return Bench(
        model=name,
        node="",
        trouble=trouble,
        reason=f"{name} is {trouble}",
        tries=1,
        since_ms=NOW_MS - 1,
        until_ms=NOW_MS + left_ms,
    )


def failed(trouble: ModelTrouble, asked_ms: int | None = None) -> LinkFailure:
    return LinkFailure(model="a:1", trouble=trouble, reason="why", asked_ms=asked_ms)


def test_the_table_says_of_every_trouble_whether_the_next_model_is_asked() -> None:
    """Issue 21: content and size stay with their model; so does what is our own doing."""
    assert set(TROUBLE_RULES) == set(ModelTrouble)
    assert {trouble for trouble, rule in TROUBLE_RULES.items() if rule.is_passed_on} == PASSED_ON
    assert [each for each, rule in TROUBLE_RULES.items() if rule.is_of_node] == [
        ModelTrouble.UNREACHABLE
    ]
    for rule in TROUBLE_RULES.values():
        assert rule.is_passed_on == (0 < rule.first_ms <= rule.longest_ms)
        assert rule.is_passed_on or not (rule.is_of_node or rule.is_lasting)


@pytest.mark.parametrize(
    "error, trouble",
    [
        (ModelBusy("x", status=429), ModelTrouble.BUSY),
        (ModelBusy("x", status=529), ModelTrouble.OVERLOADED),
        (ModelBusy("x", status=500), ModelTrouble.FAILED),
        (ModelBusy("x", status=503), ModelTrouble.FAILED),
        (ModelBusy("x"), ModelTrouble.FAILED),
        (ModelBusy("x", trouble=ModelTrouble.UNREACHABLE), ModelTrouble.UNREACHABLE),
        (ModelRefused("x", status=402), ModelTrouble.QUOTA),
        (ModelRefused("x", status=401), ModelTrouble.KEY),
        (ModelRefused("x", status=404), ModelTrouble.KEY),
        (ModelRefused("x", status=400), ModelTrouble.CONTENT),
        (ModelRefused("x"), ModelTrouble.CONTENT),
        (ModelRefused("x", status=413), ModelTrouble.SIZE),
        (ModelOverfull("x", status=400), ModelTrouble.SIZE),
    ],
)
def test_an_error_says_what_trouble_it_is(
    error: ModelBusy | ModelRefused, trouble: ModelTrouble
) -> None:
    assert error.trouble is trouble


def test_of_all_ways_to_be_benched_the_first_that_is_well_is_asked() -> None:
    for ill in product((False, True), repeat=3):
        benches = [a_bench(link.name) for link, is_ill in zip(LINKS, ill, strict=True) if is_ill]
        choice = choose(LINKS, benches, Needs(), now_ms=NOW_MS)
        if all(ill):
            assert isinstance(choice, AllBenched)
            assert choice.wait_ms == 5_000
            assert not choice.is_lasting
        else:
            assert isinstance(choice, Use)
            assert choice.link is LINKS[ill.index(False)]
            assert bool(choice.because) is ill[0]


def test_a_bench_that_is_over_keeps_no_request_away() -> None:
    choice = choose(LINKS, [a_bench("a:1", left_ms=0)], Needs(), now_ms=NOW_MS)
    assert choice == Use(link=LINKS[0], because="", was_benched=True)


def test_of_two_benches_of_a_model_the_longer_one_counts() -> None:
    benches = [a_bench("a:1", left_ms=-1), a_bench("a:1", ModelTrouble.UNREACHABLE, left_ms=1)]
    choice = choose(LINKS, benches, Needs(), now_ms=NOW_MS)
    assert isinstance(choice, Use)
    assert choice.link.name == "b:2"


def test_a_turn_stays_on_its_model_and_a_wish_comes_before_the_order() -> None:
    def used(on: str | None = None, wished: str | None = None, ill: str = "") -> str:
        choice = choose(LINKS, [a_bench(ill)], Needs(), now_ms=NOW_MS, on=on, wished=wished)
        assert isinstance(choice, Use)
        return choice.link.name

    assert used(on="b:2") == "b:2"
    assert used(on="b:2", ill="b:2") == "a:1"
    assert used(wished="c:3") == "c:3"
    assert used(wished="c:3", ill="c:3") == "a:1"
    assert used(on="b:2", wished="c:3") == "b:2"
    assert used(on="gone:9", wished="gone:8") == "a:1"


def test_only_what_can_take_a_request_is_asked() -> None:
    """Issue 21: pictures, tools and the size of the context."""
    blind = ModelLink(name="blind", sees_pictures=False)
    plain = ModelLink(name="plain", takes_tools=False)
    small = ModelLink(name="small", tokens_max=100)
    whole = ModelLink(name="whole")
    links = (blind, plain, small, whole)
    needs = Needs(pictures=True, tools=True, tokens=101)

    assert [unfit(link, needs) is None for link in links] == [False, False, False, True]
    assert [unfit(link, Needs(tokens=100)) for link in links] == [None] * 4
    choice = choose(links, [], needs, now_ms=NOW_MS)
    assert isinstance(choice, Use)
    assert choice.link is whole
    assert choice.because == "blind: it takes no pictures"
    waits = choose(links, [a_bench("whole")], needs, now_ms=NOW_MS)
    assert isinstance(waits, AllBenched)


def test_too_long_for_all_is_not_the_same_as_unfit() -> None:
    small, plain = (
        ModelLink(name="small", tokens_max=10),
        ModelLink(name="plain", takes_tools=False),
    )
    long = choose((small,), [], Needs(tokens=11), now_ms=NOW_MS)
    unable = choose((plain,), [], Needs(tools=True), now_ms=NOW_MS)
    assert isinstance(long, NoneFits)
    assert long.is_too_long
    assert isinstance(unable, NoneFits)
    assert not unable.is_too_long


def test_pictures_that_no_model_sees_keep_no_model_away() -> None:
    blind = ModelLink(name="blind", sees_pictures=False)
    assert isinstance(choose((blind,), [], Needs(pictures=True), now_ms=NOW_MS), Use)


def test_waiting_is_no_use_if_all_are_out_of_credit_or_have_no_key() -> None:
    lasting = [a_bench("a:1", ModelTrouble.QUOTA), a_bench("b:2", ModelTrouble.KEY)]
    choice = choose(LINKS[:2], lasting, Needs(), now_ms=NOW_MS)
    assert isinstance(choice, AllBenched)
    assert choice.is_lasting
    assert choice.reason == "a:1: a:1 is quota; b:2: b:2 is key"
    mixed = choose(LINKS, [*lasting, a_bench("c:3")], Needs(), now_ms=NOW_MS)
    assert isinstance(mixed, AllBenched)
    assert not mixed.is_lasting


def test_benches_grow_to_a_bound_and_begin_anew_once_lifted() -> None:
    bench, lengths, now_ms = None, [], NOW_MS
    for _ in range(5):
        bench = benched(bench, failed(ModelTrouble.BUSY), "n", now_ms)
        lengths.append(bench.until_ms - now_ms)
        now_ms = bench.until_ms
    assert lengths == [15_000, 30_000, 60_000, 60_000, 60_000]
    assert bench is not None
    assert (bench.tries, bench.since_ms, bench.node) == (5, NOW_MS, "")


def test_two_turns_that_fail_at_once_make_one_failure() -> None:
    first = benched(None, failed(ModelTrouble.BUSY), "n", NOW_MS)
    second = benched(first, failed(ModelTrouble.BUSY, asked_ms=1_000), "n", NOW_MS + 1)
    assert second.tries == 1
    assert second.until_ms == first.until_ms


@pytest.mark.parametrize(
    "asked_ms, wait_ms", [(0, 1_000), (7_000, 7_000), (10**15, 24 * 3_600_000)]
)
def test_the_wait_that_a_provider_names_is_kept_within_bounds(asked_ms: int, wait_ms: int) -> None:
    bench = benched(None, failed(ModelTrouble.BUSY, asked_ms), "n", NOW_MS)
    assert bench.until_ms - NOW_MS == wait_ms


def test_what_is_out_of_reach_is_so_from_one_node() -> None:
    bench = benched(None, failed(ModelTrouble.UNREACHABLE), "kyoto", NOW_MS)
    assert bench.node == "kyoto"
    assert bench_words(bench, NOW_MS) == "unreachable from kyoto, asked again in 15 s: why"
