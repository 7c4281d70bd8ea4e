"""How long ago, in words for people. Pure: the time is passed in."""

_SECOND_MS = 1_000
_MINUTE_MS = 60 * _SECOND_MS
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS


def ago(then_ms: int, now_ms: int) -> str:
    """How long before `now_ms` that was: `just now`, `2 min 5 s ago`. A clock that went back makes
    it just now."""
    past_ms = now_ms - then_ms
    return "just now" if past_ms < _SECOND_MS else f"{duration(past_ms)} ago"


def duration(span_ms: int) -> str:
    """The two largest units of a span: `45 s`, `2 min 5 s`, `3 h`, `2 d 4 h`."""
    span_ms = max(span_ms, 0)
    units = [("d", _DAY_MS), ("h", _HOUR_MS), ("min", _MINUTE_MS), ("s", _SECOND_MS)]
    counts: list[tuple[str, int]] = []
    for unit, size_ms in units:
        counts.append((unit, span_ms // size_ms))
        span_ms %= size_ms
    first = next((place for place, (_, count) in enumerate(counts) if count), len(counts) - 1)
    shown = [f"{count} {unit}" for unit, count in counts[first : first + 2] if count]
    return " ".join(shown) or "0 s"


def wait_ms(seconds: float) -> int:
    """A wait that a platform or a server asks for, as a number that can be added and stored: not
    below zero, and never longer than thirty thousand years."""
    return round(min(max(seconds, 0.0), _WAIT_S_MAX) * 1000)


_WAIT_S_MAX = 1e12
