"""The text form of metrics that Prometheus reads. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric with all its samples. The labels of a sample are sorted by name."""

    name: str
    kind: str
    """counter or gauge."""
    words: str
    samples: Mapping[tuple[tuple[str, str], ...], float]


def gauge(name: str, words: str, value: float, **labels: str) -> Metric:
    """A metric of one sample."""
    return Metric(name=name, kind="gauge", words=words, samples={labelled(**labels): value})


def labelled(**labels: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def render(metrics: Iterable[Metric]) -> str:
    """One page. A metric without samples is named nevertheless: it is known, and never happened."""
    lines: list[str] = []
    for metric in metrics:
        lines.append(f"# HELP {metric.name} {_escaped(metric.words)}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        for labels, value in sorted(metric.samples.items()):
            inner = ",".join(f'{name}="{_quoted(text)}"' for name, text in labels)
            named = f"{metric.name}{{{inner}}}" if inner else metric.name
            lines.append(f"{named} {_number(value)}")
    return "\n".join((*lines, ""))


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
