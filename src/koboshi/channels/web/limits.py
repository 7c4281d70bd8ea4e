"""Every bound of the web channel."""

from dataclasses import dataclass

from koboshi.channels.common.http_limits import HttpLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class WebLimits:
    # What comes in.
    body_bytes_max: int = 1_000_000
    message_chars_max: int = 64_000
    route_chars_max: int = 256
    """A chat, a thread, a sender."""
    key_chars_max: int = 200
    files_max: int = 10
    """Files of one message."""
    file_bytes_max: int = 20_000_000
    file_s: float = 120.0
    """To receive one."""
    body_s: float = 10.0
    """To receive a body."""
    store_s: float = 10.0
    """To have it stored; after that the client is told that the outcome is unknown."""

    # What goes out.
    text_max: int = 16_000
    page_lines: int = 100
    """Journal lines that are read at once for one follower."""
    recent_lines: int = 200
    """How far back a follower without a position begins."""
    keep_alive_s: float = 15.0
    hint_s: float = 0.25
    """The shortest time between two hints that the journal has grown."""
    poll_s: float = 5.0
    """The longest wait for a hint that may have been lost."""
    lag_s: float | None = None
    """How long a chat is looked at again after a line of it, where several gateways write."""
    look_s: float | None = None
    """How often each follower looks by itself there."""

    # All of it together.
    patience: HttpLimits = HttpLimits()  # noqa: RUF009  (frozen)
    followers_max: int = 256
    connections_max: int = 1_024
    goodbye_s: int = 2
    """For requests that are under way when the channel ends."""
