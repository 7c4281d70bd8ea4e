"""The fake of Slack is good enough for Slack's own client, which we did not write."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "tests" / "fakes" / "slack" / "sdk_check.py"
CHECK_S_MAX = 100
# What a client leaves behind in its threads is not what is checked here.
ALONE = "-q -n 0 -p no:unraisableexception -p no:threadexception -p no:cacheprovider".split()


def test_the_clients_of_slack_understand_everything_the_fake_says() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "pytest", *ALONE, CHECK],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=CHECK_S_MAX,
        check=False,
    )
    wanted = len(re.findall(r"^(?:async )?def test_", CHECK.read_text(), re.MULTILINE))
    assert f"{wanted} passed" in told.stdout, told.stdout[-3000:] + told.stderr[-1000:]
    assert told.returncode == 0
