"""What a fuzzer feeds us: texts, JSON and bytes that no one meant to send."""

import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.harness.tally import WANTS_ALL


def fuzzed(examples: int) -> settings:
    """A fixed portion in `make test`; twenty times as much, by chance, in the long campaign."""
    return settings(
        max_examples=20 * examples if WANTS_ALL else examples,
        derandomize=not WANTS_ALL,
        database=None,
        deadline=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.filter_too_much,
            HealthCheck.function_scoped_fixture,
        ],
    )


NASTY = [
    "",
    " ",
    "\0",
    "\ud800",
    "\udfff x",
    "\u202e",
    "\u200b",
    "\x1b[2J",
    "\x1b]52;c;aGk=\x07",
    "\x9b31m",
    "a\r\nb",
    "%00",
    "%2e%2e%2f",
    "../../etc/passwd",
    "/dev/zero",
    "/proc/self/environ",
    "~root",
    "CON",
    "-rf",
    "1" * 5_000,
    "-1",
    "1e309",
    "9223372036854775808",
    "٣",
    "²",
    "NaN",
    "null",
    "é" * 300,
    "𝒳" * 300,
    "<script>alert(1)</script>",
    "'; DROP TABLE turns; --",
    "{" * 2_000,
]

TEXTS: st.SearchStrategy[str] = st.one_of(
    st.sampled_from(NASTY),
    st.text(max_size=40),
    st.text(st.characters(categories=("Cs", "Cc", "Cf", "Zl", "Nd")), max_size=8),
)
NUMBERS: st.SearchStrategy[Any] = st.one_of(
    st.integers(-5, 5),
    st.sampled_from([2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**40]),
    st.floats(),
)
SCALARS: st.SearchStrategy[Any] = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8) | TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of these fields. What is in them is as wrong as the fields' own values."""
    return st.fixed_dictionaries({}, optional=fields)


def as_bytes(value: object) -> bytes:
    """As JSON that says the same to every reader, or with halves of characters and numbers that
    only some can read."""
    return json.dumps(value, ensure_ascii=True).encode()
