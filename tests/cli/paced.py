"""A gateway whose heart beats as often as a test needs: `python -m tests.cli.paced 1 run …`. How
often it does is a limit, and no key of the configuration."""

import sys
from dataclasses import fields

from koboshi.cli.main import main
from koboshi.config.limits import Limits

OFTEN = (sys.executable, "-m", "tests.cli.paced", "1")
SELDOM = (sys.executable, "-m", "tests.cli.paced", "600")
"""So seldom that only what a message does can notice anything."""


if __name__ == "__main__":
    (limit,) = (each for each in fields(Limits) if each.name == "heartbeat_seconds")
    limit.default = int(sys.argv.pop(1))
    main()
