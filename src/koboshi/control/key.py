"""The key of the control socket: a file in the home that every request has to show.

The socket's mode keeps other users out, but not a program of our own user inside a boundary that
does not cover sockets with a name (Landlock before ABI 9). Such a program can connect. It cannot
read the home, so it has no key and is told nothing.
"""

from dataclasses import dataclass
from pathlib import Path

from koboshi.control.home_secret import held_secret, kept_secret, write_secret
from koboshi.domain.errors import StoreFailed

KEY_NAME = "control-key"
KEY_FIELD = "key"
NO_KEY = "no-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlKey:
    path: Path
    secret: str

    @classmethod
    def held_in(cls, home: Path) -> "ControlKey":
        """The key of the home, made now if there is none or only a damaged one. Raises StoreFailed
        and OSError."""
        path = home / KEY_NAME
        return cls(path=path, secret=held_secret(path))

    def fits(self, shown: object) -> bool:
        """Whether it is the key; the time this takes says nothing about it."""
        # Commands show a key and compare none.
        import hmac

        given = shown.encode("utf-8", "replace") if isinstance(shown, str) else b""
        return hmac.compare_digest(given, self.secret.encode())

    def complaint(self) -> str:
        """Why a request without the right key is refused, and what helps. A file that was lost or
        damaged since the start is written again: without it no command could reach us."""
        try:
            if kept_secret(self.path) != self.secret:
                write_secret(self.path, self.secret)
                return f"{self.path} was missing or damaged and is written again; ask again"
        except (OSError, StoreFailed) as error:
            return f"the key of the gateway cannot be kept in {self.path}: {error}"
        return (
            f"the request does not show the key of this gateway, which is in {self.path} and "
            "readable by its own user alone; ask with the command `koboshi`, as that user"
        )


def shown_key(home: Path) -> str:
    """The key as a client shows it; empty where it has none."""
    try:
        return kept_secret(home / KEY_NAME) or ""
    except OSError:
        return ""
