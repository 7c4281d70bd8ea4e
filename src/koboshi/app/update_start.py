"""What a start can have to do with an update. Nothing is loaded for it that a start waits for."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OnTrial:
    confirm: Callable[[], None]
    """Have this version serve for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingBack:
    finish: Callable[[], None]
    """The trial of the other version is over."""
    version: str
    """That version."""
