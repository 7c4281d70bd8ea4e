"""`koboshi explain`: the story of a turn, a message or a delivery, and why it is where it is."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path

import click
from msgspec import UnsetType

from koboshi.cli.ask_owner import look, read_answer, unreadable
from koboshi.cli.options import (
    WRONG_USE,
    CommandFailure,
    counted,
    failures_told,
    home_options,
    json_option,
    moment,
    place_words,
    show_json,
)
from koboshi.clock import SystemClock
from koboshi.config.problems import escaped
from koboshi.control.narrate import fate_of_delivery, stands_words
from koboshi.control.replies import DeliveryExplained, Explained, MessageExplained, TurnStory
from koboshi.control.requests import Explain
from koboshi.domain.durations import ago
from koboshi.domain.phrases import excerpt
from koboshi.domain.reasons import Reason
from koboshi.ports.children import Relative
from koboshi.ports.views import AgentWords, DeliveryView, EntryView, JournalLine, TurnView

REQUEST_CHARS_MAX = 400
WORDS_CHARS_MAX = 80
WHAT_CHARS_MAX = 1_000


@click.command()
@click.argument("what", required=False, default="")
@home_options
@json_option
def explain(what: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Why a turn, message, delivery, process, schedule, goal or sub-agent is where it is.

    WHAT is t1 for a turn, s1 for the newest turn of a session, m1 for a message, d1 for a delivery,
    p1 for a process, c1 for a schedule, g1 for a goal, a1 for a sub-agent, n1 for something that
    the agent remembers, or a platform's own id of a message.
    """
    with failures_told(as_json):
        if not what or len(what) > WHAT_CHARS_MAX:
            words = "explain what? t1 is a turn, s1 a session, m1 a message, d1 a delivery"
            raise CommandFailure(WRONG_USE, "usage", words)
        answer = look(home, config_file, Explain(what=what)).answer
        if as_json:
            show_json(answer)
        else:
            click.echo(render(answer, SystemClock().now_ms()))


def render(answer: Mapping[str, object], now_ms: int, zone: tzinfo | None = None) -> str:
    """The answer as text for a person, safe to print. Raises CommandFailure for an unknown one."""
    match answer.get("kind"):
        case "message":
            lines = _message(read_answer(answer, MessageExplained), now_ms, zone)
        case "delivery":
            lines = _delivery(read_answer(answer, DeliveryExplained), now_ms, zone)
        case "process":
            from koboshi.cli.processes import render_process

            lines = render_process(answer, now_ms, zone)
        case "schedule" | "goal":
            from koboshi.cli.cron import render_timed

            lines = render_timed(answer)
        case "memory":
            from koboshi.cli.memory import render_memory

            lines = render_memory(answer)
        case _:
            lines = _turn(read_answer(answer, TurnStory), now_ms, zone)
    return "\n".join(escaped(line) for line in lines)


def _turn(said: TurnStory, now_ms: int, zone: tzinfo | None) -> Iterator[str]:
    turn = said.turn
    yield f"turn t{turn.turn_id} of session s{turn.session_id} ({place_words(turn.route)})"
    yield f"asked     {_request(turn)}"
    stands = stands_words(turn, is_worked_on=said.is_worked_on)
    yield f"stands    {stands}, {_since(turn.changed_ms, now_ms, zone)}"
    yield f"why       {_why(said)}"
    yield from _remedy(said)
    if turn.recoveries:
        again = counted(turn.recoveries, "time")
        yield f"restarts  taken up again {again}, {turn.crash_streak} of them without a new step"
    if said.memory:
        yield f"knew      {said.memory}"
    yield ""
    yield "what happened"
    yield from _happened(said.lines, zone)
    if said.family:
        yield ""
        yield "sub-agents"
        yield from (f"  {_relative(each, turn.turn_id)}" for each in said.family)
    if said.agent:
        yield ""
        yield "the agent told"
        yield from (f"  {_told(each, zone)}" for each in said.agent)
    if said.entries:
        yield ""
        yield "messages"
        yield from (f"  {_entry(entry, zone)}" for entry in said.entries)
    if said.deliveries:
        yield ""
        yield "deliveries"
        yield from (f"  {_owed(each, is_running=said.is_running)}" for each in said.deliveries)


def _relative(each: Relative, asked: int) -> str:
    """A line of the tree; what was asked about is marked."""
    where = "" if each.turn_id is None or not each.depth else f" (t{each.turn_id})"
    here = "  ← this" if each.turn_id == asked else ""
    return f"{'  ' * each.depth}{each.name}{where}  {each.words}{here}"


def _message(said: MessageExplained, now_ms: int, zone: tzinfo | None) -> Iterator[str]:
    entry = said.message
    at = f"received at {moment(entry.received_ms, zone)} ({ago(entry.received_ms, now_ms)})"
    yield f"message m{entry.entry_id} from {entry.sender} on {entry.source}, {at}"
    yield f"said      {_quoted(entry.text, REQUEST_CHARS_MAX)}"
    if said.behind is None:
        yield f"became    {_reason(said).words}"
    else:
        turn = said.behind
        standing = stands_words(turn, is_worked_on=said.is_running)
        yield f"became    waiting behind turn t{turn.turn_id}, {_request(turn)}"
        yield f"          which is {standing}, {_since(turn.changed_ms, now_ms, zone)}"
    yield from _remedy(said)


def _delivery(said: DeliveryExplained, now_ms: int, zone: tzinfo | None) -> Iterator[str]:
    owed = said.delivery
    at = f"stored at {moment(owed.created_ms, zone)} ({ago(owed.created_ms, now_ms)})"
    part = f", part {owed.part} of {owed.parts}" if owed.parts > 1 else ""
    yield f"delivery d{owed.delivery_id} in session s{owed.session_id}{part}, {at}"
    yield f"says      {_quoted(owed.text, REQUEST_CHARS_MAX)}"
    yield f"stands    {_reason(said).words}"
    if said.behind is not None:
        yield f"why       d{said.behind.delivery_id} goes first, and is not settled yet"
    if owed.settled_ms is not None:
        at = moment(owed.settled_ms, zone)
        yield f"settled   at {at} ({ago(owed.settled_ms, now_ms)})"
    yield from _remedy(said)
    if said.turn is not None:
        yield f"belongs   to turn t{said.turn.turn_id}, {_request(said.turn)}"
    if said.lines:
        yield ""
        yield "what happened"
        yield from _happened(said.lines, zone)


def _happened(lines: Sequence[JournalLine], zone: tzinfo | None) -> Iterator[str]:
    return (f"  {moment(line.at_ms, zone)}  {line.words}" for line in lines if line.words)


def _why(said: TurnStory) -> str:
    """What keeps it where it is, and the rule of recovery that holds now if it is not closed."""
    if said.why is None:
        return _reason(said).words
    later = "" if said.is_running else "; this is what the next gateway will see"
    return f"{_reason(said).words} (rule {said.why.rule}){later}"


def _remedy(said: Explained) -> Iterator[str]:
    if remedy := _reason(said).remedy:
        yield f"remedy    {remedy}"


def _reason(said: Explained) -> Reason:
    """Only of a process none is told."""
    if isinstance(said.reason, UnsetType):
        raise unreadable()
    return said.reason


def _entry(entry: EntryView, zone: tzinfo | None) -> str:
    at = moment(entry.received_ms, zone)
    return f"m{entry.entry_id}  {at}  {entry.sender}: {_quoted(entry.text, WORDS_CHARS_MAX)}"


def _told(words: AgentWords, zone: tzinfo | None) -> str:
    kind = "too late, not delivered" if words.kind == "outside" else words.kind
    return f"{moment(words.at_ms, zone)}  {kind}: {_quoted(words.text, WORDS_CHARS_MAX)}"


def _owed(delivery: DeliveryView, *, is_running: bool) -> str:
    part = f" part {delivery.part}/{delivery.parts}" if delivery.parts > 1 else ""
    standing = fate_of_delivery(delivery, is_running=is_running)
    return f"d{delivery.delivery_id}{part}  {_quoted(delivery.text, WORDS_CHARS_MAX)}  {standing}"


def _request(turn: TurnView) -> str:
    words = _quoted(turn.request, REQUEST_CHARS_MAX)
    return words if turn.request.strip() else "nothing: a report of a process opened it"


def _quoted(text: str, chars_max: int) -> str:
    return f"«{excerpt(text, chars_max)}»"


def _since(at_ms: int, now_ms: int, zone: tzinfo | None) -> str:
    return f"since {moment(at_ms, zone)} ({ago(at_ms, now_ms)})"
