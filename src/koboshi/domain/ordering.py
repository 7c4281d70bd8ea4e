"""`/cron add` and its options → an order. Pure; the command line reads it the same way."""

from datetime import tzinfo

from koboshi.domain.due import NotATime
from koboshi.domain.phrases import excerpt
from koboshi.domain.schedule import (
    NAME_CHARS_MAX,
    PLAIN_CHARS_MAX,
    Late,
    Order,
    Overlap,
    WorkPlace,
    default_late,
)
from koboshi.domain.when import When, read_when

PLAIN = "plain"
"""The option that `/remind` stands for."""
QUEUE = "queue"
"""The option by which the next occasion waits while the previous one is open."""
OPTIONS = ("fresh", "quiet", "run", "ask", "skip", QUEUE, "command", "thread", "here", PLAIN)


def read_options(text: str) -> tuple[set[str], str]:
    """The options that stand before the time, and the rest."""
    options: set[str] = set()
    text = text.strip()
    while (first := text.partition(" ")[0].casefold()) in OPTIONS:
        options.add(first)
        text = text.partition(" ")[2].strip()
    return options, text


def order_of(when: When, words: str, zone: str, options: set[str]) -> Order:
    """The order that a time, words and options make."""
    late = default_late(when.kind)
    for each in (Late.RUN, Late.ASK, Late.SKIP):
        late = each if each.value in options else late
    is_command = "command" in options
    return Order(
        name=excerpt(words, NAME_CHARS_MAX),
        kind=when.kind,
        expression=when.expression,
        zone=zone,
        prompt="" if is_command else words,
        command=words if is_command else "",
        place=next((each for each in WorkPlace if each.value in options), WorkPlace.HERE),
        late=late,
        overlap=Overlap.QUEUE if QUEUE in options else Overlap.SKIP,
        quiet="quiet" in options,
        is_plain=PLAIN in options and not is_command and len(words) <= PLAIN_CHARS_MAX,
    )


def read_order(text: str, now_ms: int, zone: tzinfo, zone_name: str) -> Order:
    """The order in words as people write them behind `/cron add`. Raises NotATime."""
    options, rest = read_options(text)
    when = read_when(rest, now_ms, zone)
    if not when.rest:
        raise NotATime("Say what, too: every day at 7:00 send me the news.")
    return order_of(when, when.rest, zone_name, options)
