"""Rows in the cells of a table, for a terminal. Pure."""

from koboshi.cli.rows.row_text import WORDS_CHARS_MAX, since
from koboshi.control.narrate import stands_words
from koboshi.domain.durations import ago
from koboshi.domain.ids import shown
from koboshi.domain.phrases import excerpt, failure
from koboshi.ports.views import DeliveryView, EntryView, SessionView, TurnView

SESSIONS = ("id", "channel", "chat", "thread", "at work", "waiting", "to send", "begun")
TURNS = ("id", "state", "changed", "request", "why", "chat")
MESSAGES = ("id", "kind", "from", "state", "arrived", "words")
DELIVERIES = ("id", "state", "when", "part", "words", "why", "platform's id")


def session_cells(view: SessionView, now_ms: int) -> tuple[str, ...]:
    turn, route = view.open_turn, view.route
    at_work = "idle" if turn is None else f"{shown('turn', turn.turn_id)} {stands_words(turn)}"
    return (
        shown("session", view.session_id),
        route.channel,
        route.chat,
        route.thread,
        at_work,
        str(view.waiting or ""),
        str(view.owed or ""),
        ago(view.created_ms, now_ms),
    )


def turn_cells(view: TurnView, now_ms: int) -> tuple[str, ...]:
    return (
        shown("turn", view.turn_id),
        stands_words(view),
        since(view.changed_ms, view.closed_ms, now_ms),
        excerpt(view.request, WORDS_CHARS_MAX) or "a report of a process",
        excerpt(failure(view.reason), WORDS_CHARS_MAX) if view.reason else "",
        f"{view.route.channel} {view.route.chat}",
    )


def message_cells(view: EntryView, now_ms: int) -> tuple[str, ...]:
    return (
        shown("message", view.entry_id),
        view.kind,
        view.sender,
        view.stands or view.state,
        ago(view.received_ms, now_ms),
        excerpt(view.text, WORDS_CHARS_MAX),
    )


def delivery_cells(view: DeliveryView, now_ms: int) -> tuple[str, ...]:
    return (
        shown("delivery", view.delivery_id),
        view.state,
        since(view.created_ms, view.settled_ms, now_ms),
        f"{view.part}/{view.parts}" if view.parts > 1 else "",
        excerpt(view.text, WORDS_CHARS_MAX),
        excerpt(view.reason, WORDS_CHARS_MAX) if view.reason else "",
        view.platform_id or "",
    )
