"""Deliveries to what the Web API is asked. Pure.

Text goes out as `rich_text` blocks, in which every letter is itself: there is no markup that words
of a model, or of a command that a person approves, could be taken for. The `text` beside the blocks
is what notifications show, escaped. Where there are no blocks, bars set a command apart.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from koboshi.channels.common.choices import press_of
from koboshi.channels.common.formatting.formatted import FormattedText, Span, barred, pieces
from koboshi.channels.common.formatting.parts import split
from koboshi.channels.common.shown import LABEL_UNITS, shown_of
from koboshi.channels.slack.words import escaped
from koboshi.domain.outbox import Delivery
from koboshi.domain.route import Route
from koboshi.domain.transcript import Choice

JSON = dict[str, Any]

TEXT_UNITS_MAX = 3_000
"""Slack takes some 12,000 in all blocks, and cuts a longer text in two by itself."""
PART_UNITS_MAX = TEXT_UNITS_MAX - LABEL_UNITS
NOTIFIED_CHARS_MAX = 300
LABEL_CHARS_MAX = 75
BUTTONS_MAX = 25
METADATA = "koboshi_delivery"
_STYLES = {"bold": "bold", "italic": "italic", "strikethrough": "strike", "code": "code"}
_BLOCKS = {"pre": "rich_text_preformatted", "blockquote": "rich_text_quote"}


def parts_of(text: str) -> tuple[str, ...]:
    """The parts of an answer, each one message."""
    return split(text, PART_UNITS_MAX)


def message_of(delivery: Delivery, *, is_plain: bool = False) -> JSON:
    """The arguments of `chat.postMessage`."""
    shown = shown_of(delivery, TEXT_UNITS_MAX)
    asked = place_of(delivery.route) | {"unfurl_links": False, "unfurl_media": False}
    if delivery.send_key:
        asked["metadata"] = {"event_type": METADATA, "event_payload": {"key": delivery.send_key}}
    buttons = list(_buttons(delivery))
    words = shown.text if delivery.literal is None else barred(shown)
    if is_plain:
        asked["text"] = escaped(words)
        return asked | ({"blocks": [_plain_block(words), *buttons]} if buttons else {})
    asked["text"] = escaped(words[:NOTIFIED_CHARS_MAX])
    return asked | {"blocks": [*rich_blocks(shown), *buttons]}


def edit_of(route: Route, ts: str, text: str) -> JSON:
    """The arguments of `chat.update`."""
    words = text[:TEXT_UNITS_MAX]
    return {
        "channel": route.chat,
        "ts": ts,
        "text": escaped(words[:NOTIFIED_CHARS_MAX]),
        "blocks": rich_blocks(FormattedText(words)),
    }


def comment_of(delivery: Delivery) -> str:
    """What is said beside a file."""
    return escaped(shown_of(delivery, TEXT_UNITS_MAX).text) if delivery.text.strip() else ""


def place_of(route: Route) -> JSON:
    return {"channel": route.chat} | ({"thread_ts": route.thread} if route.thread else {})


def rich_blocks(shown: FormattedText) -> list[JSON]:
    """The text as one block, its code and its quotes as elements of their own; none of no text."""
    elements = [element for element in _elements(shown) if element["elements"]]
    return [{"type": "rich_text", "elements": elements}] if elements else []


def _elements(shown: FormattedText) -> Iterator[JSON]:
    apart = [span for span in shown.spans if span.kind in _BLOCKS]
    # Code in a quote is a block of its own, too: Slack nests no blocks.
    inner = [s for s in apart if s.kind == "pre" or not any(_holds(s, o) for o in apart)]
    at = 0
    for span in sorted(inner, key=lambda each: each.begin):
        yield _element("rich_text_section", shown, at, span.begin)
        yield _element(_BLOCKS[span.kind], shown, span.begin, span.end)
        at = span.end
    yield _element("rich_text_section", shown, at, len(shown.text))


def _holds(outer: Span, other: Span) -> bool:
    return outer is not other and outer.begin <= other.begin and other.end <= outer.end


def _element(kind: str, shown: FormattedText, begin: int, end: int) -> JSON:
    """A stretch of the text. Slack begins a new line around blocks by itself."""
    text = shown.text
    if kind == "rich_text_section":
        begin += begin > 0 and text[begin : begin + 1] == "\n"
        end -= end < len(text) and begin < end and text[end - 1 : end] == "\n"
    if begin >= end:
        return {"type": kind, "elements": []}
    (piece,) = pieces(shown, [(begin, end)])
    return {"type": kind, "elements": list(_leaves(piece))}


def _leaves(piece: FormattedText) -> Iterator[JSON]:
    bounds = {0, len(piece.text)}
    for span in piece.spans:
        bounds |= {span.begin, span.end}
    marks = sorted(bounds)
    for begin, end in pairwise(marks):
        covering = [s for s in piece.spans if s.begin <= begin and end <= s.end]
        yield _leaf(piece.text[begin:end], covering)


def _leaf(text: str, covering: list[Span]) -> JSON:
    style = {_STYLES[span.kind]: True for span in covering if span.kind in _STYLES}
    url = next((span.url for span in covering if span.kind == "text_link"), "")
    leaf: JSON = {"type": "text", "text": text}
    if url.startswith(("http://", "https://")):
        leaf = {"type": "link", "url": url, "text": text}
    return leaf | ({"style": style} if style else {})


def _plain_block(text: str) -> JSON:
    words = {"type": "rich_text_section", "elements": [{"type": "text", "text": text or " "}]}
    return {"type": "rich_text", "elements": [words]}


def _buttons(delivery: Delivery) -> Iterator[JSON]:
    choices = delivery.choices
    for begin in range(0, len(choices), BUTTONS_MAX):
        some = choices[begin : begin + BUTTONS_MAX]
        yield {
            "type": "actions",
            "elements": [_button(delivery.question, choice) for choice in some],
        }


def _button(question: int | None, choice: Choice) -> JSON:
    carried = press_of(question, choice.choice_id)
    label = choice.label[:LABEL_CHARS_MAX] or choice.choice_id[:LABEL_CHARS_MAX]
    return {
        "type": "button",
        "text": {"type": "plain_text", "text": label, "emoji": False},
        "action_id": carried,
        "value": carried,
    }
