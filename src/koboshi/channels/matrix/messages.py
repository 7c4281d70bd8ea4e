"""Deliveries to events of Matrix. Pure."""

from koboshi.channels.common.choices import NUMBERED_MAX, numbered
from koboshi.channels.common.formatting.formatted import FormattedText, barred
from koboshi.channels.common.formatting.markup import HTML, marked
from koboshi.channels.common.formatting.parts import split
from koboshi.channels.common.shown import LABEL_UNITS, shown_of
from koboshi.channels.matrix.client import TOO_MANY, MatrixRefused
from koboshi.channels.matrix.codec import ASKED, SENDS_KEY
from koboshi.domain.durations import wait_ms
from koboshi.domain.outbox import Delivery, Later, Refused, SendOutcome
from koboshi.domain.route import Route

TEXT_UNITS_MAX = 6_000
"""An event has 65,536 bytes at most, and holds the words twice, once with markup."""
PART_UNITS_MAX = TEXT_UNITS_MAX - LABEL_UNITS
UNAUTHORIZED = 401


def parts_of(text: str) -> tuple[str, ...]:
    """The parts of an answer, each one event."""
    return split(text, PART_UNITS_MAX)


def content_of(delivery: Delivery) -> dict[str, object]:
    """The content of a message without a file."""
    shown = shown_of(delivery, TEXT_UNITS_MAX)
    choices = delivery.choices[:NUMBERED_MAX]
    below = numbered(choices)
    content = words_of(FormattedText(shown.text + below, shown.spans))
    if delivery.literal is not None:
        # Not every client shows the formatting.
        content["body"] = barred(shown) + below
    if choices:
        ids = [choice.choice_id for choice in choices]
        content[ASKED] = {"question": delivery.question or 0, "choices": ids}
    return content | _manner_of(delivery)


def file_of(
    delivery: Delivery, where: dict[str, object], size: int, kind: str
) -> dict[str, object]:
    """The content of a message that carries a file, with its words as the caption. `where` is its
    address, with what opens it if it is encrypted."""
    assert delivery.file is not None
    shown = shown_of(delivery, TEXT_UNITS_MAX)
    name = delivery.file.name
    content: dict[str, object] = {
        "msgtype": "m.file",
        "filename": name,
        "body": shown.text or name,
        **where,
        "info": {"size": size, "mimetype": kind},
    }
    return content | _manner_of(delivery)


def words_of(shown: FormattedText) -> dict[str, object]:
    """Words with their formatting. People are not mentioned by what an agent says."""
    content: dict[str, object] = {"msgtype": "m.text", "body": shown.text, "m.mentions": {}}
    if shown.spans:
        content |= {"format": "org.matrix.custom.html", "formatted_body": marked(shown, HTML)}
    return content


def edit_of(platform_id: str, text: str) -> dict[str, object]:
    """New words for an event of ours."""
    new = words_of(FormattedText(text))
    relation = {"rel_type": "m.replace", "event_id": platform_id}
    return {**new, "body": f"* {text}", "m.new_content": new, "m.relates_to": relation}


def _manner_of(delivery: Delivery) -> dict[str, object]:
    """Where it stands: in its thread, in answer to what. It carries its key, by which it is found
    when the homeserver has forgotten that."""
    manner: dict[str, object] = {SENDS_KEY: delivery.send_key}
    relation = relation_of(delivery.route, delivery.anchor if delivery.part == 1 else "")
    return manner | ({"m.relates_to": relation} if relation else {})


def relation_of(route: Route, anchor: str) -> dict[str, object]:
    """How a message of ours relates to its thread and to the message it answers."""
    answered: dict[str, object] = {"m.in_reply_to": {"event_id": anchor}} if anchor else {}
    if not route.thread:
        return answered
    # Clients without threads show it as an answer to the newest message.
    fallback = answered or {"m.in_reply_to": {"event_id": route.thread}}
    is_falling_back = not answered
    return {
        "rel_type": "m.thread",
        "event_id": route.thread,
        "is_falling_back": is_falling_back,
        **fallback,
    }


def outcome_of(refused: MatrixRefused) -> SendOutcome:
    """What a refusal means: nothing was sent."""
    if refused.status == TOO_MANY:
        return Later(wait_ms=wait_ms_of(refused), reason=str(refused))
    if refused.status == UNAUTHORIZED:
        # It goes out at once when the token is taken again.
        return Later(wait_ms=0, reason=f"the token is refused: {refused}")
    return Refused(reason=str(refused))


def wait_ms_of(refused: MatrixRefused) -> int:
    """How long a pause the homeserver asks for."""
    asked = refused.retry_after_ms
    return max(wait_ms((asked or 1_000) / 1000), 1)
