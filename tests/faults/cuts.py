"""Campaign: the power is cut at every moment of a short run of the store.

The run is traced once, with all that it writes. For each prefix of the trace some of the things
that the disk may hold then are made (tests/harness/powercut.py), and each is looked at as the next
life would find it: whole, and holding everything that was told before the cut. Some of them live
on, to the end.

A cut is named by its place in the trace, an image by its number; both, with the seed, make the
same dice again. The trace itself is made anew each time, and SQLite's own random numbers are in
it, so a violation is also kept, if `KOBOSHI_KEEP` names a folder for it.

What is not tried here: a disk that says it has flushed and has not, and sectors that rot.
"""

import hashlib
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.faults.short_run import AS_IT_IS, Doctored, Violations, check, losses, run
from tests.faults.tally import Tally
from tests.harness.powercut import Disk, Image
from tests.harness.tracer import Change, trace

LIVES_ON_EVERY = 16
KEEP = "KOBOSHI_KEEP"


def power_cuts(
    folder: Path,
    *,
    seed: int,
    images: int,
    every: int = 1,
    first: int = 0,
    only: Sequence[str] = (),
    doctored: Doctored = AS_IT_IS,
) -> Tally:
    """Cut at every n-th moment, and look at so many images of each; or at those that are named."""
    tally = Tally(campaign="power-cuts", seed=seed, is_control=bool(doctored.synchronous))
    home, ledger = folder / "home", folder / "ledger"
    program = partial(run, home, ledger, doctored)
    traced = trace(program, home, ledger=ledger, keeps_contents=True)
    assert traced.exit_code == 0, "the run does not come to its end undisturbed"
    seen: set[bytes] = set()
    place = folder / "image" / "home"
    for name, kind, image, told in _images(traced.changes, home, ledger, seed, images):
        if only and name not in only:
            continue
        if not only and int(name.split(":")[0]) % every != first:
            continue
        digest = _digest(image, told)
        if digest in seen:
            continue
        seen.add(digest)
        tally.add(kind)
        found = _look_at(
            place, image, told, lives_on=bool(only) or digest[0] < 256 / LIVES_ON_EVERY
        )
        if found:
            tally.violations += [f"{name} ({kind}): {words}" for words in found]
            _keep(place, image, name)
    return tally


def _images(
    changes: Sequence[Change], home: Path, ledger: Path, seed: int, count: int
) -> Iterator[tuple[str, str, Image, str]]:
    """Each image with its name, what was cut, and what had been told by then."""
    disks = [Disk(home, has_journal=has_journal) for has_journal in (False, True)]
    told = ""
    for cut, change in enumerate(changes):
        if change.path == str(ledger):
            told += change.content.decode()
        else:
            for disk in disks:
                disk.make(change)
        for number in range(count):
            dice = random.Random(f"{seed}:{cut}:{number}")
            image = disks[(cut + number // 2) % 2].after_a_cut(number, dice)
            yield f"{cut}:{number}", f"{change.call} {Path(change.path).name}", image, told


def _digest(image: Image, told: str) -> bytes:
    digest = hashlib.sha1(told.encode(), usedforsecurity=False)
    for name, content in sorted(image.items()):
        digest.update(name.encode() + b"\0" + content)
    return digest.digest()


def _look_at(place: Path, image: Image, told: str, *, lives_on: bool) -> Violations:
    write_image(place, image)
    return check(place, told) if lives_on else losses(place, told)


def write_image(place: Path, image: Image) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name, content in image.items():
        (place / name).write_bytes(content)


def _keep(place: Path, image: Image, name: str) -> None:
    if os.environ.get(KEEP):
        write_image(place, image)
        kept = Path(os.environ[KEEP]) / name.replace(":", "-")
        shutil.copytree(place, kept, dirs_exist_ok=True)
