"""Text as the platform takes it: its length, its entities, and HTML made into both."""

import re
from html.parser import HTMLParser
from typing import Any

from tests.fakes.telegram.errors import Refusal, bad_request
from tests.fakes.telegram.params import Params

JSON = dict[str, Any]

TEXT_UNITS_MAX = 4096
CAPTION_UNITS_MAX = 1024
# Found by the platform itself; a bot may not give them, so they are left out when it does.
FOUND = "mention hashtag cashtag bot_command url email phone_number".split()
GIVEN = (
    "bold italic underline strikethrough spoiler blockquote expandable_blockquote code pre"
    " text_link text_mention custom_emoji"
).split()
TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "a": "text_link",
}
_NOTICED = re.compile(
    r"(?P<url>https?://[^\s<>]+)"
    r"|(?<![\w/])(?P<bot_command>/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?)(?![\w/])"
    r"|(?<!\w)(?P<mention>@[A-Za-z][A-Za-z0-9_]{3,31})(?!\w)"
)


def units(text: str) -> int:
    """The length in UTF-16 code units, which offsets and limits count."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def notice(text: str) -> list[JSON]:
    """The mentions, commands and addresses in a text, as the platform marks them by itself."""
    if "/" not in text and "@" not in text:
        return []
    return [
        {
            "type": str(found.lastgroup),
            "offset": units(text[: found.start()]),
            "length": units(found[0]),
        }
        for found in _NOTICED.finditer(text)
    ]


def formatted(params: Params, text_name: str, entities_name: str) -> tuple[str, list[JSON]]:
    """The text and the entities that a method was given, checked, trimmed and completed."""
    text = params.text(text_name)
    given = params.objects(entities_name, "entities")
    mode = params.text("parse_mode").lower()
    if not given and mode:
        text, entities = parsed(text, mode)
    else:
        entities = [checked(each) for each in given]
        entities = [each for each in entities if each["type"] not in FOUND]
        check_bounds(text, entities)
    text, entities = trimmed(text, entities)
    return text, completed(text, entities)


def check_length(text: str, limit: int, complaint: str) -> None:
    if units(text) > limit:
        bad_request(complaint)


def checked(entity: JSON) -> JSON:
    kind = entity.get("type")
    if kind not in FOUND and kind not in GIVEN:
        bad_request("can't parse MessageEntity: Unsupported type specified")
    for name in ("offset", "length"):
        if not isinstance(entity.get(name), int):
            bad_request(f'can\'t parse MessageEntity: Field "{name}" must be of type Number')
    return entity


def check_bounds(text: str, entities: list[JSON]) -> None:
    if not entities:
        return
    encoded = text.encode("utf-16-le")
    end_of_text = len(encoded) // 2
    for entity in entities:
        begin, end = entity["offset"], entity["offset"] + entity["length"]
        if begin < 0 or entity["length"] < 0:
            bad_request(f"receive an entity with incorrect offset {begin}")
        if begin > end_of_text:
            bad_request(f"entity begins after the end of the text at UTF-16 offset {begin}")
        if end > end_of_text:
            bad_request(
                f"entity beginning at UTF-16 offset {begin} ends after the end of the text"
                f" at UTF-16 offset {end}"
            )
        if _splits_a_pair(encoded, begin):
            place = _byte_offset(encoded, begin)
            bad_request(f"entity begins in a middle of a UTF-16 symbol at byte offset {place}")
        if _splits_a_pair(encoded, end):
            bad_request(
                f"entity beginning at UTF-16 offset {begin} ends in a middle of a UTF-16 symbol"
                f" at byte offset {_byte_offset(encoded, end)}"
            )


def trimmed(text: str, entities: list[JSON]) -> tuple[str, list[JSON]]:
    """Without white space around it; what an entity loses by that is cut off."""
    if not text or not (text[0].isspace() or text[-1].isspace()):
        return text, entities
    kept = text.strip()
    removed = units(text[: len(text) - len(text.lstrip())])
    end = units(kept)
    moved = []
    for entity in entities:
        first = max(0, entity["offset"] - removed)
        last = min(end, entity["offset"] + entity["length"] - removed)
        if last > first:
            moved.append({**entity, "offset": first, "length": last - first})
    return kept, moved


def completed(text: str, entities: list[JSON]) -> list[JSON]:
    """With what the platform finds outside of what was given, in order."""
    found = [each for each in notice(text) if not any(_overlap(each, other) for other in entities)]
    kept = [each for each in entities if each["length"] > 0]
    return sorted(kept + found, key=lambda each: (each["offset"], -each["length"]))


def parsed(text: str, mode: str) -> tuple[str, list[JSON]]:
    if mode in {"markdown", "markdownv2"}:
        raise Refusal(501, "Not Implemented: this fake reads entities and HTML only")
    if mode != "html":
        bad_request("unsupported parse_mode")
    reader = _Reader()
    reader.feed(text)
    reader.close()
    if reader.open:
        bad_request(f"can't parse entities: Can't find end tag corresponding to {_quoted(reader)}")
    return reader.text, reader.entities


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.entities: list[JSON] = []
        self.open: list[tuple[str, JSON]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            bad_request(f'can\'t parse entities: Unsupported start tag "{tag}"')
        entity: JSON = {"type": TAGS[tag], "offset": units(self.text)}
        if tag == "a":
            entity["url"] = dict(attrs).get("href") or ""
        self.open.append((tag, entity))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1][0] != tag:
            bad_request(f'can\'t parse entities: Unexpected end tag "{tag}"')
        entity = self.open.pop()[1]
        entity["length"] = units(self.text) - entity["offset"]
        self.entities.append(entity)

    def handle_data(self, data: str) -> None:
        self.text += data


def _quoted(reader: _Reader) -> str:
    return f'start tag "{reader.open[-1][0]}"'


def _overlap(one: JSON, other: JSON) -> bool:
    return bool(
        one["offset"] < other["offset"] + other["length"]
        and other["offset"] < one["offset"] + one["length"]
    )


def _splits_a_pair(encoded: bytes, offset: int) -> bool:
    low = encoded[2 * offset + 1 : 2 * offset + 2]
    return bool(low) and 0xDC <= low[0] <= 0xDF


def _byte_offset(encoded: bytes, offset: int) -> int:
    return len(encoded[: 2 * offset - 2].decode("utf-16-le").encode()) + 4
