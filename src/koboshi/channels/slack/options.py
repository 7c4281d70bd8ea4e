"""What one app is told."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from koboshi.domain.ids import ChannelName

_BOT_TOKEN = re.compile(r"xoxb-([0-9]{4,20})-([0-9]{4,20})-[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackOptions:
    name: ChannelName
    token: str = field(repr=False)
    """The bot token, `xoxb-…`: it sends, and reads the history."""
    app_token: str = field(default="", repr=False)
    """The app-level token, `xapp-…`, of Socket Mode; empty where Slack calls us."""
    signing_secret: str = field(default="", repr=False)
    """By which calls of Slack are known; empty where we connect to it."""
    api_base: str = "https://slack.com/api"
    ambiguous: str = "probe"
    per_second: float = 0.0
    home: Path
    message_chars_max: int = 64_000
    file_bytes_max: int = 20_000_000
    commands: frozenset[str] = frozenset()
    webhook_host: str = "127.0.0.1"
    webhook_port: int = 8_444

    @property
    def account(self) -> str:
        """The workspace's number and the bot's, which stand in its token. Empty for what does not
        look like one: nothing of a secret that was pasted wrongly may be stored."""
        return account_of(self.token)

    @property
    def is_called(self) -> bool:
        """Whether Slack calls us, instead of our connecting to it."""
        return bool(self.signing_secret)


def account_of(token: str) -> str:
    """The workspace's number and the bot's of a bot token; empty if it is none."""
    found = _BOT_TOKEN.fullmatch(token)
    return f"{found[1]}-{found[2]}" if found else ""
