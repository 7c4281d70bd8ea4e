"""What a campaign tried and found; written down for those who want the figures."""

import json
from dataclasses import dataclass, field

from tests.harness.tally import add_to_tally


@dataclass(slots=True, kw_only=True)
class Tally:
    """One campaign. A violation begins with its case, and ends with the command that shows it
    again."""

    campaign: str
    cases: int = 0
    not_reached: int = 0
    """Cases whose fault did not come to pass, because a run was shorter than the one counted."""
    seed: int | None = None
    is_control: bool = False
    """Whether the subject was doctored, and violations are what is wanted."""
    violations: list[str] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str) -> None:
        self.cases += 1
        self.kinds[kind] = self.kinds.get(kind, 0) + 1

    @classmethod
    def parse(cls, said: str) -> "Tally":
        return cls(**json.loads(said))

    def as_fields(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}

    def write_down(self) -> None:
        """Add this campaign to the file, if one is wanted."""
        name = "faults, doctored on purpose" if self.is_control else "faults"
        add_to_tally(name, self.as_fields() | {"violations": len(self.violations)})
