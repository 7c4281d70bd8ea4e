"""Patterns that an agent looks for in output, matched in linear time.

Python's own engine can be made to stand still by a pattern of ten characters, and the gateway with
it. This one cannot, and so knows neither look-around nor back-references.
"""

import re
from collections.abc import Sequence

from koboshi.domain.watch import Matches

MEMORY_BYTES_MAX = 1 << 20


def matcher(patterns: Sequence[str]) -> Matches:
    """Whether a line has one of the patterns in it; one that is no regular expression is taken
    literally."""
    import re2

    expressions = [_compiled(pattern) or re2.escape(pattern) for pattern in patterns]
    found = [re2.compile(each, _options()) for each in expressions]
    return lambda line: any(expression.search(line) is not None for expression in found)


def complaint_about_pattern(pattern: str) -> str | None:
    """Why a pattern cannot be looked for; None if it can."""
    if "\n" in pattern or not pattern:
        return "a pattern is one line, and not empty"
    if _compiled(pattern) is not None:
        return None
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None  # taken literally
    return f"`{pattern}` needs look-around, a back-reference or too much memory: make it simpler"


def _compiled(pattern: str) -> str | None:
    """The pattern, if it is one that can be used."""
    import re2

    try:
        re2.compile(pattern, _options())
    except re2.error:
        return None
    return pattern


def _options() -> object:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES_MAX
    return options
