"""Text from outside, made harmless to look at.

Every pattern here is linear: what a program prints can be a megabyte on one line, made to hurt.
"""

import re

# ECMA-48, in the order of trial: control sequences; strings with their end (no line break inside,
# except in device control strings, which carry pictures); what is left of either, with the byte
# that names it; and single escapes. A string without an end loses only its introduction: the
# rest of an output cannot be hidden behind it.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    r"|(?:\x1bP|\x90)[^\x07\x18\x1a\x1b\x90\x98\x9c-\x9f]*+(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b[\]X^_]|[\x98\x9d-\x9f])[^\n\x07\x18\x1a\x1b\x90\x98\x9c-\x9f]*+(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*+[0-~]?"
)
_LINE_ENDS = re.compile(r"\r?+\n|[\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x07\x0e-\x1f\x7f-\x9f]")
# Marks that turn the direction of writing, or are not seen at all: a text can be smuggled in them.
HIDDEN_CLASS = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(f"[{HIDDEN_CLASS}]")
_UNSEEN = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{HIDDEN_CLASS}]")

_NOTE_CHARS = 60
_BLANK_PATTERN = "\u2800"  # a letter of Braille without a dot


def plain(text: str) -> str:
    """What a person would have seen of a program's output: no escapes, no control characters, no
    marks that hide or turn text around, and of a line that was written over only the last form.

    Tabs and line feeds stay. Doing it again changes nothing.
    """
    text = _CONTROLS.sub("", _LINE_ENDS.sub("\n", _ESCAPES.sub("", text)))
    text = _HIDDEN.sub("", text)
    if "\r" in text or "\b" in text:
        text = "\n".join(_last_form(line) for line in text.split("\n"))
    return text


def visible(text: str) -> str:
    """The text with everything that is not seen written out, as `<U+202E>`: for where the exact
    text matters. Tabs and line feeds stay."""
    return _UNSEEN.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def exactly(text: str) -> str:
    """The text letter by letter: whatever is not seen, or only as a gap like any other, is written
    as its number, `\\u202e`. Spaces, tabs and line feeds stay. For what a person decides about."""
    return "".join(_written_out(char) if _is_unseen(char) else char for char in text)


def unseen_count(text: str) -> int:
    """How many characters `exactly` writes out."""
    return sum(_is_unseen(char) for char in text)


def _is_unseen(char: str) -> bool:
    if " " <= char <= "~" or char in "\n\t":
        return False
    # Not printable are controls, direction marks, separators, private and unassigned ones.
    return not char.isprintable() or char == _BLANK_PATTERN or _HIDDEN.match(char) is not None


def _written_out(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def head_and_tail(text: str, limit: int) -> str:
    """A long text shortened in the middle, saying how much is missing; where a line ends nearby, it
    is cut there. At most `limit` characters, and a line for the note if that is very little."""
    if len(text) <= limit:
        return text
    half = max((limit - _NOTE_CHARS) // 2, 1)
    head, tail = text[:half], text[-half:]
    line_end = head.rfind("\n") + 1
    head = head[:line_end] if line_end > half // 2 else head
    line_begin = tail.find("\n") + 1
    tail = tail[line_begin:] if line_begin < half // 2 else tail
    missing = len(text) - len(head) - len(tail)
    gap = "" if head.endswith("\n") else "\n"
    return f"{head}{gap}… {missing} characters left out …\n{tail}"


def _last_form(line: str) -> str:
    """A line after its carriage returns and backspaces have done their work."""
    # A carriage return with nothing behind it has not overwritten anything yet.
    line = next((form for form in reversed(line.split("\r")) if form.strip("\b")), "")
    if "\b" not in line:
        return line
    written: list[str] = []
    at = 0
    for char in line:
        if char == "\b":
            at = max(0, at - 1)
            continue
        written[at : at + 1] = char
        at += 1
    return "".join(written)
