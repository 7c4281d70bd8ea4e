"""The session of the gateway that we can come back to, as the store keeps it. Pure."""

from dataclasses import dataclass

import msgspec


class _Stored(msgspec.Struct, frozen=True):
    session: str = ""
    url: str = ""
    seq: int = 0


_read = msgspec.json.Decoder(_Stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlace:
    """Without a session a new one is begun."""

    session: str = ""
    url: str = ""
    seq: int = 0

    @property
    def is_known(self) -> bool:
        return bool(self.session and self.url)

    def as_cursor(self, seq: int) -> str:
        """What is stored with the events up to `seq`."""
        stored = _Stored(session=self.session, url=self.url, seq=seq)
        return msgspec.json.encode(stored).decode()


def place_in(cursor: str | None) -> SessionPlace:
    """The session that was stored; none if nothing was, or if it cannot be read."""
    try:
        found = _read.decode(cursor or "{}")
    except msgspec.DecodeError:
        return SessionPlace()
    if not found.url.startswith(("wss://", "ws://")):
        return SessionPlace()
    return SessionPlace(session=found.session, url=found.url, seq=found.seq)
