"""What is answered to requests about people: who asks to be let in, roles, and erasing."""

from koboshi.control.replies import Done
from koboshi.domain.people import Pairing, Person


class PairingList(Done, frozen=True, kw_only=True):
    strangers: tuple[Pairing, ...]
    people: tuple[Person, ...]
    without_owner: tuple[str, ...] = ()
    """Channels on which no person is an owner."""


class PersonLetIn(Done, frozen=True, kw_only=True):
    channel: str
    person: str
    name: str
    paired_ms: int
    entry_id: int
    role: str = "member"


class PersonErased(Done, frozen=True, kw_only=True):
    channel: str
    person: str
    messages: int
    is_finished: bool
    """Otherwise something was in the way; the gateway goes on with it."""
    backups: tuple[str, ...] = ()
    """They still hold the words."""


class RoleSet(Done, frozen=True, kw_only=True):
    channel: str
    person: str
    role: str
    was_paired: bool
    is_named: bool


class PersonDenied(Done, frozen=True, kw_only=True):
    channel: str
    person: str
    name: str
    chat: str
    offered_ms: int
    expires_ms: int
    is_silenced: bool


class PersonRevoked(Done, frozen=True, kw_only=True):
    channel: str
    person: str
    was_paired: bool
    is_still_allowed: bool
    turns_set_aside: int
