"""Deliveries to what the Bot API is asked. Pure."""

from dataclasses import replace

from koboshi.channels.telegram.codec import press_of
from koboshi.channels.telegram.render import (
    Entity,
    Rendered,
    clip,
    literally,
    plain,
    render,
    split,
    units,
)
from koboshi.domain.outbox import Delivery
from koboshi.domain.phrases import DUPLICATE_LABEL
from koboshi.domain.route import Route

TEXT_UNITS_MAX = 4_096
CAPTION_UNITS_MAX = 1_024
PART_UNITS_MAX = TEXT_UNITS_MAX - len(DUPLICATE_LABEL) - 16
"""A part leaves room for the label, which may become necessary later."""
BUTTON_CHARS_MAX = 60

AS_IT_IS = ("report:", "command:")
"""Words that are not written as Markdown: what commands print, and lists of it."""


def parts_of(text: str) -> tuple[str, ...]:
    """The parts of an answer, each one message."""
    return split(text, PART_UNITS_MAX)


def rendered(delivery: Delivery, units_max: int = TEXT_UNITS_MAX) -> Rendered:
    """A delivery as people see it."""
    shown = _shown(delivery)
    if not delivery.may_be_duplicate:
        return clip(shown, units_max)
    moved = units(DUPLICATE_LABEL)
    cut = clip(shown, units_max - moved)
    entities = tuple(replace(entity, offset=entity.offset + moved) for entity in cut.entities)
    return Rendered(text=DUPLICATE_LABEL + cut.text, entities=entities)


def _shown(delivery: Delivery) -> Rendered:
    """The words of a delivery. What a person decides about is a block of its own, letter by letter;
    nothing around it is Markdown either, for it names folders and quotes the agent."""
    if delivery.literal is not None:
        return literally(delivery.text, *delivery.literal)
    return plain(delivery.text) if delivery.cause.startswith(AS_IT_IS) else render(delivery.text)


def message_of(delivery: Delivery, *, is_plain: bool = False) -> dict[str, object]:
    """The parameters of `sendMessage`."""
    shown = rendered(delivery)
    parameters = place_of(delivery.route) | {"text": shown.text}
    if shown.entities and not is_plain:
        parameters["entities"] = [entity_of(entity) for entity in shown.entities]
    return parameters | manner_of(delivery)


def caption_of(delivery: Delivery, *, is_plain: bool = False) -> dict[str, object]:
    """The parameters of a file that is sent, without the file."""
    shown = rendered(delivery, CAPTION_UNITS_MAX)
    words: dict[str, object] = {"caption": shown.text} if shown.text else {}
    if shown.entities and not is_plain:
        words["caption_entities"] = [entity_of(entity) for entity in shown.entities]
    return place_of(delivery.route) | words | manner_of(delivery)


def manner_of(delivery: Delivery) -> dict[str, object]:
    """How it is sent: in answer to what, and with which buttons."""
    manner: dict[str, object] = {}
    if delivery.part == 1 and delivery.anchor.isdigit():
        anchor = int(delivery.anchor)
        # A message that is gone meanwhile must not cost the answer.
        manner["reply_parameters"] = {"message_id": anchor, "allow_sending_without_reply": True}
    markup = markup_of(delivery)
    return manner | ({"reply_markup": markup} if markup else {})


def markup_of(delivery: Delivery) -> dict[str, object]:
    """The buttons below it; empty if there are none."""
    rows = [
        [
            {
                "text": choice.label[:BUTTON_CHARS_MAX] or choice.choice_id,
                "callback_data": press_of(delivery.question, choice.choice_id),
            }
        ]
        for choice in delivery.choices
    ]
    return {"inline_keyboard": rows} if rows else {}


def place_of(route: Route) -> dict[str, object]:
    place: dict[str, object] = {"chat_id": int(route.chat)}
    return place | ({"message_thread_id": int(route.thread)} if route.thread else {})


def draft_of(route: Route, draft_id: int, text: str) -> dict[str, object]:
    shown = clip(render(text), TEXT_UNITS_MAX)
    words: dict[str, object] = {"draft_id": draft_id, "text": shown.text}
    if shown.entities:
        words["entities"] = [entity_of(entity) for entity in shown.entities]
    return place_of(route) | words


def entity_of(entity: Entity) -> dict[str, object]:
    shown: dict[str, object] = {
        "type": entity.type,
        "offset": entity.offset,
        "length": entity.length,
    }
    if entity.url:
        shown["url"] = entity.url
    if entity.language:
        shown["language"] = entity.language
    return shown
