"""What the program must know of a platform, beside the keys of its section."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from koboshi.config import Limits, PlatformConfig
from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Channel, Watermarks
from koboshi.ports.clock import Clock


class ProbeFailed(Exception):
    """What was tried does not work, in words for a person."""

    def __init__(self, words: str, *, status: int | None = None) -> None:
        super().__init__(words)
        self.status = status
        """The status that a provider answered with; None if it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSetup:
    """What every channel is built with, beside its own section."""

    home: Path
    keeps_store_in_home: bool
    """Whether the store is a file in the home, and so belongs to this machine."""
    limits: Limits
    commands: tuple[tuple[str, str], ...]
    """What people may write, and what it does."""
    clock: Clock
    on_back: Callable[[], None]
    """To be called when the platform can be had again."""
    watermarks: Callable[[ChannelName, str], Awaitable[Mapping[str, str]]]
    """How far each chat of a channel was read as an account, as the store has it."""

    is_allowed: Callable[[ChannelName, str], Awaitable[bool]]
    """Whether a person may use the gateway by a channel."""

    def watermarks_of(self, name: str) -> Watermarks:
        return partial(self.watermarks, ChannelName(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformFinding:
    """What `koboshi doctor --online` found out about an account."""

    severity: Literal["ok", "note", "warning", "error"]
    words: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitKey:
    """A key that `koboshi init` asks for, beside the token and the people."""

    name: str
    question: str
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InitQuestions:
    """What `koboshi init` asks for an account, and writes about it."""

    title: str
    """What is asked for, as in "a Matrix account"."""
    token_env: str
    comment: str
    """One line for the file: where such an account is made."""
    keys: tuple[InitKey, ...] = ()
    person_example: str
    """How the platform names a person."""


class PlatformProbe(Protocol):
    def __call__(self, config: PlatformConfig) -> Awaitable[str]:
        """Who we are there, in words, by one call. Raises ProbeFailed."""
        ...


class PlatformExamination(Protocol):
    def __call__(self, config: PlatformConfig) -> AsyncIterator[PlatformFinding]:
        """What is right and wrong with the account, by a few calls. Raises ProbeFailed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPlatform:
    build: Callable[[PlatformConfig, ChannelSetup], Channel]
    """Nothing is connected yet. Raises ChannelUnusable if it never can be."""
    probe: PlatformProbe
    examine: PlatformExamination
    init: InitQuestions | None = None
    """None: `koboshi init` does not offer it."""
