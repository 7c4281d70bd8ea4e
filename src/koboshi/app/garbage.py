"""How often the interpreter looks for objects that only hold each other.

A batch of the store holds thousands of objects for a few milliseconds, and they go by themselves.
By default the interpreter looks through the young ones at every 700th, which takes a tenth of a
turn. What is there when a gateway begins to serve stays until its end, and is not looked at again.
"""

import gc

YOUNG_MAX = 50_000
"""Objects more than there were at the last look; some megabytes at most."""
_OLDER = (20, 20)


def collect_seldom() -> None:
    """Begin to look for them: `koboshi run` has not, while it loaded (`cli/main.py`)."""
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *_OLDER)
    gc.enable()
