"""Rows in lines for a person. Pure."""

from collections.abc import Iterator, Sequence

from koboshi.cli.options import counted, place_words
from koboshi.control.narrate import fate_of_message, stands_words
from koboshi.domain.durations import ago, duration
from koboshi.domain.ids import shown
from koboshi.domain.phrases import excerpt, failure
from koboshi.domain.transcript import ResultStatus
from koboshi.ports.views import CallView, DeliveryView, EntryView, SessionView, TurnView

WORDS_CHARS_MAX = 60


def session_line(view: SessionView, now_ms: int) -> str:
    turn = view.open_turn
    at_work = "idle" if turn is None else f"{shown('turn', turn.turn_id)} {stands_words(turn)}"
    more = [at_work]
    if view.waiting:
        more.append(f"{view.waiting} waiting")
    if view.owed:
        more.append(f"{view.owed} to send")
    name = shown("session", view.session_id)
    more.append(f"begun {ago(view.created_ms, now_ms)}")
    aside = f", beside it {view.aside}" if view.aside else ""
    return f"{name:<5} {place_words(view.route)}{aside}: {', '.join(more)}"


def session_lines(view: SessionView, turns: Sequence[TurnView], now_ms: int) -> Iterator[str]:
    """A session, then its newest turns."""
    yield session_line(view, now_ms)
    yield f"busy      {view.settings.busy or 'as configured'}"
    yield f"policy    {view.settings.policy or 'as configured'}"
    for turn in turns:
        yield f"  {turn_line(turn, now_ms)}"


def turn_line(view: TurnView, now_ms: int) -> str:
    words = excerpt(view.request, WORDS_CHARS_MAX) or "a report of a process"
    because = f" ({excerpt(failure(view.reason), WORDS_CHARS_MAX)})" if view.reason else ""
    name, when = shown("turn", view.turn_id), since(view.changed_ms, view.closed_ms, now_ms)
    place = place_words(view.route) + (f", {view.aside}" if view.aside else "")
    return f"{name:<5} {stands_words(view)}{because} {when}: «{words}» ({place})"


def since(began_ms: int, ended_ms: int | None, now_ms: int) -> str:
    """When it ended; how long it has been so, if it has not."""
    return f"for {duration(now_ms - began_ms)}" if ended_ms is None else ago(ended_ms, now_ms)


def turn_lines(
    view: TurnView,
    messages: Sequence[EntryView],
    calls: Sequence[CallView],
    deliveries: Sequence[DeliveryView],
    now_ms: int,
) -> Iterator[str]:
    """A turn, what it was asked, what it did, and what it said."""
    yield turn_line(view, now_ms)
    yield from (f"  {message_line(entry, now_ms)}" for entry in messages)
    yield from (f"  {call_line(call)}" for call in calls)
    yield from (f"  {delivery_line(delivery, now_ms)}" for delivery in deliveries)


def call_line(call: CallView) -> str:
    if call.skipped_ms is not None:
        how = "did not run"
    elif call.started_ms is None:
        how = "was not started yet"
    elif call.finished_ms is None:
        how = "is under way"
    elif call.exit_code and call.outcome == ResultStatus.OK:
        how = f"ended: exit code {call.exit_code}"
    else:
        how = f"ended: {call.outcome}"
    return f"{call.tool} ({call.call_id}) {how}"


def message_line(view: EntryView, now_ms: int) -> str:
    name, words = shown("message", view.entry_id), excerpt(view.text, WORDS_CHARS_MAX)
    whose = f" from {view.sender}" if view.sender else ""
    when, stands = ago(view.received_ms, now_ms), view.stands or view.state
    return f"{name:<5} {view.kind}{whose} {when}, {stands}: «{words}»"


def message_lines(view: EntryView, now_ms: int) -> Iterator[str]:
    yield message_line(view, now_ms)
    yield f"fate      {fate_of_message(view)}"
    yield f"arrived   over {view.source} as {view.external_id}"


def delivery_line(view: DeliveryView, now_ms: int) -> str:
    name, words = shown("delivery", view.delivery_id), excerpt(view.text, WORDS_CHARS_MAX)
    part = f", part {view.part} of {view.parts}" if view.parts > 1 else ""
    became = f" as {view.platform_id}" if view.platform_id else ""
    because = f" ({excerpt(view.reason, WORDS_CHARS_MAX)})" if view.reason else ""
    when = since(view.created_ms, view.settled_ms, now_ms)
    return f"{name:<5} {view.state}{became}{because} {when}{part}: «{words}»"


def delivery_lines(view: DeliveryView, now_ms: int) -> Iterator[str]:
    yield delivery_line(view, now_ms)
    yield f"cause     {view.cause}"
    yield f"tried     {counted(view.attempts, 'time')}"
    if view.due_ms is not None and view.due_ms > now_ms:
        yield f"next      in {duration(view.due_ms - now_ms)}"
