"""A gateway whose heart beats as often as a test needs: `python -m tests.cli.paced 1 run …`. How
often it does is a limit, and no key of the configuration."""

import sys

from msgspec import defstruct

from koboshi.cli.main import main
from koboshi.config import Config, Limits
from koboshi.config.values import sections_of

OFTEN = (sys.executable, "-m", "tests.cli.paced", "1")
SELDOM = (sys.executable, "-m", "tests.cli.paced", "600")
"""So seldom that only what a message does can notice anything."""


if __name__ == "__main__":
    beat = ("heartbeat_seconds", int, int(sys.argv.pop(1)))
    paced = defstruct("Limits", [beat], bases=(Limits,), frozen=True, kw_only=True)
    sections = sections_of(Config)
    assert isinstance(sections, dict), "nothing else can be changed"
    sections["limits"] = paced
    main()
