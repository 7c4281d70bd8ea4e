"""Splitting a text into parts that a platform takes."""


def split_text(text: str, limit: int) -> tuple[str, ...]:
    """Split `text` into parts of at most `limit` characters, at paragraph ends where possible.

    Joining the parts gives `text` back. Raises ValueError if `limit` is below 100.
    """
    if limit < 100:
        raise ValueError("parts of less than 100 characters cannot be read")
    parts: list[str] = []
    begin = 0
    while len(text) - begin > limit:
        end = _good_end(text, begin, begin + limit)
        parts.append(text[begin:end])
        begin = end
    parts.append(text[begin:])
    return tuple(parts)


def _good_end(text: str, begin: int, end: int) -> int:
    """The best place in the second half of `text[begin:end]` to end a part."""
    half = begin + (end - begin) // 2
    for mark in ("\n\n", "\n", ". ", " "):
        place = text.rfind(mark, half, end)
        if place >= 0:
            return place + len(mark)
    return end
