"""Text with spans as Discord's own Markdown. Pure.

Discord shows the character behind a backslash as it is, if it is a mark. Inside code there are no
escapes: code is fenced by more ticks than it holds, and a block that holds a fence is shown as
escaped text instead, letter by letter, with a bar before each of its lines: else they could pass
for the words around them.
"""

import re

from koboshi.channels.common.formatting.formatted import FormattedText, Span
from koboshi.channels.common.formatting.markup import Markup, marked

FENCE = "```"
_MARKS = {"bold": "**", "italic": "*", "strikethrough": "~~"}
_TICKS = re.compile(r"`+")
_ADDRESS = re.compile(r"https?://[^\s<>]+")
_ACTIVE = re.compile(r"[\\*_~`|\[\]<]")
_LEADING = re.compile(r"(?m)^(\s*)(#{1,3} |-# |[-+>] |>>> |[0-9]{1,9}(?=[.)] ))")
_PUNCTUATION = re.compile(r"[^\w\s]|_")


def discord_text(shown: FormattedText) -> str:
    """What is sent so that it is shown as given."""
    text = shown.text
    letters = [
        span for span in shown.spans if span.kind == "pre" and FENCE in text[span.begin : span.end]
    ]

    def opening(span: Span) -> str:
        match span.kind:
            case "code":
                ticks, pad = _ticks(text[span.begin : span.end])
                return ticks + pad
            case "pre":
                return "> " if span in letters else f"{FENCE}{span.language}\n"
            case "text_link":
                return "["
            case "blockquote":
                return "> "
            case kind:
                return _MARKS.get(kind, "")

    def closing(span: Span) -> str:
        match span.kind:
            case "code":
                ticks, pad = _ticks(text[span.begin : span.end])
                return pad + ticks
            case "pre":
                return "" if span in letters else f"\n{FENCE}"
            case "text_link":
                return f"](<{span.url}>)"
            case kind:
                return _MARKS.get(kind, "")

    def words(piece: str, inside: tuple[Span, ...]) -> str:
        if any(span in letters for span in inside):
            written = _PUNCTUATION.sub(r"\\\g<0>", piece)
        elif any(span.kind in ("code", "pre") for span in inside):
            written = piece
        else:
            written = _escaped(piece)
        is_quoted = any(span.kind == "blockquote" or span in letters for span in inside)
        return written.replace("\n", "\n> ") if is_quoted else written

    return marked(shown, Markup(opening=opening, closing=closing, words=words))


def _ticks(code: str) -> tuple[str, str]:
    """The fence of a stretch of code, and the space inside it that keeps ticks apart."""
    runs = {len(run) for run in _TICKS.findall(code)}
    count = 1
    while count in runs:
        count += 1
    return "`" * count, " " if code.startswith("`") or code.endswith("`") else ""


def _escaped(piece: str) -> str:
    """A stretch of text with no meaning but itself. Addresses stay as they are: they hold marks,
    and are shown as links."""
    parts: list[str] = []
    at = 0
    for found in _ADDRESS.finditer(piece):
        parts += [_plain(piece[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*parts, _plain(piece[at:])])


def _plain(piece: str) -> str:
    marks = _ACTIVE.sub(r"\\\g<0>", piece)
    return _LEADING.sub(_led, marks)


def _led(found: re.Match[str]) -> str:
    mark = found[2]
    return f"{found[1]}{mark}\\" if mark[0].isdigit() else f"{found[1]}\\{mark}"
