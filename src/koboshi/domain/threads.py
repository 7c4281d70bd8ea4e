"""Threads that schedules work in, where a platform makes them by a call of its own: a topic.

Such a call cannot be repeated, and what it made cannot be looked up. So after a call of unknown
outcome no second one is made, ever. The platform tells of each topic in what it brings to us; until
it has, for a while, the outcome stays open, and then the schedule works in the conversation. If it
is told of later, the schedule moves there.
"""

import re

from koboshi.domain.ids import ScheduleId
from koboshi.domain.outbox import Delivery, Refused, SendOutcome, Sent, Unsure

AWAITED_TRIES_MAX = 3
"""The call itself, and two looks with growing pauses."""
UNKNOWN = "the gateway could not see whether it was made"
NAME_CHARS_MAX = 128

_NUMBER = re.compile(r"\(c(\d{1,15})\)\s*\Z")


def of_awaited(delivery: Delivery, thread: str) -> SendOutcome:
    """What a call of unknown outcome has come to. `thread` is what the platform has told of; empty
    if nothing yet."""
    if thread:
        return Sent(platform_id=thread)
    if delivery.attempts < AWAITED_TRIES_MAX:
        return Unsure(reason="the platform has not told of it yet", was_sent=False)
    return Refused(reason=UNKNOWN)


def first_words(name: str, shown: str) -> str:
    """What a thread begins with, and what a topic is called. It ends with what the schedule is
    known by, so that the platform's own words say whose it is."""
    suffix = f" ({shown})"
    return f"{' '.join(name.split())[: NAME_CHARS_MAX - len(suffix)]}{suffix}"


def schedule_named(words: str) -> ScheduleId | None:
    """The schedule that the first words of a thread name."""
    found = _NUMBER.search(words)
    return None if found is None else ScheduleId(int(found[1]))


def are_same(one: str, other: str) -> bool:
    """Whether two names are the same to a platform, which may take spaces and marks away."""
    return _letters(one) == _letters(other)


def _letters(words: str) -> str:
    return "".join(filter(str.isalnum, words))
