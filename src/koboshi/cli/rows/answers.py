"""What the owner of the home answers about rows."""

from dataclasses import dataclass

from koboshi.ports.views import CallView, DeliveryView, EntryView, SessionView, TurnView


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsAnswer:
    sessions: tuple[SessionView, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAnswer:
    session: SessionView
    turns: tuple[TurnView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsAnswer:
    turns: tuple[TurnView, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAnswer:
    turn: TurnView
    messages: tuple[EntryView, ...]
    calls: tuple[CallView, ...]
    deliveries: tuple[DeliveryView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesAnswer:
    messages: tuple[EntryView, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAnswer:
    message: EntryView


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveriesAnswer:
    deliveries: tuple[DeliveryView, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedAnswer:
    released: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAnswer:
    delivery: DeliveryView
