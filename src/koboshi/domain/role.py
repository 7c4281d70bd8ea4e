"""What a person may decide: roles, and where an approval is answered.

An owner runs the gateway: answers approvals, starts it again, decides what it hears in groups. A
member talks to the agent. The role of a turn is the least of all whose words it holds, so an owner
who joins a conversation of members lends it nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.ids import SessionId, shown


class Role(StrEnum):
    MEMBER = "member"
    OWNER = "owner"

    @property
    def is_owner(self) -> bool:
        return self is Role.OWNER


_ORDER = (Role.MEMBER, Role.OWNER)
"""From the least."""


def least_role(roles: Iterable[Role | None]) -> Role:
    """The role of a turn with words of people with these roles. A person who lost the right counts
    as a member. So does a turn in which no person spoke."""
    ranks = [_ORDER.index(role or Role.MEMBER) for role in roles]
    return _ORDER[min(ranks, default=0)]


def is_less(role: Role, than: Role) -> bool:
    return _ORDER.index(role) < _ORDER.index(than)


class NoRuling(StrEnum):
    """Why the words of a person do not decide about an approval."""

    NOT_OWNER = "not-an-owner"
    ELSEWHERE = "asked-elsewhere"  # it was not shown in this chat, but to the owners
    BARRED = "sender-not-allowed"  # a person whose words the turn holds may not use the gateway


def why_no_ruling(person: Role | None, turn: Role, *, is_shown_here: bool) -> NoRuling | None:
    """Whether a person decides about an approval of a turn; None if they do. An owner does, and
    only where the whole of it was shown."""
    if person is not Role.OWNER:
        return NoRuling.NOT_OWNER
    return None if turn.is_owner or is_shown_here else NoRuling.ELSEWHERE


PEOPLE_FOLDER = "people"


def work_folder(session_id: SessionId, role: Role | None) -> str:
    """The work folder of a chat below the configured one, as a relative path. `role` is that of the
    person whose private chat it is; None for a group. Owners share the configured folder itself.
    Any other chat has a folder that is named by its id: names that people give themselves may lead
    anywhere."""
    return "" if role is Role.OWNER else f"{PEOPLE_FOLDER}/{shown('session', session_id)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleStanding:
    """What a turn may do, as the roles of its people are at one moment."""

    role: Role = Role.OWNER
    """The least of all whose words it holds."""
    folder: str = ""
    """The work folder of its chat, below the configured one; empty for that one itself."""
    is_scheduled: bool = False
    """A schedule began it, and no person reads along."""
    is_quiet: bool = False
    """The model may say that there is nothing to report."""
    depth: int = 0
    """How deep a child works there; 0: it is a conversation, or a schedule's."""
