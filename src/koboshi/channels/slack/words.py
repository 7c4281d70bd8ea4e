"""Words as Slack sends them, made plain: its own marks for people, places and links. Pure."""

import re

_MARK = re.compile(r"<([@#!]?)([^<>|\n]{1,2048})(?:\|([^<>\n]{0,2048}))?>")
_ESCAPES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
_ESCAPED = re.compile(r"&(?:lt|gt|amp);")


def mention_of(user: str) -> str:
    return f"<@{user}>"


def names(text: str, user: str) -> bool:
    """Whether a text names a person or the app, with a label or without."""
    return f"<@{user}>" in text or f"<@{user}|" in text


def without_name(text: str, user: str) -> str:
    """The words without our name at their beginning or end, which is how we are called. Words that
    are nothing but our name stay as they are."""
    name = rf"<@{re.escape(user)}(?:\|[^<>\n]*)?>"
    words = re.sub(rf"^\s*{name}[\s,:]*", "", text)
    words = re.sub(rf"\s+{name}\s*$", "", words)
    return words if words.strip() else text


def plain_words(text: str) -> str:
    """The text as people read it: links with their address, people and channels by their name
    where Slack gives it, else by their id."""
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], _MARK.sub(_plain, text))


def escaped(text: str) -> str:
    """A text that Slack shows as it is, with no mark in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(found: re.Match[str]) -> str:
    sign, target, label = found[1], found[2], found[3] or ""
    match sign:
        case "@" | "#":
            return f"{sign}{label or target}"
        case "!":
            return label or "@" + target.partition("^")[0]
        case _:
            address = target.removeprefix("mailto:")
            return address if not label or label == address else f"{label} ({target})"
