"""Named crash points, one before and one after every verb of the store. Inert in production.

`KOBOSHI_CRASH_AT=turns.answer:after` kills this process with SIGKILL the first time the verb has
been committed and its caller does not know yet; `turns.answer:before` just before it is carried
out. `…:after:3` waits for the third time. A new verb is covered the day it is written, because the
writer asks for every operation by its name. On PostgreSQL there are two more: `batch:open`, when
all operations of a batch have run and nothing of it is committed, and `commit:sent`, when the
server has been sent the commit and has not answered.
"""

import os
import signal
from collections import Counter

VARIABLE = "KOBOSHI_CRASH_AT"
OF_BATCHES = frozenset({"batch:open", "commit:sent"})


class CrashPoint:
    """Where this process shall die. With an empty specification it never does."""

    def __init__(self, specification: str) -> None:
        verb, _, rest = specification.partition(":")
        moment, _, time = rest.partition(":")
        is_known = moment in ("before", "after") or f"{verb}:{moment}" in OF_BATCHES
        if specification and (not is_known or (time and not time.isdigit())):
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
