"""Server-sent events, read from pieces that may begin and end anywhere."""

import re

LINE_BYTES_MAX = 32_000_000
"""Of one event. A stream that has no end of a line in it must not fill the memory."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineTooLong(Exception):
    """An event is longer than anything that is kept."""


class EventReader:
    """Gives the body of each event as soon as it has come. Everything but bodies is passed over:
    comments that keep the connection alive, names, ids. An event without its end is none, and
    neither is one without a body."""

    def __init__(self, bytes_max: int = LINE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._line: list[bytes] = []
        self._body: list[bytes] = []
        self._size = 0
        self._is_first = True
        self._ended_with_return = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The bodies of the events that end in this piece. Raises LineTooLong."""
        if self._ended_with_return and piece.startswith(b"\n"):
            piece = piece[1:]
            self._ended_with_return = False
        if not piece:
            return []
        self._ended_with_return = piece.endswith(b"\r")
        *lines, rest = _LINE_END.split(piece)
        bodies: list[bytes] = []
        for line in lines:
            if self._line:
                line = b"".join([*self._line, line])
                self._line.clear()
            self._take(line, bodies)
        if rest:
            self._grow(len(rest))
            self._line.append(rest)
        return bodies

    def _take(self, line: bytes, bodies: list[bytes]) -> None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.startswith(b"data:"):
            self._grow(len(line))
            self._body.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif line == b"data":
            self._body.append(b"")
        elif not line:
            # Some begin a stream with an empty one, to be heard at all; by the standard it is none.
            if any(self._body):
                bodies.append(b"\n".join(self._body))
            self._body.clear()
            self._size = 0

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._bytes_max:
            raise LineTooLong
