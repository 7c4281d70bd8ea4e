"""Skills, as turns and the tool use them."""

from typing import Protocol

from koboshi.domain.skill import Skill


class Skills(Protocol):
    """What is read is on the disk of this machine; the calls block for a moment."""

    def all(self) -> tuple[Skill, ...]:
        """All skills, by name; empty if there is no folder of them."""
        ...

    def read(self, name: str, file: str) -> str | None:
        """A file of a skill; None if there is none of that name."""
        ...
