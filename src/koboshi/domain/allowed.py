"""Commands that the owner allows by their first words. Pure."""

import re

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./ -]+")
"""Letters that no shell does anything with."""


def is_allowed(command: str, allow: tuple[str, ...]) -> bool:
    """Whether a command is one that the owner has allowed: a single command without any letter that
    a shell does something with, whose first words are those of an entry."""
    if _PLAIN.fullmatch(command) is None:
        return False
    words = command.split()
    return any(words[: len(entry)] == entry for entry in map(str.split, allow) if entry)


def complaint_about_entry(entry: str) -> str | None:
    """Why an entry of `allow` can never fit a command; None if it can."""
    if not entry.strip():
        return "must not be empty"
    if _PLAIN.fullmatch(entry) is None:
        return f'"{entry}" has letters that a shell does something with; only plain words can fit'
    return None
