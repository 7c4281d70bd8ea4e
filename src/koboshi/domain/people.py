"""Who may use the gateway: codes by which a stranger becomes a known person.

A person is the platform's stable id, never a name: names are shown and never compared.
"""

import hashlib
from dataclasses import dataclass

from koboshi.domain.ids import ChannelName, EntryId
from koboshi.domain.phrases import excerpt
from koboshi.domain.role import Role
from koboshi.domain.text import plain

NOT_ALLOWED = "not-allowed"
"""The reason of an entry whose sender may not use the gateway."""

ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""What codes are made of: nothing that can be read as something else (0 and O, 1 and I)."""
CODE_CHARS = 8

PERSON_CHARS_MAX = 256
NAME_CHARS_MAX = 64
STRANGER_CHARS_MAX = 200
"""How much of a stranger's words is kept, so that the operator can see what was ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingLimits:
    code_ms: int = 3_600_000
    """How long a code is good, and its person gets no other."""
    codes_max: int = 5
    """Codes of one channel that are good at the same time: strangers beyond get no answer."""
    wrong_max: int = 10
    """So many wrong guesses make every code worthless that was good meanwhile."""
    silence_ms: int = 86_400_000
    """How long a person who was denied gets no code."""
    ignored_max: int = 1_000
    """Messages of strangers that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A stranger who was given a code, or who is to get none for a while."""

    channel: ChannelName
    person: str
    name: str
    chat: str
    offered_ms: int
    expires_ms: int
    is_silenced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person who was let in by a code."""

    channel: ChannelName
    person: str
    name: str
    paired_ms: int
    entry_id: EntryId
    """The message that was answered with the code."""
    role: Role = Role.MEMBER


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleGiven:
    """What became of a wish to give a person another role."""

    was_paired: bool
    is_named: bool
    """The configuration names them: they are an owner, whatever the store says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked:
    """What taking a right away has done."""

    was_paired: bool
    is_still_allowed: bool
    """The configuration allows them, whatever the store says."""
    turns_set_aside: int


def normal_code(text: str) -> str:
    """A code as it was made, from the way a person has typed it."""
    return "".join(char for char in text.upper() if char not in " -\t")


def name_kept(name: str) -> str:
    """What is kept of what a person calls themselves: one short line, and never nothing."""
    return excerpt(plain(name), NAME_CHARS_MAX) or "unnamed"


def code_hash(channel: str, person: str, code: str) -> str:
    """What is stored of a code: bound to whom it was given."""
    return hashlib.sha256("\0".join((channel, person, code)).encode()).hexdigest()
