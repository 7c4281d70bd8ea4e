"""Measures, what they should be, and how both are shown."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from benchmarks.place import BenchmarkFailed, say


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    kind: Literal["at least", "at most", "below"]
    bound: float

    def is_met(self, value: float) -> bool:
        match self.kind:
            case "at least":
                return value >= self.bound
            case "at most":
                return value <= self.bound
            case "below":
                return value < self.bound

    def __str__(self) -> str:
        sign = {"at least": "≥", "at most": "≤", "below": "<"}[self.kind]
        return f"{sign} {self.bound:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One line of the table. `values` holds one figure per round; their median is the value."""

    name: str
    unit: str
    values: tuple[float, ...]
    target: Target | None = None
    missing: str = ""
    """Why it could not be measured; then there are no values."""

    @property
    def value(self) -> float:
        return median(self.values)

    @property
    def verdict(self) -> str:
        if self.missing:
            return "not measured"
        if self.target is None:
            return ""
        return "ok" if self.target.is_met(self.value) else "MISSED"


def at_least(bound: float) -> Target:
    return Target(kind="at least", bound=bound)


def at_most(bound: float) -> Target:
    return Target(kind="at most", bound=bound)


def below(bound: float) -> Target:
    return Target(kind="below", bound=bound)


def carry_out(name: str, part: Callable[[], list[Measure]]) -> list[Measure]:
    """What the part measures. One that fails is a line of the table, and the others still run."""
    try:
        return part()
    except BenchmarkFailed as failed:
        say(f"{name}: {failed}")
        return [Measure(name=f"{name}: all of it", unit="", values=(), missing=str(failed))]


def table(measures: Sequence[Measure]) -> str:
    """The plain table: measure, value, target, verdict."""
    rows: list[tuple[str, ...]] = [("measure", "value", "target", "verdict")]
    for measure in measures:
        target = str(measure.target) if measure.target else ""
        rows.append((measure.name, _shown(measure), target, measure.verdict))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    rows.insert(1, tuple("-" * width for width in widths))
    lines = (
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip()
        for row in rows
    )
    reasons = (f"{each.name}: {each.missing}" for each in measures if each.missing)
    return "\n".join([*lines, *reasons])


def write_json(measures: Sequence[Measure], file: Path) -> None:
    document = [
        {
            "measure": measure.name,
            "unit": measure.unit,
            "value": None if measure.missing else measure.value,
            "rounds": list(measure.values),
            "target": str(measure.target) if measure.target else None,
            "verdict": measure.verdict or None,
            "missing": measure.missing or None,
        }
        for measure in measures
    ]
    file.write_text(json.dumps({"measures": document}, indent=2, ensure_ascii=False) + "\n")


def _shown(measure: Measure) -> str:
    if measure.missing:
        return "-"
    spread = ""
    if len(measure.values) > 1:
        spread = f"  [{_figure(min(measure.values))}..{_figure(max(measure.values))}]"
    return f"{_figure(measure.value)} {measure.unit}".rstrip() + spread


def _figure(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
