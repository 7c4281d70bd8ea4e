"""One campaign, or some cases of it: `python -m tests.faults CAMPAIGN …`; prints its tally.

    kills [--every N [--first M]] [--only before:17,torn:40] [--tells-first]
    shorts [--every N] [--only short:17] [--lies]
    token [--forgets]
    cuts [--images N] [--seed N] [--only CUT:IMAGE] [--synchronous NORMAL] [--checkpoints PAGES]

A process of its own, because the tracer forks: it must have one thread only.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from tests.faults.cuts import power_cuts
from tests.faults.kills import short_run_killed, short_writes
from tests.faults.short_run import Doctored
from tests.faults.tally import Tally
from tests.faults.token_cut import token_cut
from tests.harness.tracer import Fault, How


def main() -> int:
    options = _options()
    # Where nothing is slow to flush: the disk is simulated, or does not matter.
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="koboshi-faults-", dir=place) as name:
        tally = _campaign(options, Path(name))
    print(json.dumps(tally.as_fields()))
    return int(bool(tally.violations))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("campaign", choices=["kills", "shorts", "token", "cuts"])
    parser.add_argument("--name", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    for doctored in ("--tells-first", "--lies", "--forgets"):
        parser.add_argument(doctored, action="store_true")
    parser.add_argument("--images", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--synchronous", default="")
    parser.add_argument("--checkpoints", type=int, default=0)
    return parser.parse_args()


def _campaign(options: argparse.Namespace, folder: Path) -> Tally:
    doctored = Doctored(
        synchronous=options.synchronous,
        checkpoint_pages=options.checkpoints,
        tells_first=options.tells_first,
    )
    only = [each for each in options.only.split(",") if each]
    portion = {"every": options.every, "first": options.first}
    match options.campaign:
        case "kills":
            faults = [_fault(each) for each in only]
            tally = short_run_killed(folder, **portion, only=faults, doctored=doctored)
        case "shorts":
            how = How.LIED if options.lies else How.SHORT
            tally = short_writes(folder, **portion, only=[_fault(each) for each in only], how=how)
        case "token":
            tally = token_cut(folder, forgets=options.forgets)
        case _:
            dice = {"seed": options.seed, "images": options.images}
            tally = power_cuts(folder, **portion, **dice, only=only, doctored=doctored)
    tally.campaign = options.name or tally.campaign
    return tally


def _fault(words: str) -> Fault:
    how, _, number = words.partition(":")
    return Fault(how=How(how), number=int(number))


if __name__ == "__main__":
    sys.exit(main())
