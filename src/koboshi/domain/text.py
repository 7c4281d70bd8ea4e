"""Text from outside, made harmless to look at."""

import re

# ECMA-48: control sequences, operating system commands and other strings, single escapes, and
# their 8-bit forms.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Marks that turn the direction of writing, or are not seen at all.
_HIDDEN = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]")
_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n)")


def plain(text: str) -> str:
    """What a person would have seen of a program's output: no escapes, no control characters, no
    marks that hide or turn text around, and of a line that was written over only the last form."""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n")
    text = _OVERWRITTEN.sub("", text)
    return _HIDDEN.sub("", _CONTROLS.sub("", text))


def head_and_tail(text: str, limit: int) -> str:
    """A long text shortened in the middle, at line ends, saying how much is missing."""
    if len(text) <= limit:
        return text
    half = max(limit // 2, 1)
    head, tail = text[:half], text[-half:]
    head = head[: head.rfind("\n") + 1] or head
    tail = tail[tail.find("\n") + 1 :] or tail
    missing = len(text) - len(head) - len(tail)
    return f"{head}… {missing} characters left out …\n{tail}"
