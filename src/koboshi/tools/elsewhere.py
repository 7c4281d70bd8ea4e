"""Looking through what a person said with another gateway before its home moved in."""

from dataclasses import dataclass
from pathlib import Path

from koboshi.domain.finding import wanted_words
from koboshi.domain.memory import Scope, ScopeKind
from koboshi.domain.talk_elsewhere import (
    FILE_BYTES_MAX,
    FOLDER,
    GATEWAYS,
    SaidElsewhere,
    file_of,
    passages_in,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TalksElsewhere:
    home: Path

    def is_there(self) -> bool:
        return (self.home / FOLDER).is_dir()

    def find(self, scope: Scope, query: str, limit: int) -> tuple[SaidElsewhere, ...]:
        """The newest passages of the person that have all the words. A group has none, and no
        person has those of another."""
        words = wanted_words(query)
        if scope.kind is not ScopeKind.PERSON or not words:
            return ()
        found: list[SaidElsewhere] = []
        for source, gateway in GATEWAYS.items():
            content = _read(self.home / file_of(source, scope.channel, scope.name))
            found += passages_in(content, gateway, words, limit)
        return tuple(sorted(found, key=lambda each: -each.at_ms)[:limit])


def _read(file: Path) -> bytes:
    """All of it, within its bound; nothing if it is not there."""
    try:
        with open(file, "rb") as stream:
            return stream.read(2 * FILE_BYTES_MAX)
    except OSError:
        return b""
