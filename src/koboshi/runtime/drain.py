"""Whether and how this gateway shuts down. `Gateway.run` is the phases in their order. After a kill
in any phase, the next boot reaches the same end from the facts alone."""

from dataclasses import dataclass, field

from anyio import Event

from koboshi.domain.shutdown import Leave
from koboshi.ports.wakeups import ACCOUNTS, TURNS, Wakeups


@dataclass(slots=True, kw_only=True)
class Drain:
    wakeups: Wakeups
    seconds: float
    """How long running steps may take to finish."""
    asked: Event = field(default_factory=Event)
    how: Leave = Leave.STOP
    is_hurried: bool = False
    """A second request to stop: nothing is waited for."""
    released: int = 0
    """Turns that were given back unfinished."""

    @property
    def is_begun(self) -> bool:
        return self.asked.is_set()

    @property
    def ends_steps(self) -> bool:
        """Whether a turn that has finished its step is given back."""
        return self.is_begun and not self.has_time

    @property
    def has_time(self) -> bool:
        """Whether there is no limit to it."""
        return self.how is Leave.DRAIN and not self.is_hurried

    def ask(self, how: Leave) -> None:
        """Stop as requested. A requested restart stays a restart."""
        if self.how is not Leave.RESTART:
            self.how = how
        self.asked.set()
        self.wakeups.hint(TURNS)
        self.wakeups.hint(ACCOUNTS)

    def hurry(self) -> None:
        """Stop without waiting for anything."""
        self.is_hurried = True
        self.ask(Leave.STOP if self.how is Leave.DRAIN else self.how)
