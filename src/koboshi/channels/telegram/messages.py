"""Deliveries to what the Bot API is asked. Pure."""

from koboshi.channels.common.choices import press_of
from koboshi.channels.common.formatting.formatted import barred
from koboshi.channels.common.shown import LABEL_UNITS, shown_of
from koboshi.channels.telegram.entities import Entity, Rendered, clip, finished
from koboshi.channels.telegram.render import render, split
from koboshi.domain.outbox import Delivery
from koboshi.domain.route import Route

TEXT_UNITS_MAX = 4_096
CAPTION_UNITS_MAX = 1_024
PART_UNITS_MAX = TEXT_UNITS_MAX - LABEL_UNITS
"""A part leaves room for the label, which may become necessary later."""
BUTTON_CHARS_MAX = 60


def parts_of(text: str) -> tuple[str, ...]:
    """The parts of an answer, each one message."""
    return split(text, PART_UNITS_MAX)


def rendered(delivery: Delivery, units_max: int = TEXT_UNITS_MAX) -> Rendered:
    """A delivery as people see it."""
    return finished(shown_of(delivery, units_max))


def message_of(delivery: Delivery, *, is_plain: bool = False) -> dict[str, object]:
    """The parameters of `sendMessage`."""
    shown = rendered(delivery)
    is_barred = is_plain and delivery.literal is not None
    words = barred(shown_of(delivery, TEXT_UNITS_MAX)) if is_barred else shown.text
    parameters = place_of(delivery.route) | {"text": words}
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
