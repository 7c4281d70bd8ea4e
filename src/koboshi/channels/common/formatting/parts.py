"""A long answer in parts, each of them Markdown that can be sent by itself.

The whole text is rendered once and cut as it is shown. A part is the lines of the source it came
from, if these are shown the same when they stand alone; otherwise Markdown is written for it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from koboshi.channels.common.formatting.formatted import (
    FormattedText,
    Ruler,
    clean,
    essence,
    pieces,
    settled,
    units,
    whole_characters,
)
from koboshi.channels.common.formatting.markdown import MarkdownPage, page_of
from koboshi.channels.common.formatting.source import source_of

# What is written for a longer part may not be parsable.
_UNITS_MAX = 8_192
_UNITS_MIN = 2

_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？][”’」』）]*")


def split(markdown: str, units_max: int) -> tuple[str, ...]:
    """Split a Markdown text into parts that are each shown with 1 to `units_max` units.

    It is cut at the end of a block if there is one in the last three quarters of a part, else of a
    line, of a sentence, of a word, else anywhere between two characters. What is formatted where it
    is cut stays so in both parts; all words are kept. What fits is returned as it is; of a text
    without words there are no parts. Raises ValueError if `units_max` is below 2.
    """
    if units_max < _UNITS_MIN:
        raise ValueError(f"a part has at least {_UNITS_MIN} units, not {units_max}")
    cleaned = clean(markdown)
    page = page_of(cleaned)
    if not page.shown.text:
        return ()
    cutter = _Cutter(page, Ruler(page.shown.text), min(units_max, _UNITS_MAX))
    bounds = list(cutter.bounds())
    if len(bounds) == 1:
        return (markdown,)
    lines = cleaned.split("\n")
    first_lines = {block.begin: block.line for block in page.blocks} | {bounds[-1][1]: len(lines)}
    parts: list[str] = []
    for at, piece in enumerate(pieces(page.shown, bounds)):
        following = bounds[at + 1][0] if at + 1 < len(bounds) else bounds[at][1]
        begin, end = first_lines.get(bounds[at][0]), first_lines.get(following)
        own = "\n".join(lines[begin:end]) if begin is not None and end is not None else ""
        # What could not be parsed costs too much to be looked at again.
        parts.append(_part(piece, own, cutter.units_max) if page.is_parsed else source_of(piece))
    return tuple(parts)


def _part(piece: FormattedText, own_lines: str, units_max: int) -> str:
    """Markdown that is shown as the piece is: the lines it came from, or else with as much of the
    formatting as can be written."""
    wanted = essence(settled(piece.text, piece.spans))
    if own_lines:
        shown = page_of(own_lines).shown
        if essence(shown) == wanted and units(shown.text) <= units_max:
            return own_lines
    for written in (source_of(piece), source_of(piece, styles=False)):
        shown = page_of(written).shown
        if essence(shown).text == wanted.text and units(shown.text) <= units_max:
            return written
    return source_of(FormattedText(piece.text))


@dataclass(frozen=True, slots=True)
class _Cutter:
    page: MarkdownPage
    ruler: Ruler
    units_max: int

    def bounds(self) -> Iterator[tuple[int, int]]:
        """Begin and end of each piece; between them is only whitespace."""
        text = self.page.shown.text
        begin = 0
        while begin < len(text):
            end = self._end_from(begin)
            yield begin, end
            begin = self._next_begin(end)

    def _end_from(self, begin: int) -> int:
        text = self.page.shown.text
        limit = self.ruler.char(self.ruler.units(begin) + self.units_max)
        if limit >= len(text):
            return len(text)
        floor = begin + (limit - begin) // 4 + 1
        places = (
            self._block_end(floor, limit),
            text.rfind("\n", floor, limit + 1),
            _sentence_end(text, floor, limit),
            _word_end(text, floor, limit),
        )
        end = next((place for place in places if place >= floor), 0)
        return end or whole_characters(text, begin, limit)

    def _block_end(self, floor: int, limit: int) -> int:
        """The last place where an outermost block ends, not behind its heading; else the last blank
        line that is not in code. -1 if there is neither."""
        text, blocks = self.page.shown.text, self.page.blocks
        at = bisect_left(blocks, limit + 3, key=lambda block: block.begin)
        while at > 0 and blocks[at - 1].begin > floor:
            at -= 1
            end = blocks[at].begin
            while end > floor and text[end - 1] == "\n":
                end -= 1
            if end <= limit and not blocks[at].follows_heading:
                return end
        end = text.rfind("\n\n", floor, limit + 2)
        return -1 if self._is_in_code(end) else end

    def _next_begin(self, end: int) -> int:
        """Where the next piece begins: at a word, or in code before its indentation."""
        text = self.page.shown.text
        begin = end
        while begin < len(text) and text[begin].isspace():
            begin += 1
        line = text.rfind("\n", end, begin) + 1
        is_indented = line > 0 and begin - line < self.units_max // 4 and self._is_in_code(end)
        return line if is_indented else begin

    def _is_in_code(self, place: int) -> bool:
        spans = self.page.shown.spans
        at = bisect_left(spans, place, key=lambda span: span.begin) - 1
        return at >= 0 and spans[at].kind == "pre" and place < spans[at].end


def _sentence_end(text: str, floor: int, limit: int) -> int:
    ends = [found.end() for found in _SENTENCE_END.finditer(text, floor, limit + 1)]
    return max((end for end in ends if end <= limit), default=-1)


def _word_end(text: str, floor: int, limit: int) -> int:
    while limit >= floor and not text[limit].isspace():
        limit -= 1
    return limit if limit >= floor else -1
