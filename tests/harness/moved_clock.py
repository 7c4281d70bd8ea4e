"""`koboshi` as a real process whose clock a test can move while it runs: `python -m
tests.harness.moved_clock FILE run …`, where FILE holds by how many milliseconds the clock on the
wall is ahead."""

import sys
from dataclasses import dataclass
from pathlib import Path

from koboshi.cli.main import main
from koboshi.runtime.clock import SystemClock

ROOT = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Wall:
    """The clock on the wall of the gateways that are started with `command` and `environment`."""

    file: Path
    ahead_ms: int = 0

    def move(self, *, seconds: int) -> None:
        """It is later now, for every process that looks."""
        self.ahead_ms += seconds * 1_000
        new = self.file.with_suffix(".new")
        new.write_text(str(self.ahead_ms), encoding="ascii")
        new.rename(self.file)

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, "-m", "tests.harness.moved_clock", str(self.file))

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(ROOT)}


def follow(file: Path) -> None:
    """From here on the clock of this process is ahead by what the file says."""
    real_ms = SystemClock.now_ms

    def now_ms(clock: SystemClock) -> int:
        ahead = int(file.read_text(encoding="ascii")) if file.exists() else 0
        return real_ms(clock) + ahead

    SystemClock.now_ms = now_ms  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    follow(Path(sys.argv.pop(1)))
    main()
