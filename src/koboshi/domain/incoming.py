"""A home of another gateway that moves in: people, schedules, memory and files. Pure."""

from dataclasses import dataclass

from koboshi.domain.ids import ChannelName
from koboshi.domain.memory import Scope, Shelf
from koboshi.domain.role import Role
from koboshi.domain.schedule import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """A person who could talk to the other gateway."""

    channel: ChannelName
    person: str
    name: str = ""
    role: Role = Role.MEMBER


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingSchedule:
    """A standing order of the other gateway. It comes in paused."""

    key: str
    """Its id there: moved in twice, it is one."""
    channel: ChannelName
    chat: str
    person: str
    order: Order
    thread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMemory:
    """What the other gateway remembered. It becomes the memory of the owner."""

    texts: tuple[tuple[Shelf, str], ...] = ()
    scopes: tuple[Scope, ...] = ()
    """Where the owner talks: each of these gets all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A file or folder that waits in the staged folder, and where in the home it belongs."""

    staged: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    digest: str
    """Of all that moves in; the name of the staged folder."""
    source: str
    people: tuple[Newcomer, ...] = ()
    schedules: tuple[IncomingSchedule, ...] = ()
    files: tuple[StagedFile, ...] = ()
    memory: IncomingMemory = IncomingMemory()


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedIn:
    """What became of it."""

    is_new: bool
    is_owned_now: bool = False
    """It was there before, without the owner who is named now."""
    people: int = 0
    schedules: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Their names, each with its next times."""
    refused: tuple[tuple[str, str], ...] = ()
    """Names of schedules that cannot be, and why."""
    remembered: tuple[tuple[str, int], ...] = ()
    """Whose memory took how many entries over."""
    not_remembered: tuple[tuple[str, str], ...] = ()
    """Entries that a memory did not take over, and why."""
