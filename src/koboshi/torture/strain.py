"""What a life has to bear beside its kill: few descriptors, and a clock that is wrong and jumps.
All of it follows from a seed. Pure."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

TOO_FEW_SHARE = 0.03
FEW_SHARE = 0.2
FILES_TOO_FEW = (8, 24, 40)
"""Limits below what a gateway wants before it begins."""
FILES_LEFT_MAX = 8
CLOCK_SHARE = 0.25
JUMP_SHARE = 0.25
AHEAD_MS_MAX = 5 * HOUR_MS
"""Either way. A clock that is ahead by a day when a gateway starts cannot be told from a downtime
of a day, and that closes open questions, as it should."""
BACK_MS_MAX = HOUR_MS
"""Set back while it runs, for the same reason: the next life has the right time again."""
FORWARD_MS_MAX = 72 * HOUR_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Strain:
    files_max: int | None = None
    """The limit on open files that the life is started with."""
    files_left: int | None = None
    """How many more files it can open once it serves."""
    ahead_ms: int = 0
    """By how much its clock on the wall is ahead when it starts."""
    jump_ms: int = 0
    """By how much that clock is set forward or back while it works."""

    @property
    def has_few_files(self) -> bool:
        return self.files_max is not None or self.files_left is not None


NONE = Strain()


def strains_of(seed: str, *, has_few_files: bool = True) -> Iterator[Strain]:
    """The strain of every life of a home, without an end. The clocks are the same with and without
    lives that have few files."""
    dice = random.Random(f"{seed}/strain")
    while True:
        strain = _strain_of(dice)
        yield strain if has_few_files else replace(strain, files_max=None, files_left=None)


def _strain_of(dice: random.Random) -> Strain:
    files, left = dice.random(), dice.randint(0, FILES_LEFT_MAX)
    too_few = dice.choice(FILES_TOO_FEW)
    is_ahead, ahead_ms = dice.random() < CLOCK_SHARE, _moved(dice, AHEAD_MS_MAX, AHEAD_MS_MAX)
    jumps, jump_ms = dice.random() < JUMP_SHARE, _moved(dice, BACK_MS_MAX, FORWARD_MS_MAX)
    if files < TOO_FEW_SHARE:
        return Strain(files_max=too_few)
    return Strain(
        files_left=left if files < TOO_FEW_SHARE + FEW_SHARE else None,
        ahead_ms=ahead_ms if is_ahead else 0,
        jump_ms=jump_ms if jumps else 0,
    )


def _moved(dice: random.Random, back_ms_max: int, forward_ms_max: int) -> int:
    """At least a minute, back or forward; short ones as often as long ones."""
    is_back, reach = dice.random() < 0.5, dice.random()
    most_ms = back_ms_max if is_back else forward_ms_max
    length_ms = round(MINUTE_MS * math.pow(most_ms / MINUTE_MS, reach))
    return -length_ms if is_back else length_ms
