"""What the platform saw: every request, and what became of it."""

from dataclasses import dataclass, field
from typing import Any

JSON = dict[str, Any]


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """One request as it came."""

    method: str
    params: JSON
    at: float
    chat: int | None
    is_recorded: bool = False
    """The platform has done what it was asked to, whatever the client was told."""
    status: int = 0
    """What the client was told; 0 if nothing, or not yet."""
    description: str = ""
    result: Any = None

    def as_json(self) -> JSON:
        return {
            "method": self.method,
            "params": {name: _plain(value) for name, value in self.params.items()},
            "at": self.at,
            "chat": self.chat,
            "is_recorded": self.is_recorded,
            "status": self.status,
            "description": self.description,
        }


@dataclass(slots=True)
class History:
    requests: list[Request] = field(default_factory=list)

    def of(self, method: str) -> list[Request]:
        wanted = method.lower()
        return [each for each in list(self.requests) if each.method.lower() == wanted]

    def recorded(self, method: str) -> list[Request]:
        return [each for each in self.of(method) if each.is_recorded]

    def asked_to_drop(self) -> list[Request]:
        """Who asked the platform to forget what the bot had not read."""
        return [
            each
            for each in list(self.requests)
            if str(each.params.get("drop_pending_updates", "")).lower() in {"true", "1"}
        ]


def _plain(value: object) -> object:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
