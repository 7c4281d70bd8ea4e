"""Several throw-away homes side by side, and what came of all of them."""

import os
import random
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from anyio import create_task_group, current_time, move_on_after, sleep

from koboshi.torture.bot_api import serving
from koboshi.torture.faults import Fault
from koboshi.torture.lives import lives_of
from koboshi.torture.person import TorturePerson
from koboshi.torture.plan import Aim, kills_of
from koboshi.torture.platform import Platform
from koboshi.torture.remains import has_runners
from koboshi.torture.results import TrialTally
from koboshi.torture.strain import strains_of
from koboshi.torture.trial import Trial
from koboshi.torture.visitors import REGULARS, Visitor

HOMES_MAX = 2
PEOPLE = 7
"""In each home. A turn that died waits for two seconds, and others are to work meanwhile."""
VISITORS = REGULARS + 1
"""On the platform of each home; one of them is not always allowed."""
REST_EVERY = 100
"""Lives of a home between two checks."""
RUNNERS_S_MAX = 10.0
LOOK_EVERY_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSettings:
    """What is to be done. Without `lives` it goes on until the time is up."""

    seed: int
    folder: Path
    """An empty one, for the homes."""
    fork_server: Sequence[str]
    """The command that starts what starts the gateways."""
    now_ms: Callable[[], int]
    """The clock on the wall."""
    lives: int | None = 60
    minutes: float | None = None
    aim: Aim = Aim.BOTH
    homes: int = 1
    rest_every: int = REST_EVERY
    has_few_files: bool = False
    """Whether some lives can open only few files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of it, so far or in the end."""

    settings: CampaignSettings
    seconds: float
    tally: TrialTally
    is_complete: bool

    @property
    def kills(self) -> int:
        return sum(self.tally.kills.values())

    @property
    def kills_per_minute(self) -> float:
        return 60 * self.kills / self.seconds if self.seconds else 0.0

    @property
    def is_clean(self) -> bool:
        return not self.tally.violations

    @property
    def repeat(self) -> str:
        """The command that does the same once more: the same kills and messages are planned."""
        settings = self.settings
        lives = "" if settings.lives is None else f" --lives {settings.lives}"
        minutes = "" if settings.minutes is None else f" --minutes {settings.minutes:g}"
        at = "" if settings.aim is Aim.BOTH else f" --at {settings.aim}"
        few = " --few-files" if settings.has_few_files else ""
        place = f"--homes {settings.homes} --seed {settings.seed}"
        return f"koboshi torture{lives}{minutes}{at}{few} {place}"

    def document(self) -> dict[str, object]:
        """For programs."""
        tally = self.tally
        return {
            "ok": self.is_clean,
            "complete": self.is_complete,
            "seed": self.settings.seed,
            "at": str(self.settings.aim),
            "homes": self.settings.homes,
            "lives": tally.lives,
            "cold_starts": tally.cold_starts,
            "kills": self.kills,
            "kills_by_place": dict(sorted(tally.kills.items())),
            "steps_missed": tally.missed,
            "messages": tally.messages,
            "posts_repeated": tally.repeats,
            "answers": tally.answers,
            "ends_told": tally.ends_told,
            "commands": tally.commands,
            "commands_inside": dict(tally.boundaries),
            "jobs_reported": tally.jobs,
            "platform_messages": tally.visits,
            "platform_answers": tally.visits_answered,
            "platform_copies_labelled": tally.copies,
            "platform_mishaps": dict(sorted(tally.mishaps.items())),
            "rights_taken": tally.rights_taken,
            "runners_killed": tally.runners_killed,
            "lives_with_few_files": tally.few_files,
            "lives_that_ran_short": tally.ran_short,
            "lives_that_gave_out": tally.gave_out,
            "wrong_clocks": tally.wrong_clocks,
            "clock_jumps": tally.clock_jumps,
            "model_outages": tally.outages,
            "checks": tally.rests,
            "lost": tally.count(Fault.LOST),
            "doubled": tally.count(Fault.DOUBLED),
            "ran_twice": tally.count(Fault.RAN_TWICE),
            "violations": [
                {"fault": str(each.fault), "words": each.words} for each in tally.violations
            ],
            "seconds": round(self.seconds, 1),
            "kills_per_minute": round(self.kills_per_minute),
            "repeat": self.repeat,
        }


class Campaign:
    """One torture, from its start to its report."""

    def __init__(self, settings: CampaignSettings) -> None:
        self.settings = settings
        self.trials: list[Trial] = []
        self._began = 0.0
        self._seconds: float | None = None
        self._is_complete = False

    @property
    def homes(self) -> list[Path]:
        return [trial.lives.home for trial in self.trials]

    def report(self) -> Report:
        """What came of it so far."""
        tally = TrialTally()
        for trial in self.trials:
            trial.count()
            tally.add(trial.tally)
        seconds = self._seconds if self._seconds is not None else current_time() - self._began
        return Report(
            settings=self.settings,
            seconds=seconds,
            tally=tally,
            is_complete=self._is_complete,
        )

    async def run(self) -> None:
        """Do it all. Whatever ends it, no process is left behind."""
        self._began = current_time()
        minutes = self.settings.minutes
        until = self._began + (float("inf") if minutes is None else 60 * minutes)
        try:
            async with create_task_group() as homes:
                for number, lives in enumerate(_shares(self.settings), start=1):
                    homes.start_soon(self._run_home, number, lives, until)
            self._is_complete = True
        finally:
            self._seconds = current_time() - self._began

    def _has_violations(self) -> bool:
        return any(trial.tally.violations for trial in self.trials)

    async def _run_home(self, number: int, lives_left: float, until: float) -> None:
        folder = self.settings.folder / str(number)
        home, workdir = folder / "home", folder / "workdir"
        home.mkdir(mode=0o700, parents=True)
        workdir.mkdir()
        seed = f"{self.settings.seed}/{number}"
        killed: Collection[int] = ()
        try:
            platform = Platform(dice=random.Random(f"{seed}/platform"))
            async with (
                serving(platform) as address,
                lives_of(home, workdir, self.settings.fork_server, address) as lives,
            ):
                every_kill = kills_of(self.settings.seed, self.settings.aim)
                kills = islice(every_kill, number - 1, None, self.settings.homes)
                trial = Trial(
                    lives=lives,
                    workdir=workdir,
                    kills=kills,
                    strains=strains_of(seed, has_few_files=self.settings.has_few_files),
                    platform=platform,
                    now_ms=self.settings.now_ms,
                )
                trial.people = [_person(trial, seed, place) for place in range(1, PEOPLE + 1)]
                trial.visitors = [_visitor(trial, seed, place) for place in range(VISITORS)]
                self.trials.append(trial)
                killed = trial.runners_killed
                while lives_left > 0 and current_time() < until and not self._has_violations():
                    lives_now = int(min(lives_left, self.settings.rest_every))
                    await trial.round(lives_now, until)
                    lives_left -= lives_now
        finally:
            # Commands outlive their gateways, and are short.
            with move_on_after(RUNNERS_S_MAX, shield=True):
                await _runners_end(home, killed)


async def _runners_end(home: Path, killed: Collection[int]) -> None:
    """Wait for commands that still run. Only they write down their end."""
    while True:
        if not has_runners(home, killed):
            return
        await sleep(LOOK_EVERY_S)


def homes_here() -> int:
    """How many gateways this machine keeps busy side by side."""
    return min(HOMES_MAX, os.cpu_count() or 1)


def clear(folder: Path) -> None:
    """Remove the homes of a campaign, and their folder."""
    shutil.rmtree(folder, ignore_errors=True)


def _person(trial: Trial, seed: str, place: int) -> TorturePerson:
    chat = f"p{place}"
    return TorturePerson(chat=chat, place=trial, dice=random.Random(f"{seed}/{chat}"))


def _visitor(trial: Trial, seed: str, place: int) -> Visitor:
    return Visitor(
        number=place + 1,
        platform=trial.platform,
        place=trial,
        dice=random.Random(f"{seed}/visitor {place}"),
        is_regular=place < REGULARS,
    )


def _shares(settings: CampaignSettings) -> list[float]:
    """How many lives each home has."""
    if settings.lives is None:
        return [float("inf")] * settings.homes
    homes = min(settings.homes, settings.lives)
    each, rest = divmod(settings.lives, homes)
    return [each + (number < rest) for number in range(homes)]
