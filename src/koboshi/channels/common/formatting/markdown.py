"""Markdown as models write it, shown with what every platform has: spans, bullets, fixed width."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from textwrap import dedent

from markdown_it.token import Token

from koboshi.channels.common.formatting.formatted import FormattedText, clean, settled
from koboshi.channels.common.formatting.inline import words, write_inline
from koboshi.channels.common.formatting.parser import parse
from koboshi.channels.common.formatting.table import Cell, table_lines
from koboshi.channels.common.formatting.writer import Block, SpanWriter

RULE = "———"
BULLET = "•"

_BOXES = {"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"}
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}(?!\S)", re.ASCII)
_TAB_CHARS = 4


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """A whole text as it is shown, and where its outermost blocks begin. Without a source that was
    parsed it is the text as it was written, and has no blocks."""

    shown: FormattedText
    blocks: tuple[Block, ...] = ()
    is_parsed: bool = False


def page_of(markdown: str) -> MarkdownPage:
    """Show a Markdown text; it must be clean. What cannot be parsed, or would be empty, is shown
    as it was written."""
    return _kept_page(markdown) if len(markdown) <= _KEPT_CHARS_MAX else _new_page(markdown)


# An answer is looked at when it is split, and again a moment later when it is sent.
_KEPT_CHARS_MAX = 4_096
_KEPT_PAGES_MAX = 64


@lru_cache(_KEPT_PAGES_MAX)
def _kept_page(markdown: str) -> MarkdownPage:
    return _new_page(markdown)


def _new_page(markdown: str) -> MarkdownPage:
    tokens = parse(markdown)
    if tokens is None:
        return MarkdownPage(settled(markdown, ()))
    walk = _Walk(tokens)
    writer = walk.written()
    text = writer.text
    shown = settled(text, writer.spans)
    if not shown.text:
        return MarkdownPage(settled(markdown, ()))
    lead = len(text) - len(text.lstrip())
    blocks = (Block(max(b.begin - lead, 0), b.line, b.follows_heading) for b in writer.blocks)
    return MarkdownPage(shown, tuple(blocks), is_parsed=True)


@dataclass(slots=True)
class _List:
    number: int | None
    outer_indent: str


@dataclass(slots=True)
class _Walk:
    """One walk over the tokens of a text."""

    tokens: Sequence[Token]
    writer: SpanWriter = field(default_factory=SpanWriter)
    lists: list[_List] = field(default_factory=list)
    indents: list[str] = field(default_factory=list)
    rows: list[list[Cell]] = field(default_factory=list)
    table: Token | None = None
    addresses: set[str] | None = None

    def written(self) -> SpanWriter:
        for at, token in enumerate(self.tokens):
            if token.level == 0 and token.map and token.nesting >= 0:
                self.writer.begin_outermost(token.map[0])
            self._take(at, token)
        return self.writer

    def _take(self, at: int, token: Token) -> None:
        match token.type:
            case "inline":
                self._take_inline(at, token)
            case "fence" | "code_block":
                self._take_code(token)
            case "hr":
                self._begin(token)
                self.writer.write(RULE)
            case "definition":
                self._take_definition(token)
            case "blockquote_open" | "blockquote_close":
                self._take_quote(token)
            case "bullet_list_open" | "ordered_list_open":
                number = int(token.attrs.get("start", 1)) if token.tag == "ol" else None
                self.lists.append(_List(number, self.writer.indent))
            case "bullet_list_close" | "ordered_list_close":
                self.writer.indent = self.lists.pop().outer_indent
            case "list_item_open":
                self._take_item(at, token)
            case "heading_close":
                self.writer.end_heading()
            case "table_open":
                self.table, self.rows = token, []
            case "tr_open":
                self.rows.append([])
            case "table_close":
                self._take_table()
            case _:
                pass

    def _begin(self, token: Token) -> None:
        begin, end = token.map or (0, 0)
        self.writer.begin_block(begin, end)

    def _take_inline(self, at: int, token: Token) -> None:
        opening = self.tokens[at - 1]
        if opening.type in {"th_open", "td_open"}:
            inner = SpanWriter()
            write_inline(inner, token, links=False)
            align = str(opening.attrGet("style") or "").removeprefix("text-align:")
            self.rows[-1].append(Cell(" ".join(inner.text.split()), align))
            return
        self._begin(token)
        if opening.type == "heading_open":
            self.writer.open("bold")
            write_inline(self.writer, token)
            self.writer.close()
        else:
            write_inline(self.writer, token)

    def _take_code(self, token: Token) -> None:
        self._begin(token)
        language = _LANGUAGE.match(token.info.strip())
        self.writer.write_pre(shown_code(token.content), language[0] if language else "")

    def _take_definition(self, token: Token) -> None:
        if self.addresses is None:
            children = (child for each in self.tokens for child in each.children or ())
            self.addresses = {str(c.attrGet("href") or c.attrGet("src") or "") for c in children}
        if token.meta["url"] not in self.addresses:
            self._begin(token)
            self.writer.write(words(token.content).strip())

    def _take_quote(self, token: Token) -> None:
        self.writer.stand_apart()
        if token.nesting == 1:
            self.indents.append(self.writer.indent)
            self.writer.indent = ""
            self.writer.open("blockquote")
        else:
            self.writer.close()
            self.writer.indent = self.indents.pop()

    def _take_item(self, at: int, token: Token) -> None:
        inside = self.lists[-1]
        box = _taken_box(self.tokens[at + 1 : at + 3])
        if inside.number is None:
            marker, indent = box or BULLET, "  "
        else:
            marker, indent = f"{inside.number}{token.markup} {box}".rstrip(), "   "
            inside.number += 1
        self.writer.indent = inside.outer_indent
        self.writer.write_marker(marker, (token.map or [0])[0])
        self.writer.indent += indent

    def _take_table(self) -> None:
        if self.table is not None:
            self._begin(self.table)
            self.writer.write_pre(shown_code(table_lines(self.rows)), "")
            self.table = None


def shown_code(code: str) -> str:
    """Lines of code without blank ones around them, moved to the left as far as they can be. A tab
    would be shown as one space."""
    return dedent(clean(code).expandtabs(_TAB_CHARS)).strip()


def _taken_box(tokens: Sequence[Token]) -> str:
    """The box of a task, taken out of the words of its item; nothing for other items."""
    if len(tokens) < 2 or tokens[1].type != "inline" or not tokens[1].children:
        return ""
    first = tokens[1].children[0]
    box = _BOXES.get(first.content[:4], "") if first.type == "text" else ""
    if box:
        first.content = first.content[4:]
    return box
