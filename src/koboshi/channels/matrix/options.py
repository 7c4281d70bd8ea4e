"""What one account of Matrix is told."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Watermarks


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixOptions:
    name: ChannelName
    homeserver: str
    user: str
    """Our own id: `@bot:example.org`."""
    token: str = field(repr=False)
    ambiguous: str
    """What becomes of a send of unknown outcome: probe, label or hold."""
    per_second: float
    home: Path
    watermarks: Watermarks
    is_allowed: Callable[[str], Awaitable[bool]]
    """Whether a person may use the gateway, and so invite us."""
    encryption: bool = False
    """Whether rooms may be encrypted. Keys are kept in the home then."""
    message_chars_max: int = 64_000
    file_bytes_max: int = 20_000_000
    commands: tuple[str, ...] = ()
    """The commands that people may write, by name."""

    @property
    def account(self) -> str:
        return self.user
