"""Words as they are searched for."""

import re

WORD = re.compile(r"\w+")
WORDS_MAX = 8
AROUND = 40
FOUND, END = "\u0001", "\u0002"


def wanted_words(text: str) -> tuple[str, ...]:
    """The words of what a person typed."""
    return tuple(WORD.findall(text))[:WORDS_MAX]


def holds(text: str, words: tuple[str, ...]) -> bool:
    """Whether a text has all of the words, or words that begin so."""
    plain = text.casefold()
    return all(re.search(rf"\b{re.escape(word.casefold())}", plain) for word in words)


def excerpt_of(text: str, words: tuple[str, ...]) -> str:
    """The first place of one of the words, marked, and what stands around it."""
    line = " ".join(text.replace(FOUND, "").replace(END, "").split())
    wanted = "|".join(re.escape(word) for word in words)
    found = re.search(rf"\b(?:{wanted})\w*", line, re.IGNORECASE)
    if found is None:
        return line[: 2 * AROUND]
    begin, end = max(0, found.start() - AROUND), found.end() + 2 * AROUND
    before, behind = line[begin : found.start()], line[found.end() : end]
    return f"{'…' if begin else ''}{before}{FOUND}{found[0]}{END}{behind}"


def passage_of(text: str, words: tuple[str, ...], chars_max: int) -> str:
    """The part of a text around the first of the words, at most so long."""
    line = " ".join(text.split())
    if len(line) <= chars_max:
        return line
    wanted = "|".join(re.escape(word) for word in words)
    found = re.search(rf"\b(?:{wanted})", line, re.IGNORECASE)
    begin = max(0, (found.start() if found else 0) - chars_max // 4)
    end = begin + chars_max
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"
