"""Where words come from and go to."""

from dataclasses import dataclass

from koboshi.domain.ids import ChannelName


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A place on a platform. Never optional, never copied: a session owns it."""

    channel: ChannelName
    chat: str
    thread: str = ""

    def __str__(self) -> str:
        return f"{self.channel}/{self.chat}" + (f"/{self.thread}" if self.thread else "")
