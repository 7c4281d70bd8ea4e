"""Parsers: foreign bytes in, plain bytes out, each in a process that can do nothing else."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol


class ParserKind(StrEnum):
    """What is parsed. The value names the program."""

    PAGE = "page"  # HTML → JSON with title and text
    PICTURE = "picture"  # a picture → a line of JSON with its type and size, and a smaller picture
    DOCUMENT = "document"  # PDF and office files → JSON with their text
    SPEECH = "speech"  # a recording → JSON with its words and its length
    SEARCH = "search"  # words → JSON with hits; this one has the network


class NotParsed(Exception):
    """The parser did not give anything usable, in words for a person or the model. Trying again
    with the same bytes gives the same."""


class Parsers(Protocol):
    def why_not(self, kind: ParserKind) -> str:
        """Why nothing of that kind can be parsed here, with the remedy; empty if it can."""
        ...

    async def parse(
        self, kind: ParserKind, source: bytes, options: Mapping[str, object] = ...
    ) -> bytes:
        """What the parser made of the bytes. Raises NotParsed."""
        ...
