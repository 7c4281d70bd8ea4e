"""The tally of a campaign: what was done, what was seen, what was wrong."""

from collections import Counter
from dataclasses import dataclass, field

from koboshi.torture.check import Fault, Violation


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of one home, or of all together."""

    lives: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    """By place: `random`, or a step with its moment."""
    missed: int = 0
    """Steps that a life did not come by in time; it was killed at some other moment."""
    messages: int = 0
    """Acknowledged, commands of the chat included."""
    repeats: int = 0
    """Posts that had to be made again, since nobody answered."""
    answers: int = 0
    ends_told: int = 0
    """Turns that ended without an answer, and whose end was told."""
    commands: int = 0
    """Lines in the ledger: commands and jobs that have run."""
    jobs: int = 0
    """Background commands that were reported."""
    rests: int = 0
    violations: list[Violation] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        self.lives += other.lives
        self.kills += other.kills
        self.missed += other.missed
        self.messages += other.messages
        self.repeats += other.repeats
        self.answers += other.answers
        self.ends_told += other.ends_told
        self.commands += other.commands
        self.jobs += other.jobs
        self.rests += other.rests
        self.violations += other.violations

    def count(self, fault: Fault) -> int:
        return sum(violation.fault is fault for violation in self.violations)

    @property
    def others(self) -> int:
        """Violations beside the three that everybody asks for."""
        asked_for = (Fault.LOST, Fault.DOUBLED, Fault.RAN_TWICE)
        return sum(violation.fault not in asked_for for violation in self.violations)
