"""Everything that was done to the world, and everything that the model was shown."""

from collections import Counter
from dataclasses import dataclass, field

from koboshi.domain.ids import ProcessId, TurnId
from koboshi.domain.transcript import Step
from koboshi.ports.runners import EndedBy

LINES = 3
"""That a command prints after its first one."""


@dataclass(slots=True)
class Program:
    """A command that runs under its runner, watched or not."""

    command: str
    born_s: float
    ends_s: float
    code: int
    prints_s: tuple[float, ...]
    """When it prints its lines."""
    by: EndedBy = EndedBy.ITSELF
    is_lost: bool = False
    """It was killed together with its runner."""

    def printed(self, now_s: float) -> bytes:
        """All that it has printed by now."""
        until_s = min(now_s, self.ends_s)
        lines = [
            f"line {number} of {self.command}\n"
            for number, at_s in enumerate(self.prints_s)
            if at_s <= until_s
        ]
        return "".join(lines).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request to the model: what it was shown, and when."""

    at_s: float
    wall_ms: int
    turn_id: TurnId
    steps: tuple[Step, ...]

    @property
    def own(self) -> tuple[Step, ...]:
        """The steps of the turn that asks."""
        return tuple(step for step in self.steps if step.turn_id == self.turn_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One time that a tool did something."""

    at_s: float
    tool: str
    key: str


@dataclass(slots=True)
class Effects:
    """Everything that was done to the world."""

    asked: list[Asked] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    killed: Counter[str] = field(default_factory=Counter)
    """How often each message killed the gateway that worked on it."""
    starved: set[str] = field(default_factory=set)
    """Messages for which something was done before the descriptors ran out."""
    ran: Counter[str] = field(default_factory=Counter)
    """How often each call was begun, by its key."""
    started: Counter[str] = field(default_factory=Counter)
    """How often each command was started."""
    programs: dict[ProcessId, Program] = field(default_factory=dict)
    voided: set[ProcessId] = field(default_factory=set)

    def run(self, tool: str, key: str, at_s: float) -> None:
        self.ran[f"{tool} {key}"] += 1
        self.done.append(Done(at_s=at_s, tool=tool, key=key))
