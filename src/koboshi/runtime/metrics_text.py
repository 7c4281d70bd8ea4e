"""The text form of metrics that Prometheus reads. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from koboshi.domain.timing import BOUNDS_S, Timing
from koboshi.runtime.meter import Labels, labelled
from koboshi.runtime.metric_table import METRICS


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric with all its samples. The labels of a sample are sorted by name."""

    name: str
    samples: Mapping[Labels, float]

    def lines(self) -> Iterator[str]:
        for labels, value in sorted(self.samples.items()):
            yield _sample(self.name, labels, value)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How long things took, by their labels."""

    name: str
    times: Mapping[Labels, Timing]

    def lines(self) -> Iterator[str]:
        bounds = (*(f"{bound:g}" for bound in BOUNDS_S), "+Inf")
        for labels, timing in sorted(self.times.items(), key=lambda each: each[0]):
            sums = list(accumulate(timing.counts))
            for bound, count in zip(bounds, sums, strict=True):
                yield _sample(f"{self.name}_bucket", (*labels, ("le", bound)), count)
            yield _sample(f"{self.name}_sum", labels, timing.seconds)
            yield _sample(f"{self.name}_count", labels, sums[-1])


def one(name: str, value: float, **labels: str) -> Metric:
    """A metric of one sample."""
    return Metric(name, {labelled(**labels): value})


def render(metrics: Iterable[Metric | Histogram]) -> str:
    """One page. A metric without samples is still named: it is known, and never happened."""
    lines: list[str] = []
    for metric in metrics:
        told = METRICS[metric.name]
        lines.append(f"# HELP {metric.name} {_escaped(told.words)}")
        lines.append(f"# TYPE {metric.name} {told.kind}")
        lines.extend(metric.lines())
    return "\n".join((*lines, ""))


def _sample(name: str, labels: Labels, value: float) -> str:
    inner = ",".join(f'{label}="{_quoted(text)}"' for label, text in labels)
    return f"{name}{{{inner}}} {_number(value)}" if inner else f"{name} {_number(value)}"


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
