"""Formatted text: a text, and spans that say which stretch looks how, counted in characters.

What the strictest platform demands of them is made true in one place, `settled`. A `Ruler` counts
in UTF-16 code units, as Telegram and most clients do.
"""

import codecs
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

STYLES = frozenset({"bold", "italic", "strikethrough"})
CODES = frozenset({"code", "pre"})
BAR = "> "
UTF_16 = codecs.lookup("utf-16-le").name
"""What most platforms count in. It is loaded here: without descriptors its first use could not."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LINE_ENDS = re.compile(r"\r\n?")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_ASTRAL = re.compile(r"[\U00010000-\U0010ffff]")
# What may not stand first in a part: marks that change the character before them.
_JOINED = re.compile(
    r"[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u093a-\u094f"
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u200d\u20d0-\u20ff\u3099\u309a"
    r"\ufe00-\ufe0f\ufe20-\ufe2f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
)
_REGIONALS = re.compile(r"[\U0001f1e6-\U0001f1ff]+\Z")
_JOINED_CHARS_MAX = 64


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text, in characters, and how it looks."""

    kind: str
    begin: int
    end: int
    url: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class FormattedText:
    """A text and its spans: nested or apart, sorted by their begin, the outer one first."""

    text: str
    spans: tuple[Span, ...] = ()


class Ruler:
    """Converts between characters and UTF-16 code units of one text."""

    def __init__(self, text: str) -> None:
        self._chars = len(text)
        self._astral = [found.start() for found in _ASTRAL.finditer(text)]

    def units(self, char: int) -> int:
        """How many units stand before this character."""
        return char + bisect_left(self._astral, char)

    def char(self, units: int) -> int:
        """The last place with at most so many units before it; never inside a surrogate pair."""
        if not self._astral:
            return min(units, self._chars)
        places = range(self._chars + 1)
        return bisect_right(places, units, key=self.units) - 1


def units(text: str) -> int:
    """The length of the text in UTF-16 code units."""
    return len(text) + len(_ASTRAL.findall(text))


def clean(text: str) -> str:
    """The text in valid Unicode, with line feeds for line ends and no other control characters but
    tabs. Surrogates that make a pair become its character, others U+FFFD."""
    if _SURROGATES.search(text):
        text = text.encode(UTF_16, "surrogatepass").decode(UTF_16, "replace")
    return _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))


def literal_block(text: str, begin: int, end: int) -> FormattedText:
    """The text as it is, with the characters from `begin` to `end` as a block of code. The text
    must hold nothing that `clean` would take out, and must not begin with whitespace: then every
    character stays where it is."""
    block = _trimmed(Span("pre", begin, end), text)
    return FormattedText(text.rstrip(), (block,) if block.begin < block.end else ())


def barred(shown: FormattedText) -> str:
    """The words for readers without formatting, with a bar before each line of code: else it could
    pass for the words around it."""
    text = shown.text
    for span in sorted(shown.spans, key=lambda each: each.begin, reverse=True):
        if span.kind == "pre":
            block = text[span.begin : span.end].replace("\n", f"\n{BAR}")
            text = f"{text[: span.begin]}{BAR}{block}{text[span.end :]}"
    return text


def clipped(shown: FormattedText, units_max: int) -> FormattedText:
    """The text, cut to at most `units_max` units with "…" at its end if it was longer.

    Raises ValueError if `units_max` is below 1.
    """
    if units_max < 1:
        raise ValueError(f"a text cannot be cut to {units_max} units")
    ruler = Ruler(shown.text)
    if ruler.units(len(shown.text)) <= units_max:
        return shown
    end = whole_characters(shown.text, 0, ruler.char(units_max - 1))
    kept = shown.text[:end].rstrip()
    # A shorter span may end with whitespace now, and an outer one with it.
    return settled(
        f"{kept}…", [_moved(s, 0, len(kept)) for s in shown.spans if s.begin < len(kept)]
    )


def prefixed(prefix: str, shown: FormattedText) -> FormattedText:
    """The same behind some words without any formatting."""
    by = len(prefix)
    spans = (replace(span, begin=span.begin + by, end=span.end + by) for span in shown.spans)
    return FormattedText(prefix + shown.text, tuple(spans))


def settled(text: str, spans: Iterable[Span]) -> FormattedText:
    """The text without whitespace around it, and of the spans what every platform accepts.

    Code holds and is held by nothing but a quote: styles are interrupted for it, and in a link the
    link wins. Quotes and styles hold none of their own kind. No span is empty, begins or ends with
    whitespace. The spans given must be nested or apart.
    """
    lead = len(text) - len(text.lstrip())
    text = text.strip()
    given = [_moved(span, -lead, len(text)) for span in spans]
    links = _begins_and_ends(given, {"text_link"})
    codes = [s for s in given if s.kind in CODES and not _is_within(s, links)]
    holes = _begins_and_ends(codes, CODES)
    others = [s for s in given if s.kind not in CODES]
    pieces = [piece for s in others for piece in (_around(s, holes) if s.kind in STYLES else (s,))]
    trimmed = [_trimmed(span, text) for span in (*codes, *pieces)]
    trimmed.sort(key=lambda span: (span.begin, -span.end, _RANK[span.kind]))
    kept: list[Span] = []
    ends: dict[str, int] = {}
    for span in trimmed:
        if span.begin < span.end and span.begin >= ends.get(span.kind, 0):
            ends[span.kind] = span.end
            kept.append(span)
    return FormattedText(text, tuple(kept))


def pieces(shown: FormattedText, bounds: Iterable[tuple[int, int]]) -> Iterator[FormattedText]:
    """The stretches of a text between these bounds, which must be in order and apart."""
    coming = iter((*shown.spans, Span("", len(shown.text) + 1, len(shown.text) + 1)))
    upcoming = next(coming)
    open_spans: list[Span] = []
    for begin, end in bounds:
        while upcoming.begin < end:
            open_spans.append(upcoming)
            upcoming = next(coming)
        open_spans = [span for span in open_spans if span.end > begin]
        text = shown.text[begin:end]
        inside = (_moved(span, -begin, end - begin) for span in open_spans)
        yield FormattedText(text, tuple(_trimmed(span, text) for span in inside))


def essence(shown: FormattedText) -> FormattedText:
    """The same without any whitespace: what two renderings of the same words have in common."""
    seen = [0, *accumulate(not char.isspace() for char in shown.text)]
    spans = (replace(span, begin=seen[span.begin], end=seen[span.end]) for span in shown.spans)
    return FormattedText(
        "".join(shown.text.split()), tuple(span for span in spans if span.begin < span.end)
    )


def whole_characters(text: str, begin: int, end: int) -> int:
    """The last place from `begin` to `end` that does not part a character from its marks; `end`
    itself if there is none nearby."""
    if end >= len(text):
        return end
    place = end
    while place > max(begin, end - _JOINED_CHARS_MAX):
        joined = _JOINED.match(text, place) or text[place - 1] == "\u200d"
        regionals = _REGIONALS.search(text, max(begin, place - _JOINED_CHARS_MAX), place)
        is_half_country = (
            regionals is not None and len(regionals[0]) % 2 == 1 and _is_regional(text[place])
        )
        if not joined and not is_half_country:
            return place
        place -= 1
    return end


_RANK = {"blockquote": 0, "pre": 1, "code": 1, "text_link": 2} | dict.fromkeys(STYLES, 3)


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _moved(span: Span, by: int, end: int) -> Span:
    """The span after its text was moved and cut."""
    return replace(
        span, begin=min(max(span.begin + by, 0), end), end=min(max(span.end + by, 0), end)
    )


def _trimmed(span: Span, text: str) -> Span:
    begin, end = span.begin, span.end
    while begin < end and text[begin].isspace():
        begin += 1
    while begin < end and text[end - 1].isspace():
        end -= 1
    return replace(span, begin=begin, end=end)


def _begins_and_ends(spans: Iterable[Span], kinds: Iterable[str]) -> tuple[list[int], list[int]]:
    found = sorted((span.begin, span.end) for span in spans if span.kind in kinds)
    return [begin for begin, _ in found], [end for _, end in found]


def _is_within(span: Span, holders: tuple[list[int], list[int]]) -> bool:
    at = bisect_right(holders[0], span.begin) - 1
    return at >= 0 and span.begin < holders[1][at]


def _around(span: Span, holes: tuple[list[int], list[int]]) -> Iterator[Span]:
    """What is left of a span beside the holes in it."""
    begins, ends = holes
    begin = span.begin
    for at in range(bisect_left(begins, span.begin), bisect_left(begins, span.end)):
        yield replace(span, begin=begin, end=max(begin, begins[at]))
        begin = max(begin, ends[at])
    yield replace(span, begin=min(begin, span.end))
