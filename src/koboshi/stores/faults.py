"""Named crash points, one before and one after every verb of the store. Inert in production.

`KOBOSHI_CRASH_AT=turns.answer:after` kills this process with SIGKILL the first time the verb has
been committed and its caller does not know yet; `turns.answer:before` just before it is carried
out. `…:after:3` waits for the third time. A new verb is covered the day it is written, because the
writer asks for every operation by its name.
"""

import os
import signal
from collections import Counter

VARIABLE = "KOBOSHI_CRASH_AT"


class CrashPoint:
    """Where this process shall die. With an empty specification it never does."""

    def __init__(self, specification: str) -> None:
        verb, _, rest = specification.partition(":")
        moment, _, time = rest.partition(":")
        if specification and (moment not in ("before", "after") or (time and not time.isdigit())):
            raise ValueError(f"{VARIABLE} wants verb:before or verb:after[:n], not {specification}")
        self._place = f"{verb}:{moment}"
        self._time = int(time or 1)
        self._reached: Counter[str] = Counter()
        self.is_armed = bool(specification)

    def reach(self, verb: str, moment: str) -> None:
        """Die here, if this is the place and the time."""
        place = f"{verb}:{moment}"
        self._reached[place] += 1
        if place == self._place and self._reached[place] == self._time:
            os.kill(os.getpid(), signal.SIGKILL)
