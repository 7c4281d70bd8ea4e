"""Counts and times taken where things happen, because no stored row tells them later.

A note costs about a microsecond: a look into a dict, and an addition. Facts in the journal are
counted from there instead (`runtime/metrics.py`).
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias

from koboshi.domain.timing import Timing

Labels: TypeAlias = tuple[tuple[str, str], ...]

COUNTED = (
    "koboshi_inbox_duplicates_total",
    "koboshi_adapter_reconnects_total",
    "koboshi_outbox_ambiguous_total",
    "koboshi_rate_limited_seconds_total",
    "koboshi_llm_tokens_total",
    "koboshi_model_benches_total",
    "koboshi_budget_refusals_total",
    "koboshi_auth_failures_total",
    "koboshi_burials_total",
    "koboshi_memory_files_read_total",
)
TIMED = (
    "koboshi_accept_duration_seconds",
    "koboshi_send_duration_seconds",
    "koboshi_llm_request_duration_seconds",
)


@dataclass(slots=True)
class Meter:
    """Counters and times of this boot, by name and labels."""

    counts: dict[str, dict[Labels, float]] = field(
        default_factory=lambda: {name: defaultdict(float) for name in COUNTED}
    )
    times: dict[str, dict[Labels, Timing]] = field(
        default_factory=lambda: {name: {} for name in TIMED}
    )

    def count(self, name: str, labels: Labels, by: float = 1) -> None:
        self.counts[name][labels] += by

    def time(self, name: str, labels: Labels, seconds: float) -> None:
        times = self.times[name]
        found = times.get(labels)
        if found is None:
            found = times[labels] = Timing()
        found.note(seconds)


def labelled(**labels: str) -> Labels:
    """Labels in the order in which they are shown."""
    return tuple(sorted(labels.items()))
