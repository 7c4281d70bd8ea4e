"""What people sent, made fit to be kept. Pure."""

import re

DELETED = "[koboshi] The person deleted this message before it was read. Do not act on it."
"""What the agent reads in place of a message that waited, and was taken back."""

_MEDIA_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}")


def fitting(text: str, chars_max: int) -> str:
    """The words, cut if they are too long; then they say so."""
    if len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}\n[koboshi] The message was longer; {len(text)} characters in all."


def media_type(told: str) -> str:
    """The kind that its sender gives a file, if it can be one; else empty."""
    kind = told.partition(";")[0].strip()
    return kind if _MEDIA_TYPE.fullmatch(kind) else ""
