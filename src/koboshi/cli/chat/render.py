"""What a person at a terminal sees of a chat: events in, words out."""

import re
from dataclasses import dataclass

from koboshi.channels.web.chat_events import (
    DeliveryLine,
    EntryLine,
    Line,
    MessageLine,
    ShownCall,
    StepLine,
    TurnLine,
)
from koboshi.domain.files import size_words
from koboshi.domain.phrases import DUPLICATE_LABEL, excerpt

ASIDE_CHARS_MAX = 100

# All controls but newline and tab; and the marks that turn or hide the text around them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)


@dataclass(frozen=True, slots=True)
class ScreenLines:
    """A line or more for the screen. An aside is not part of the conversation itself."""

    text: str
    is_aside: bool = False


def render(kind: str, line: Line, url: str = "") -> tuple[ScreenLines, ...]:
    """What to show for an event of the gateway at `url`, safe to print; nothing for most of
    them."""
    match line:
        case DeliveryLine(text=text) if kind == "progress":
            return (_aside(text),)
        case DeliveryLine():
            return (ScreenLines(safe(_delivery(kind, line, url))),)
        case MessageLine(text=text):
            return (_aside(f"> {text}"),)
        case StepLine():
            return _step(line)
        case EntryLine(event="dropped", message=message, words=words, reason=reason):
            return (_aside(f"{message} was not answered: {words or reason}"),)
        case TurnLine(event="resumed" | "parked", words=words) if words:
            return (_aside(words),)
        case _:
            return ()


def safe(text: str) -> str:
    """The text without anything that a terminal would obey: what would be is shown instead."""
    return _UNSAFE.sub(_picture, text.replace("\r\n", "\n"))


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # the symbols for control codes
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def _delivery(kind: str, line: DeliveryLine, url: str) -> str:
    text = (DUPLICATE_LABEL if line.may_be_duplicate else "") + _words(line).rstrip("\n")
    if line.file is not None:
        file, address = line.file, url.rstrip("/") + line.file.address
        text += f"\n[file: {file.name}, {size_words(file.size)}: {address}]"
    if kind != "question":
        return text
    choices = [f"  {number}) {each.label}" for number, each in enumerate(line.choices, start=1)]
    return "\n".join([text, *choices])


def _words(line: DeliveryLine) -> str:
    """The text. What a person decides about has a bar before each line: nothing in it can pass for
    the words around it."""
    if line.literal is None:
        return line.text
    begin, end = line.literal
    literal = line.text[begin:end]
    barred = "\n".join(f"  │ {each}" for each in literal.split("\n")) if literal else ""
    return line.text[:begin] + barred + line.text[end:]


def _step(line: StepLine) -> tuple[ScreenLines, ...]:
    match line.kind:
        case "reply":
            words = [_aside(line.text)] if line.text.strip() else []
            return (*words, *(_call(call) for call in line.calls))
        case "result":
            return (_aside(f"  ← {line.status}: {line.text}"),)
        case "note":
            return (_aside(f"  {line.text}"),)
        case _:
            return ()


def _call(call: ShownCall) -> ScreenLines:
    return _aside(f"  → {call.tool} {call.arguments}")


def _aside(text: str) -> ScreenLines:
    indent = " " * (len(text) - len(text.lstrip(" ")))
    return ScreenLines(safe(indent + excerpt(text, ASIDE_CHARS_MAX)), is_aside=True)
