"""What one Discord bot is told."""

import base64
import binascii
from dataclasses import dataclass, field
from pathlib import Path

from koboshi.domain.ids import ChannelName


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordOptions:
    name: ChannelName
    token: str = field(repr=False)
    api_base: str
    """With its version: `https://discord.com/api/v10`."""
    ambiguous: str
    """What becomes of a send of unknown outcome: probe, label or hold."""
    per_second: float
    home: Path
    message_chars_max: int = 64_000
    file_bytes_max: int = 20_000_000
    commands: tuple[tuple[str, str], ...] = ()
    """What people may write, and what it does."""
    people: tuple[str, ...] = ()
    """Whose private messages are looked for after a long absence."""

    @property
    def account(self) -> str:
        """The bot's id, which is the first part of its token in base 64. Empty for what is no
        token: nothing of a secret that was pasted wrongly may be stored."""
        first, dot, _ = self.token.partition(".")
        try:
            number = base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
        except (binascii.Error, ValueError):
            return ""
        return number if dot and number.isdecimal() else ""
