"""The page of metrics: what each line of the journal counts as, and the text that is read."""

import re

import pytest

from koboshi.ports.views import Happened
from koboshi.runtime.metrics import COUNTERS, counted_as
from koboshi.runtime.metrics_text import Metric, labelled, render


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
    """Free words would be endlessly many, and may be somebody's."""
    line = happened("message", "accepted", after="ignored", label="ann said: hello")

    assert list(counted_as(line)) == [("koboshi_inbox_refused_total", labelled(reason="other"))]


def test_the_text_can_not_be_broken_by_what_is_in_it() -> None:
    samples = {labelled(a='quote " slash \\ line\n'): 1.5}
    page = render([Metric(name="x", kind="gauge", words="two\nlines", samples=samples)])

    assert page.splitlines() == [
        "# HELP x two\\nlines",
        "# TYPE x gauge",
        'x{a="quote \\" slash \\\\ line\\n"} 1.5',
    ]


def test_names_are_those_that_prometheus_takes() -> None:
    assert all(re.fullmatch(r"koboshi_[a-z_]+_total", name) for name in COUNTERS)
