"""What a campaign tried and found; written down for those who want the figures."""

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

VARIABLE = "KOBOSHI_TALLY"
"""Names the file, if somebody wants one."""

WANTS_ALL = os.environ.get("KOBOSHI_TESTS") == "all"
"""Set by `make torture`; otherwise a fixed small portion is tried."""


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

    def write_down(self, environ: Mapping[str, str] = os.environ) -> None:
        """Add this campaign to the file, if one is wanted. Campaigns may run side by side."""
        name = environ.get(VARIABLE)
        if not name:
            return
        with Path(name).open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            sections = json.loads(file.read() or '{"campaigns": []}')
            fields = self.as_fields() | {"violations": len(self.violations)}
            sections["campaigns"] = [
                section for section in sections["campaigns"] if section["campaign"] != self.campaign
            ] + [fields]
            file.truncate(0)
            json.dump(sections, file, indent=1)
            file.write("\n")
