"""A long time in one life: people write all day on virtual time, and what the gateway holds in
memory is looked at every hour. `python -m scripts.soak --only virtual` prints it."""

import asyncio
import gc
import os
import pickle
import random
import re
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from koboshi.domain.recovery import RecoveryPolicy
from tests.sim.checks import check_run
from tests.sim.crowd import Update, what_people_do
from tests.sim.effects import Asked
from tests.sim.life import End, live
from tests.sim.plots import Plot
from tests.sim.power import History
from tests.sim.run import a_folder, a_setting, logging_to
from tests.sim.store import Promises

HOUR_S = 3_600.0
EVERY_S = 300.0
"""People come by in groups: some messages in a minute, and then a pause."""
OURS = tracemalloc.Filter(True, "*/koboshi/*")
"""What was allocated by a line of the program itself. All else is of the simulation."""
_NUMBER = re.compile(r"^m(\d+) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """What was there at one moment of the day."""

    at_s: float
    kilobytes: float
    """Held by objects that the program has made."""
    tasks: int
    files: int


@dataclass(slots=True, kw_only=True)
class LookedAt(History):
    """A history that takes a look every hour. Its lines are not kept: they are no part of the
    gateway."""

    hours: list[Hour] = field(default_factory=list)

    def tell(self, what: str) -> None:
        self.lines.clear()
        History.tell(self, what)
        if self.now() >= (len(self.hours) + 1) * HOUR_S:
            self.hours.append(self._look())

    def _look(self) -> Hour:
        gc.collect()
        found = tracemalloc.take_snapshot().filter_traces([OURS])
        held = sum(each.size for each in found.statistics("filename"))
        tasks = len(asyncio.all_tasks())
        files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        return Hour(at_s=self.now(), kilobytes=held / 1_000, tasks=tasks, files=files)


class Packed(list[Asked]):
    """What the model was shown, as bytes: the simulation keeps no object of the gateway's."""

    def __init__(self) -> None:
        super().__init__()
        self._packed: list[bytes] = []

    def append(self, asked: Asked) -> None:
        self._packed.append(pickle.dumps(asked))

    def __iter__(self) -> Iterator[Asked]:
        return (pickle.loads(each) for each in self._packed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    hours: list[Hour]
    messages: int
    violations: list[str]


def a_day(seed: int, hours: float) -> Day:
    """One life of so many virtual hours, and what came of it."""
    dice = random.Random(seed)
    tracemalloc.start()
    history = LookedAt()
    try:
        with a_folder() as home, logging_to(history):
            setting = a_setting(home, dice, history, Promises(), Plot.COMMON)
            setting.policy = replace(setting.policy, recovery=RecoveryPolicy.AUTO)
            setting.weather.is_calm = True
            setting.effects.asked = Packed()
            setting.platform.updates = updates_of(dice, hours)
            live(setting, End(after_s=(hours + 1) * HOUR_S, is_kind=True))
            found = check_run(setting, setting.rows())
    finally:
        tracemalloc.stop()
    wrong = [each.words for each in found if not each.is_awaited]
    written = sum(update.is_message for update in setting.platform.updates)
    return Day(hours=history.hours, messages=written, violations=wrong)


def updates_of(dice: random.Random, hours: float) -> list[Update]:
    """What people do all day: every few minutes as much as they do in one seed."""
    found: list[Update] = []
    for visit in range(int(hours * HOUR_S / EVERY_S)):
        begun, first = visit * EVERY_S, len(found)
        for place, each in enumerate(what_people_do(dice, Plot.COMMON)):
            text = _NUMBER.sub(f"m{first + place} ", each.text)
            at_s, key = begun + each.at_s, f"u{first + place}"
            # A transcript of a whole day would be most of what there is.
            chat = f"{each.chat} of visit {visit}"
            found.append(replace(each, at_s=at_s, key=key, text=text, chat=chat))
    return found
