"""The page of metrics: what each line of the journal counts as, and the text that is read."""

import re

import pytest

from koboshi.domain.timing import BOUNDS_S, Timing
from koboshi.ports.tally import Called, Happened, Took
from koboshi.runtime.meter import COUNTED, TIMED, labelled
from koboshi.runtime.metric_table import METRICS
from koboshi.runtime.metrics import COUNTERS, called_as, counted_as, taken_as
from koboshi.runtime.metrics_text import Histogram, Metric, render


def happened(subject: str, event: str, **more: str) -> Happened:
    none = dict.fromkeys(("after", "label", "channel"))
    return Happened(subject=subject, event=event, count=1, **{**none, **more})


@pytest.mark.parametrize(
    "line, sample",
    [
        (
            happened("message", "accepted", after="message", channel="telegram:main"),
            ("koboshi_inbox_received_total", {"platform": "telegram", "kind": "message"}),
        ),
        (
            happened("message", "dropped", label="turn-ended"),
            ("koboshi_inbox_refused_total", {"reason": "turn-ended"}),
        ),
        (
            happened("turn", "answered", after="done"),
            ("koboshi_turns_total", {"outcome": "done"}),
        ),
        (
            happened("turn", "resumed", after="queued", label="fresh"),
            ("koboshi_turn_resumes_total", {"decision": "resumed", "reason": "fresh"}),
        ),
        (happened("step", "reply"), ("koboshi_steps_total", {"kind": "reply"})),
        (
            happened("delivery", "rejected", channel="web:main"),
            ("koboshi_outbox_dead_total", {"platform": "web", "reason": "rejected"}),
        ),
        (
            happened("process", "ended", after="exited"),
            ("koboshi_jobs_total", {"outcome": "exited"}),
        ),
    ],
)
def test_a_line_of_the_journal_counts(line: Happened, sample: tuple[str, dict[str, str]]) -> None:
    name, labels = sample

    assert list(counted_as(line)) == [(name, labelled(**labels))]
    assert name in COUNTERS


def test_what_is_no_label_of_ours_is_not_one() -> None:
    """Free words would be endlessly many, and may be a person's."""
    line = happened("message", "accepted", after="ignored", label="ann said: hello")

    assert list(counted_as(line)) == [("koboshi_inbox_refused_total", labelled(reason="other"))]


def test_the_text_cannot_be_broken_by_what_is_in_it() -> None:
    samples = {labelled(a='quote " slash \\ line\n'): 1.5}
    page = render([Metric("koboshi_draining", samples)])

    assert page.splitlines() == [
        "# HELP koboshi_draining 1 while the gateway leaves.",
        "# TYPE koboshi_draining gauge",
        'koboshi_draining{a="quote \\" slash \\\\ line\\n"} 1.5',
    ]


ENDS = {"counter": "_total", "histogram": "_seconds"}


@pytest.mark.parametrize("name", METRICS)
def test_names_are_those_that_prometheus_takes(name: str) -> None:
    told = METRICS[name]

    assert re.fullmatch(r"(?:koboshi|process)_[a-z_]+", name)
    assert name.endswith(ENDS.get(told.kind, ""))
    assert told.words.endswith(".")


def test_what_is_counted_is_in_the_table() -> None:
    assert {METRICS[name].kind for name in (*COUNTERS, *COUNTED)} == {"counter"}
    assert {METRICS[name].kind for name in TIMED} == {"histogram"}


def test_a_turn_that_is_given_up_counts_as_such() -> None:
    given_up = happened("turn", "gave-up", after="failed", label="worn-out")

    assert ("koboshi_turn_quarantines_total", labelled(reason="worn-out")) in counted_as(given_up)


@pytest.mark.parametrize(
    "call, names",
    [
        (Called(tool="terminal", effect="once", outcome="ok", decision=None, count=1), []),
        (
            Called(tool="terminal", effect="once", outcome="unknown", decision="approved", count=1),
            [
                (
                    "koboshi_tool_unknown_outcomes_total",
                    labelled(tool="terminal", effect="once"),
                ),
                ("koboshi_approvals_total", labelled(decision="approved")),
            ],
        ),
    ],
)
def test_calls_count_by_what_became_of_them(call: Called, names: list[object]) -> None:
    assert list(called_as(call)) == names


@pytest.mark.parametrize(
    "what, label, labels",
    [
        ("turn", "done", {"outcome": "done"}),
        ("message", "telegram:main", {"platform": "telegram"}),
        ("tool", "read_file", {"tool": "read_file"}),
        ("tool", "what ann said", {"tool": "other"}),
    ],
)
def test_times_are_told_by_what_took_them(what: str, label: str, labels: dict[str, str]) -> None:
    name, found = taken_as(Took(what=what, label=label, bound_ms=1, count=1, total_ms=1))

    assert METRICS[name].kind == "histogram"
    assert {*METRICS[name].labels} == {*labels}
    assert found == labelled(**labels)


def test_a_histogram_grows_from_bound_to_bound() -> None:
    name, timing = "koboshi_tool_duration_seconds", Timing()
    for seconds in (0.001, 0.0011, 3.0, 9_999.0):
        timing.note(seconds)
    timing.add(None, 2, 20_000.0)
    timing.add(0.002, 1, 0.002)
    page = render([Histogram("koboshi_tool_duration_seconds", {labelled(tool="t"): timing})])
    lines = page.splitlines()

    assert lines[1] == "# TYPE koboshi_tool_duration_seconds histogram"
    assert f'{name}_bucket{{tool="t",le="0.001"}} 1' in lines
    assert f'{name}_bucket{{tool="t",le="0.002"}} 3' in lines
    assert f'{name}_bucket{{tool="t",le="1800"}} 4' in lines
    assert f'{name}_bucket{{tool="t",le="+Inf"}} 7' in lines
    assert f'{name}_count{{tool="t"}} 7' in lines
    assert timing.count == 7
    assert list(BOUNDS_S) == sorted(BOUNDS_S)
    assert all(bound * 1000 == round(bound * 1000) for bound in BOUNDS_S)
