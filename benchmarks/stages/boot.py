"""What a start and an idle gateway cost, with the default configuration in a fresh home."""

from pathlib import Path

from benchmarks.gateway import boot
from benchmarks.place import say
from benchmarks.report import Measure, at_most
from benchmarks.yardstick import Yardstick


def measure_boot(folder: Path, starts: int) -> list[Measure]:
    say("boot: a first start, so that every module is compiled and cached")
    boot(folder / "home-0")
    boots = []
    with Yardstick() as yardstick:
        for number in range(1, starts + 1):
            say(f"boot: start {number} of {starts}")
            boots.append(boot(folder / f"home-{number}", measures_memory=True))
    return [
        Measure(
            name="CPU from exec to ready",
            unit="s",
            values=tuple(each.cpu_seconds for each in boots),
        ),
        yardstick.measure("boot"),
        Measure(
            name="CPU from exec to ready, scaled",
            unit="s",
            values=tuple(yardstick.scaled(each.cpu_seconds) for each in boots),
            target=at_most(0.3),
        ),
        Measure(
            name="time from exec to ready",
            unit="s",
            values=tuple(each.ready_seconds for each in boots),
        ),
        Measure(
            name="resident memory, idle",
            unit="MB",
            values=tuple(each.resident_mb for each in boots),
            target=at_most(62),
        ),
        Measure(
            name="memory of its own, idle",
            unit="MB",
            values=tuple(each.own_mb for each in boots),
            target=at_most(45),
        ),
    ]
