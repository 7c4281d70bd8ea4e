"""What a person said with another gateway before: one file of the home for each person and gateway,
written when that gateway's home moved in, and only read afterwards. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from koboshi.domain.finding import holds, passage_of
from koboshi.domain.ids import ChannelName

FOLDER = "transcripts"
GATEWAYS: Mapping[str, str] = {"hermes": "Hermes", "openclaw": "OpenClaw"}
"""Those whose homes can move in, and their names."""
FILE_BYTES_MAX = 16_000_000
"""Of one person; what is older stays where it was."""
SAID_CHARS_MAX = 8_000
PASSAGE_CHARS = 600
TIMES_END_MS = 10**14
_EMPTY_LINE_BYTES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidElsewhere:
    """One message there."""

    gateway: str
    """By its name."""
    at_ms: int
    is_persons: bool
    text: str

    @property
    def cost(self) -> int:
        """About as many bytes as its line has."""
        return _EMPTY_LINE_BYTES + len(self.text.encode())


def file_of(source: str, channel: ChannelName, person: str) -> str:
    """Where the messages of a person are, below the home."""
    whose = blake2b(f"{channel}\n{person}".encode("utf-8", "replace"), digest_size=12).hexdigest()
    return f"{FOLDER}/{source}-{whose}.jsonl"


def files_of(channel: ChannelName, person: str) -> tuple[str, ...]:
    """Likewise, of every gateway."""
    return tuple(file_of(source, channel, person) for source in GATEWAYS)


def is_time(at_ms: float) -> bool:
    """Whether it is a time that a calendar has."""
    return 0 < at_ms < TIMES_END_MS


def lines_of(said: Iterable[SaidElsewhere]) -> str:
    """The file with these messages, oldest first."""
    return "".join(
        json.dumps([each.at_ms, each.is_persons, each.text[:SAID_CHARS_MAX]], ensure_ascii=False)
        + "\n"
        for each in sorted(said, key=lambda each: each.at_ms)
    )


def passages_in(
    content: bytes, gateway: str, words: tuple[str, ...], limit: int
) -> tuple[SaidElsewhere, ...]:
    """The newest messages of a file that have all of the words, each cut to a passage. A line that
    is none of ours is passed over."""
    found: list[SaidElsewhere] = []
    for line in reversed(content.split(b"\n")):
        if len(found) == limit:
            break
        match _read(line):
            case [int(at_ms), bool(is_persons), str(text)] if is_time(at_ms) and holds(text, words):
                passage = passage_of(text, words, PASSAGE_CHARS)
                said = SaidElsewhere(
                    gateway=gateway, at_ms=at_ms, is_persons=is_persons, text=passage
                )
                found.append(said)
            case _:
                pass
    return tuple(found)


def _read(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
