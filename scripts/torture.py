"""Run every campaign in full, print how long it took, and write docs/proof.md from the tally.

`python -m scripts.torture [options of pytest]`; the tally is in build/tally.json, or where
KOBOSHI_TALLY says. The page is written only if nothing was violated, and not for a choice of tests
(`-k`)."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from scripts.proof_page import write_page

ROOT = Path(__file__).resolve().parents[1]
CAMPAIGNS = (
    "tests/crash",
    "tests/faults",
    "tests/hostile",
    "tests/sim",
    "tests/store/test_file.py",
)


def main(options: list[str]) -> int:
    place = Path(os.environ.get("KOBOSHI_TALLY") or ROOT / "build" / "tally.json").resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    environment = {**os.environ, "KOBOSHI_TESTS": "all", "KOBOSHI_TALLY": str(place)}
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", *CAMPAIGNS, *options]
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    seconds = round(time.monotonic() - began)
    tally = json.loads(place.read_text()) if place.exists() else {}
    tally["run"] = [
        {
            "seconds": seconds,
            "ended": "well" if code == 0 else f"with {code}",
            "python": platform.python_version(),
            "system": platform.system(),
            "cores": os.cpu_count(),
        }
    ]
    place.write_text(json.dumps(tally, indent=2) + "\n")
    print(f"the campaigns took {seconds} seconds; the tally is in {place}")
    if code == 0 and "-k" not in options:
        write_page(tally)
        print("docs/proof.md is written")
    else:
        print(
            f"docs/proof.md stays as it is; python -m scripts.proof_page {place} writes it anyway"
        )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
