"""The tally of a campaign: what was done, what was seen, what was wrong."""

from collections import Counter
from dataclasses import dataclass, field

from koboshi.torture.faults import Fault, Violation


@dataclass(slots=True, kw_only=True)
class TrialTally:
    """Counts of one home, or of all together."""

    lives: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    """By place: `random`, or a step with its moment."""
    cold_starts: int = 0
    """Lives that loaded the program by themselves."""
    missed: int = 0
    """Steps that a life did not come by in time; it was killed at some other moment."""
    messages: int = 0
    """Acknowledged, commands of the chat included."""
    repeats: int = 0
    """Posts that had to be made again, because no answer came."""
    answers: int = 0
    ends_told: int = 0
    """Turns that ended without an answer, and whose end was told."""
    commands: int = 0
    """Lines in the ledger: commands and jobs that have run."""
    boundaries: Counter[str] = field(default_factory=Counter)
    """Commands by what kept them inside."""
    jobs: int = 0
    """Background commands that were reported."""
    visits: int = 0
    """Messages on the platform."""
    visits_answered: int = 0
    copies: int = 0
    """Messages of the bot that said they may be duplicates."""
    mishaps: Counter[str] = field(default_factory=Counter)
    """What went wrong with calls of the platform, by the call."""
    rights_taken: int = 0
    """Lives in which a person was not allowed who was so in others."""
    runners_killed: int = 0
    few_files: int = 0
    """Lives that could open only a few files."""
    ran_short: int = 0
    """Those of them that wanted one more, and said so."""
    gave_out: int = 0
    """Those of them that did not start, or ended by themselves, for lack of files. They were not
    killed."""
    wrong_clocks: int = 0
    """Lives whose clock was ahead or behind when they started."""
    clock_jumps: int = 0
    """Lives whose clock was set forward or back while they worked."""
    outages: int = 0
    """Requests for which the model was busy, and then answered."""
    rests: int = 0
    violations: list[Violation] = field(default_factory=list)

    def add(self, other: "TrialTally") -> None:
        self.lives += other.lives
        self.kills += other.kills
        self.cold_starts += other.cold_starts
        self.missed += other.missed
        self.messages += other.messages
        self.repeats += other.repeats
        self.answers += other.answers
        self.ends_told += other.ends_told
        self.commands += other.commands
        self.boundaries += other.boundaries
        self.jobs += other.jobs
        self.visits += other.visits
        self.visits_answered += other.visits_answered
        self.copies += other.copies
        self.mishaps += other.mishaps
        self.rights_taken += other.rights_taken
        self.runners_killed += other.runners_killed
        self.few_files += other.few_files
        self.ran_short += other.ran_short
        self.gave_out += other.gave_out
        self.wrong_clocks += other.wrong_clocks
        self.clock_jumps += other.clock_jumps
        self.outages += other.outages
        self.rests += other.rests
        self.violations += other.violations

    def count(self, fault: Fault) -> int:
        return sum(violation.fault is fault for violation in self.violations)

    @property
    def others(self) -> int:
        """Violations beside the three of the summary."""
        asked_for = (Fault.LOST, Fault.DOUBLED, Fault.RAN_TWICE)
        return sum(violation.fault not in asked_for for violation in self.violations)
