"""Block Kit as far as messages of ours use it, with the limits that the platform has."""

from typing import Any

from tests.fakes.slack.errors import SlackRefusal, refuse

JSON = dict[str, Any]

BLOCKS_MAX = 50
ALL_CHARS_MAX = 12_000
"""Of the text in all blocks together; beyond it the platform says `msg_blocks_too_long`."""
TEXT_CHARS_MAX = 40_000
ELEMENTS_MAX = 25
LABEL_CHARS_MAX = 75
ACTION_CHARS_MAX = 255
VALUE_CHARS_MAX = 2_000
METADATA_BYTES_MAX = 8_000
_STYLES = {"bold", "italic", "strike", "code"}
_CONTAINERS = {
    "rich_text_section",
    "rich_text_preformatted",
    "rich_text_quote",
    "rich_text_list",
}


def checked_blocks(blocks: object) -> list[JSON]:
    """The blocks of a message. Refuses what the platform refuses."""
    if blocks is None:
        return []
    if not isinstance(blocks, list) or not all(isinstance(each, dict) for each in blocks):
        refuse("invalid_blocks_format")
    if len(blocks) > BLOCKS_MAX:
        refuse("invalid_blocks", errors=["no more than 50 items allowed [json-pointer:/blocks]"])
    chars = sum(_chars_of(block) for block in blocks)
    if chars > ALL_CHARS_MAX:
        refuse("msg_blocks_too_long")
    return blocks


def checked_metadata(metadata: object) -> JSON | None:
    if metadata is None:
        return None
    if not isinstance(metadata, dict) or set(metadata) - {"event_type", "event_payload"}:
        refuse("invalid_metadata_format")
    kind, payload = metadata.get("event_type"), metadata.get("event_payload")
    if not isinstance(kind, str) or not kind or not isinstance(payload, dict):
        refuse("invalid_metadata_schema")
    if len(str(metadata)) > METADATA_BYTES_MAX:
        refuse("metadata_too_large")
    return metadata


def _chars_of(block: JSON) -> int:
    match block.get("type"):
        case "rich_text":
            return sum(_rich(each) for each in _elements(block))
        case "actions":
            return _actions(block)
        case "section":
            words = block.get("text")
            if not isinstance(words, dict) or not 1 <= len(words.get("text", "")) <= 3_000:
                refuse("invalid_blocks", errors=["must be 1 to 3000 characters"])
            return len(words["text"])
        case "divider":
            return 0
        case _:
            pass
    raise SlackRefusal("invalid_blocks", errors=[f"unsupported type: {block.get('type')}"])


def _elements(block: JSON) -> list[JSON]:
    elements = block.get("elements")
    if not isinstance(elements, list) or not elements:
        refuse("invalid_blocks", errors=["missing required field: elements"])
    return elements


def _rich(element: JSON) -> int:
    kind = element.get("type")
    if kind not in _CONTAINERS:
        refuse("invalid_blocks", errors=[f"unsupported type: {kind}"])
    if kind == "rich_text_list":
        if element.get("style") not in {"bullet", "ordered"}:
            refuse("invalid_blocks", errors=["missing required field: style"])
        return sum(_rich(each) for each in _elements(element))
    return sum(_leaf(each) for each in _elements(element))


def _leaf(leaf: JSON) -> int:
    styles = set(leaf.get("style") or {})
    if styles - _STYLES:
        refuse("invalid_blocks", errors=[f"unknown style: {sorted(styles)}"])
    match leaf.get("type"):
        case "text":
            if not isinstance(leaf.get("text"), str) or not leaf["text"]:
                refuse("invalid_blocks", errors=["must be more than 0 characters"])
            return len(leaf["text"])
        case "link":
            if not str(leaf.get("url", "")).startswith(("http://", "https://", "mailto:")):
                refuse("invalid_blocks", errors=["invalid url"])
            return len(leaf.get("text") or leaf["url"])
        case _:
            pass
    raise SlackRefusal("invalid_blocks", errors=[f"unsupported type: {leaf.get('type')}"])


def _actions(block: JSON) -> int:
    buttons = _elements(block)
    if len(buttons) > ELEMENTS_MAX:
        refuse("invalid_blocks", errors=["no more than 25 items allowed"])
    seen: set[str] = set()
    chars = 0
    for button in buttons:
        words = button.get("text") or {}
        if button.get("type") != "button" or words.get("type") != "plain_text":
            refuse("invalid_blocks", errors=["only buttons with plain text are known here"])
        if not 1 <= len(words.get("text", "")) <= LABEL_CHARS_MAX:
            refuse("invalid_blocks", errors=["must be less than 76 characters"])
        action = str(button.get("action_id", ""))
        if not 1 <= len(action) <= ACTION_CHARS_MAX or action in seen:
            refuse("invalid_blocks", errors=[f"`action_id` {action} already exists"])
        if len(str(button.get("value", ""))) > VALUE_CHARS_MAX:
            refuse("invalid_blocks", errors=["must be less than 2001 characters"])
        seen.add(action)
        chars += len(words["text"])
    return chars
