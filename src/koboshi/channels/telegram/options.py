"""What one bot is told."""

from dataclasses import dataclass, field
from pathlib import Path

from koboshi.domain.ids import ChannelName


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramOptions:
    name: ChannelName
    token: str = field(repr=False)
    api_base: str
    ambiguous: str
    """What becomes of a send of unknown outcome: probe, label or hold."""
    per_second: float
    home: Path
    message_chars_max: int = 64_000
    file_bytes_max: int = 20_000_000
    commands: tuple[tuple[str, str], ...] = ()
    """What people may write, and what it does."""
    webhook_url: str = ""
    webhook_host: str = "127.0.0.1"
    webhook_port: int = 8443

    @property
    def account(self) -> str:
        """The bot's id, which is the first part of its token. Empty for what is no token: nothing
        of a secret that was pasted wrongly may be stored."""
        number, colon, _ = self.token.partition(":")
        return number if colon and number.isascii() and number.isdecimal() else ""
