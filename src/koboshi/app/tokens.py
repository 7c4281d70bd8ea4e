"""The token of the web that the gateway makes itself and keeps in the home."""

from pathlib import Path

from koboshi.config import Config, WebConfig
from koboshi.control.home_secret import QUARANTINE_NAME, held_secret, kept_secret
from koboshi.control.key import KEY_NAME

WEB_TOKEN_NAME = "web-token"


def web_token(home: Path, channel: WebConfig) -> str:
    """The configured token, or one that is made at the first start and kept in the home.

    What is there and can be no token is set aside, and a new one is made. Raises StoreFailed where
    the disk refuses that.
    """
    if channel.token is not None:
        return channel.token.reveal()
    return held_secret(home / WEB_TOKEN_NAME)


def make_tokens(config: Config) -> None:
    """Make the token of the web, if it has none yet."""
    for channel in config.enabled_channels:
        if isinstance(channel, WebConfig):
            web_token(config.home, channel)


def kept_token(home: Path) -> str | None:
    """The token in the home; empty if there is none, None if what is there can be no token.

    Raises OSError where it cannot be looked at: it may be a good one.
    """
    return kept_secret(home / WEB_TOKEN_NAME)


def secrets_set_aside(home: Path) -> tuple[Path, ...]:
    """Damaged secrets that were replaced, for as long as a person keeps them."""
    folder, names = home / QUARANTINE_NAME, (WEB_TOKEN_NAME, KEY_NAME)
    try:
        return tuple(sorted(each for name in names for each in folder.glob(f"*/{name}")))
    except OSError:
        return ()
