"""Spans of time as systemd writes them: `1min 30s`."""

import re

_UNITS = {
    "us": 0.000_001,
    "ms": 0.001,
    "s": 1.0,
    "min": 60.0,
    "h": 3_600.0,
    "d": 86_400.0,
    "w": 604_800.0,
    "month": 2_629_800.0,
    "y": 31_557_600.0,
}
_SPAN = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:us|ms|s|min|h|d|w|month|y)\s*)+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([a-z]+)")
INFINITE = float("inf")


def parse_span(text: str) -> float | None:
    """The seconds; infinite for `infinity`, None for what is no span."""
    if text == "infinity":
        return INFINITE
    if text == "0":
        return 0.0
    if len(text) > 100 or not _SPAN.fullmatch(text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
