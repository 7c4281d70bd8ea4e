"""Deliveries to what the REST API is asked. Pure."""

from koboshi.channels.common.choices import press_of
from koboshi.channels.common.formatting.formatted import clean
from koboshi.channels.common.formatting.markdown import page_of
from koboshi.channels.common.formatting.markup import parts_that_fit
from koboshi.channels.common.shown import LABEL_UNITS, shown_of
from koboshi.channels.discord.markup import discord_text
from koboshi.channels.discord.places import is_id
from koboshi.domain.outbox import Delivery
from koboshi.domain.route import Route

TEXT_MAX = 2_000
PART_MAX = TEXT_MAX - LABEL_UNITS
"""A part leaves room for the label, which may become necessary later."""
QUESTION_UNITS_MAX = 1_700
"""What a person decides about is never cut, and its marks need room, too."""
BUTTONS_IN_ROW, ROWS_MAX = 5, 5
LABEL_MAX = 80
SECONDARY = 2
"""A grey button."""


def parts_of(text: str) -> tuple[str, ...]:
    """The parts of an answer, each one message."""
    return parts_that_fit(text, PART_MAX, _size_of, PART_MAX)


def _size_of(markdown: str) -> int:
    return len(discord_text(page_of(clean(markdown)).shown))


def text_of(delivery: Delivery) -> str:
    """A delivery as it is written. What is too long only because of its marks is cut."""
    units_max = TEXT_MAX
    while True:
        written = discord_text(shown_of(delivery, units_max))
        if len(written) <= TEXT_MAX or units_max < BUTTONS_IN_ROW:
            return written
        units_max -= max(len(written) - TEXT_MAX, 8)


def is_whole(delivery: Delivery) -> bool:
    """Whether it can be shown without a cut, which is needed for what a person decides about."""
    return len(discord_text(shown_of(delivery, 2 * TEXT_MAX))) <= TEXT_MAX


def message_of(delivery: Delivery) -> dict[str, object]:
    """The body of a message. The nonce makes a repeat within some minutes the same message. No
    mention rings, whatever the words are: they may be quoted."""
    body: dict[str, object] = {
        "content": text_of(delivery),
        "nonce": delivery.send_key,
        "enforce_nonce": True,
        "allowed_mentions": {"parse": []},
    }
    if delivery.part == 1 and is_id(delivery.anchor):
        # A message that is gone meanwhile must not cost the answer.
        body["message_reference"] = {
            "message_id": delivery.anchor,
            "fail_if_not_exists": False,
        }
    if delivery.file is not None:
        body["attachments"] = [{"id": 0, "filename": delivery.file.name}]
    rows = rows_of(delivery)
    return body | ({"components": rows} if rows else {})


def rows_of(delivery: Delivery) -> list[dict[str, object]]:
    """The buttons below it, in rows of five."""
    buttons = [
        {
            "type": 2,
            "style": SECONDARY,
            "label": choice.label[:LABEL_MAX] or choice.choice_id[:LABEL_MAX],
            "custom_id": press_of(delivery.question, choice.choice_id),
        }
        for choice in delivery.choices[: BUTTONS_IN_ROW * ROWS_MAX]
    ]
    return [
        {"type": 1, "components": buttons[at : at + BUTTONS_IN_ROW]}
        for at in range(0, len(buttons), BUTTONS_IN_ROW)
    ]


def channel_of(route: Route) -> str:
    """Where it is sent to: a thread is a channel of its own."""
    return route.thread or route.chat


def is_place(route: Route) -> bool:
    return is_id(channel_of(route))
