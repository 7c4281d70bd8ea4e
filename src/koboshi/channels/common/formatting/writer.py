"""Writes a text piece by piece, with the spans in it, and knows where its lines begin.

Whatever separates two pieces is written only when the second one comes, so that a block without
any words leaves no trace.
"""

from dataclasses import dataclass, field

from koboshi.channels.common.formatting.formatted import Span


@dataclass(frozen=True, slots=True)
class Block:
    """Where an outermost block begins: in the text, and in the lines of its source."""

    begin: int
    line: int
    follows_heading: bool


@dataclass(slots=True)
class SpanWriter:
    spans: list[Span] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    indent: str = ""
    _written: list[str] = field(default_factory=list)
    _length: int = 0
    _gap: str = ""
    _line_after: int = 0
    _is_after_marker: bool = False
    _is_snug: bool = False
    _is_after_heading: bool = False
    _outermost_line: int | None = None
    _opened: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All that was written."""
        return "".join(self._written)

    def begin_outermost(self, line: int) -> None:
        """What is written next begins a block that is in no other."""
        self._outermost_line = line

    def begin_block(self, begin: int, end: int) -> None:
        """Begin a block with these lines of the source: behind a blank line if the source has one
        there, else on a line of its own or behind the marker of its item."""
        if self._is_snug:
            self._gap = "\n" + self.indent
        elif begin > self._line_after:
            self._gap = "\n\n" + self.indent
        elif begin == self._line_after or not self._is_after_marker:
            self._gap = "\n" + self.indent
        self._is_snug = self._is_after_marker = False
        self._line_after = end

    def end_heading(self) -> None:
        """What was written last belongs to what follows."""
        self._is_after_heading = True

    def stand_apart(self) -> None:
        """Before or after a block that clients set apart by themselves: no blank line is needed."""
        self._is_snug = True

    def break_line(self) -> None:
        """What is written next begins a line of the same block."""
        self._gap = "\n" + self.indent

    def write_marker(self, marker: str, line: int) -> None:
        """Write what stands before an item of a list."""
        self.begin_block(line, line + 1)
        self.write(marker)
        self._gap = " "
        self._is_after_marker = True

    def write_pre(self, code: str, language: str) -> None:
        """Write lines of code, all of them from the first column."""
        self._gap = "\n"
        self.open("pre")
        self.write(code)
        self.close(language=language)
        self.stand_apart()

    def write(self, text: str) -> None:
        """Write some of the text of a block; nothing if it is empty."""
        if not text:
            return
        if self._gap and self._length:
            self._append(self._gap)
        self._gap = ""
        if self._outermost_line is not None:
            block = Block(self._length, self._outermost_line, self._is_after_heading)
            self.blocks.append(block)
            self._outermost_line = None
        self._is_after_heading = False
        self._append(text)

    def open(self, kind: str, url: str = "") -> None:
        """From here on the text looks so."""
        self._opened.append((kind, self._length, url))

    def close(self, *, language: str = "") -> None:
        """Up to here the text looked as opened last."""
        kind, begin, url = self._opened.pop()
        self.spans.append(Span(kind, begin, self._length, url, language))

    def mark(self) -> int:
        """A place to ask `since` about."""
        return len(self._written)

    def since(self, mark: int) -> str:
        """What was written after the mark."""
        return "".join(self._written[mark:])

    def _append(self, text: str) -> None:
        self._written.append(text)
        self._length += len(text)
