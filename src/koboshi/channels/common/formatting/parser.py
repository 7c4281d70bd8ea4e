"""The Markdown parser, set up for what models write, and when it is not asked at all.

Markdown-it is loaded with the channel and not by its first use: a gateway whose descriptors have
run out could not load it then, and its first answer depends on it.
"""

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, reference
from markdown_it.token import Token

# Quotes count once, lists twice. The parser drops what is deeper, so such a text is not parsed.
NESTING_MAX = 24

# What the parser takes for a character of each sort, in microseconds of a slow machine, and how
# much of that a text may take. A hundred thousand characters of an ordinary answer take half.
_CHAR_COSTS = {"\n": 45, "[": 45, "]": 10} | dict.fromkeys("*_~`<&\\|!", 15)
_COST_MAX = 700_000
# A line is looked at again for each quote and list it is in, and for each it may go on with.
_CONTAINERS = re.compile(r"^[ \t]*+(?:(?:>|[-+*](?=[ \t])|[0-9]{1,9}[.)])[ \t]*+)++", re.MULTILINE)
_CONTAINER_COST = 20
_CONTAINER_LINE_COST = 5

_DEFINITION = re.compile(r"\[[^\]\n]+\]:[ \t]*<?(https?://[^\s<>]+)")


def parse(markdown: str) -> list[Token] | None:
    """The tokens of a text; None if it is too large or too deeply nested to be parsed."""
    if not is_parsable(markdown):
        return None
    tokens = _parser().parse(markdown)
    if any(token.level >= NESTING_MAX - 1 for token in tokens):
        return None
    return tokens


def is_parsable(markdown: str) -> bool:
    """Whether parsing the text takes well under a second."""
    if len(markdown) > _COST_MAX:
        return False
    cost = len(markdown) + sum(markdown.count(char) * cost for char, cost in _CHAR_COSTS.items())
    if cost > _COST_MAX:
        return False
    depths = [len("".join(found[0].split())) for found in _CONTAINERS.finditer(markdown)]
    deepest = min(max(depths, default=0), NESTING_MAX)
    cost += sum(min(depth, NESTING_MAX) for depth in depths) * _CONTAINER_COST
    return cost + markdown.count("\n") * deepest * _CONTAINER_LINE_COST <= _COST_MAX


@cache
def _parser() -> MarkdownIt:
    class LinksAsWritten(MarkdownIt):
        """Every link is a link: what becomes of its address is decided where it is shown."""

        def validateLink(self, url: str) -> bool:  # noqa: N802, ARG002
            return True

        def normalizeLink(self, url: str) -> str:  # noqa: N802
            return url

        def normalizeLinkText(self, link: str) -> str:  # noqa: N802
            return link

    parser = LinksAsWritten("commonmark", {"maxNesting": NESTING_MAX})
    parser.enable(["strikethrough", "table"]).disable(["html_block", "html_inline"])
    parser.block.ruler.at("reference", _definition)
    return parser


def _definition(state: StateBlock, line: int, line_end: int, silent: bool) -> bool:
    """Definitions of web addresses only, and they leave a token: the renderer decides
    whether the definition is shown. Anything else, as in `[Note]: this`, is words."""
    begin = state.bMarks[line] + state.tShift[line]
    found = _DEFINITION.match(state.src, begin, state.eMarks[line])
    if found is None or not reference(state, line, line_end, silent):
        return False
    if not silent:
        token = state.push("definition", "", 0)
        token.map = [line, state.line]
        token.content = state.getLines(line, state.line, state.blkIndent, False)
        token.meta = {"url": found[1]}
    return True
