"""Whether the gateways of one database are configured alike.

A fingerprint has a short mark for each section of the configuration. Sections whose marks differ
are configured differently; what they say is not known to other nodes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

MARK_CHARS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """How a gateway is configured, as far as others know."""

    version: str
    fingerprint: str
    """Empty: unknown."""


def fingerprint_of(values: Iterable[tuple[str, str, str]]) -> str:
    """The fingerprint of sections, keys and values."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for section, key, value in values:
        sections.setdefault(section, []).append((key, value))
    return json.dumps({name: _mark(sections[name]) for name in sorted(sections)})


def sections_apart(one: Configured, other: Configured) -> tuple[str, ...]:
    """The sections that differ. Programs of two versions have different keys, so they are not
    compared."""
    if one.version != other.version or not one.fingerprint or not other.fingerprint:
        return ()
    mine: Mapping[str, str] = json.loads(one.fingerprint)
    theirs: Mapping[str, str] = json.loads(other.fingerprint)
    return tuple(name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name))


def first_alike(found: Sequence[Configured], one: Configured) -> Configured:
    """The oldest that `one` can be compared with."""
    return next((each for each in found if each.version == one.version and each.fingerprint), one)


def _mark(keys: list[tuple[str, str]]) -> str:
    return sha256(json.dumps(sorted(keys)).encode()).hexdigest()[:MARK_CHARS]
