"""`koboshi` as a real process whose clock a test can move while it runs: `python -m
tests.harness.moved_clock FILE run …`, where FILE holds by how many milliseconds the wall clock is
ahead, and how many have passed for every clock."""

import sys
from dataclasses import dataclass
from pathlib import Path

from koboshi.cli.main import main
from koboshi.clock import SystemClock

ROOT = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Wall:
    """The wall clock of the gateways that are started with `command` and `environment`."""

    file: Path
    ahead_ms: int = 0
    passed_ms: int = 0

    def move(self, *, seconds: int) -> None:
        """Set the wall clock, for every process that reads it."""
        self.ahead_ms += seconds * 1_000
        self._write()

    def let_pass(self, *, seconds: int) -> None:
        """Let so much time pass, for every process that looks."""
        self.passed_ms += seconds * 1_000
        self._write()

    def _write(self) -> None:
        new = self.file.with_suffix(".new")
        new.write_text(f"{self.ahead_ms} {self.passed_ms}", encoding="ascii")
        new.rename(self.file)

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, "-m", "tests.harness.moved_clock", str(self.file))

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(ROOT)}


def follow(file: Path) -> None:
    """From here on the clocks of this process are ahead by what the file says."""
    real_ms, real_monotonic = SystemClock.now_ms, SystemClock.monotonic

    def told() -> tuple[int, int]:
        ahead, passed = file.read_text(encoding="ascii").split() if file.exists() else ("0", "0")
        return int(ahead), int(passed)

    def now_ms(clock: SystemClock) -> int:
        return real_ms(clock) + sum(told())

    def monotonic(clock: SystemClock) -> float:
        return real_monotonic(clock) + told()[1] / 1_000

    SystemClock.now_ms = now_ms  # type: ignore[method-assign, assignment]
    SystemClock.monotonic = monotonic  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    follow(Path(sys.argv.pop(1)))
    main()
