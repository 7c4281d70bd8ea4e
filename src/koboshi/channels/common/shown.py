"""A delivery as people see it, whatever the platform: words, what they decide about, the label."""

from koboshi.channels.common.formatting.formatted import (
    FormattedText,
    clean,
    clipped,
    literal_block,
    prefixed,
    units,
)
from koboshi.channels.common.formatting.markdown import page_of
from koboshi.domain.outbox import Delivery
from koboshi.domain.phrases import DUPLICATE_LABEL

LABEL_UNITS = len(DUPLICATE_LABEL) + 16
"""The room that every part leaves for the label, which may become necessary later."""
AS_IT_IS = ("report:", "command:")
"""Words that are not written as Markdown: what commands print, and lists of it."""


def shown_of(delivery: Delivery, units_max: int) -> FormattedText:
    """The words of a delivery in at most `units_max` units, behind the label if it may be a
    duplicate. What a person decides about is a block of its own, letter by letter; nothing around
    it is Markdown either, for it names folders and quotes the agent."""
    shown = _words_of(delivery)
    if not delivery.may_be_duplicate:
        return clipped(shown, units_max)
    return prefixed(DUPLICATE_LABEL, clipped(shown, units_max - units(DUPLICATE_LABEL)))


def _words_of(delivery: Delivery) -> FormattedText:
    if delivery.literal is not None:
        return literal_block(delivery.text, *delivery.literal)
    cleaned = clean(delivery.text)
    if delivery.cause.startswith(AS_IT_IS):
        return FormattedText(cleaned.strip())
    return page_of(cleaned).shown
