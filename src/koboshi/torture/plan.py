"""When and where the gateway dies: a sequence of kills that follows from a seed. Pure."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

MOMENTS = ("before", "after")

AT_START = (
    "workers.start",
    "workers.beat",
    "workers.report",
    "schedules.begin",
    "turns.expire",
    "outbox.hasten",
)
"""Verbs of the store that every start comes by: the last one when its channel is up."""
UNDER_WAY = (
    "inbox.accept",
    "outbox.claim",
    "outbox.settle",
    "processes.begin",
    "processes.born",
    "processes.ended",
    "turns.answer",
    "turns.append",
    "turns.ask",
    "turns.claim",
    "turns.fail",
    "turns.finish_call",
    "turns.note",
    "turns.postpone",
    "turns.recover",
    "turns.retry_model",
    "turns.start_call",
    "turns.tell_progress",
)
"""Verbs that the errands come by."""
AT_STOP = ("turns.release", "workers.begin_drain", "workers.end")
"""Verbs of a gateway that is asked to stop while it works."""

OFTEN = {"inbox.accept": 6, "outbox.claim": 8, "outbox.settle": 8, "turns.claim": 8}
"""How many times the busiest are come by in a short life, so that any of these can be the last."""

STEPS = (*AT_START, *UNDER_WAY, *AT_STOP)
STEPS_PER_RANDOM = 8
"""Of nine kills eight are at a step, so that sixty meet every one of them, before and after."""

BOOT_MS_MAX = 120
EVENTS_MAX = 20
"""A life that is killed at random has told people at most so many events: on a slow machine it gets
as far as on a fast one."""
THEN_MS_MAX = 60
COLD_EVERY = 10
"""Of so many lives one loads the program by itself, as an operator's does. The others are forked
from a process that has it loaded."""


class Aim(StrEnum):
    """Where kills are aimed."""

    BOTH = "both"
    RANDOM = "random"
    STEPS = "steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomKill:
    """So long after its start, when it may not even serve; or after it told so many events."""

    after_events: int | None
    after_ms: int

    def __str__(self) -> str:
        return "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKill:
    """When the verb is carried out for the `time`-th time; after `stop_after_ms` of service
    the trial asks it to stop."""

    verb: str
    moment: str
    time: int = 1
    stop_after_ms: int | None = None

    @property
    def point(self) -> str:
        """As the gateway wants to be told."""
        return f"{self.verb}:{self.moment}:{self.time}"

    def __str__(self) -> str:
        return f"{self.verb}:{self.moment}"


Kill: TypeAlias = RandomKill | StepKill


def kills_of(seed: int, aim: Aim) -> Iterator[Kill]:
    """Every kill from the first on, without an end. Homes side by side take them in turn."""
    dice = random.Random(f"{seed}/kills")
    steps = _steps_of(dice)
    while True:
        if aim is not Aim.RANDOM:
            for _ in range(STEPS_PER_RANDOM):
                yield next(steps)
        if aim is not Aim.STEPS:
            yield _random_of(dice)


def _random_of(dice: random.Random) -> RandomKill:
    if dice.random() < 0.2:
        return RandomKill(after_events=None, after_ms=dice.randint(0, BOOT_MS_MAX))
    after_events, after_ms = dice.randint(0, EVENTS_MAX), dice.randint(0, THEN_MS_MAX)
    return RandomKill(after_events=after_events, after_ms=after_ms)


def _steps_of(dice: random.Random) -> Iterator[StepKill]:
    """All of them in some order, then all of them in another."""
    places = [(verb, moment) for verb in STEPS for moment in MOMENTS]
    while True:
        dice.shuffle(places)
        for verb, moment in places:
            time = dice.randint(1, OFTEN.get(verb, 1))
            stop_after_ms = dice.randint(100, 400) if verb in AT_STOP else None
            yield StepKill(verb=verb, moment=moment, time=time, stop_after_ms=stop_after_ms)
