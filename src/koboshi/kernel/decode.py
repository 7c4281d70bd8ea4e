"""Rows to values and back."""

from dataclasses import dataclass
from typing import TypeVar

import msgspec

from koboshi.domain.files import OutFile
from koboshi.domain.ids import (
    CallId,
    ChannelName,
    DeliveryId,
    EntryId,
    Epoch,
    Generation,
    ProcessId,
    Seq,
    SessionId,
    TurnId,
    WatcherId,
    WorkerId,
)
from koboshi.domain.inbox import Entry, EntryKind, ReportWords, StrangersWords, Words
from koboshi.domain.outbox import Delivery
from koboshi.domain.process import Birth, Process, ProcessState
from koboshi.domain.route import Route
from koboshi.domain.session import Session, Settings
from koboshi.domain.transcript import (
    Answer,
    Body,
    Call,
    CallRecord,
    Choice,
    Effect,
    Message,
    Need,
    Note,
    Question,
    Reply,
    Result,
    Step,
    StepKind,
    Summary,
)
from koboshi.domain.turn import TurnState
from koboshi.domain.watch import Watcher, WatcherKind, WatcherState
from koboshi.domain.worker import EndedHow, Worker
from koboshi.kernel.transaction import Row, Value

_encoder = msgspec.json.Encoder()
_BODIES: dict[str, msgspec.json.Decoder[Body]] = {
    kind: msgspec.json.Decoder(body)
    for kind, body in (
        (StepKind.MESSAGE, Message),
        (StepKind.NOTE, Note),
        (StepKind.REPLY, Reply),
        (StepKind.RESULT, Result),
        (StepKind.QUESTION, Question),
        (StepKind.ANSWER, Answer),
        (StepKind.SUMMARY, Summary),
    )
}
_words = msgspec.json.Decoder(Words)
_strangers_words = msgspec.json.Decoder(StrangersWords)
_report = msgspec.json.Decoder(ReportWords)
_settings = msgspec.json.Decoder(Settings)
_file = msgspec.json.Decoder(OutFile)
_choices = msgspec.json.Decoder(tuple[Choice, ...])

Kind = TypeVar("Kind", str, int)


def number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def text(value: Value) -> str:
    assert isinstance(value, str)
    return value


def maybe_number(value: Value) -> int | None:
    assert value is None or isinstance(value, int)
    return value


def maybe_text(value: Value) -> str | None:
    assert value is None or isinstance(value, str)
    return value


def encoded(value: object) -> str:
    """The JSON that a column holds; readable with any SQLite shell."""
    return _encoder.encode(value).decode()


def body_of(kind: Value, body: Value) -> Body:
    return _BODIES[text(kind)].decode(text(body))


def report_of(body: Value) -> ReportWords:
    return _report.decode(text(body))


def words_of(body: Value) -> Words:
    return _words.decode(text(body))


def strangers_words_of(body: Value) -> StrangersWords:
    return _strangers_words.decode(text(body))


def choices_of(value: Value) -> tuple[Choice, ...]:
    return () if value == "[]" else _choices.decode(text(value))


def file_of(value: Value) -> OutFile:
    return _file.decode(text(value))


def step_of(row: Row) -> Step:
    seq, turn_id, epoch, at_ms, kind, body = row
    return Step(
        seq=Seq(number(seq)),
        turn_id=TurnId(number(turn_id)),
        epoch=Epoch(number(epoch)),
        at_ms=number(at_ms),
        body=body_of(kind, body),
    )


def session_of(row: Row) -> Session:
    session_id, channel, chat, thread, generation, context_from, settings = row
    return Session(
        session_id=SessionId(number(session_id)),
        route=Route(channel=ChannelName(text(channel)), chat=text(chat), thread=text(thread)),
        generation=Generation(number(generation)),
        context_from=Seq(number(context_from)),
        settings=Settings() if settings == "{}" else _settings.decode(text(settings)),
    )


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn as it is stored, in the order of the columns that its queries select."""

    turn_id: TurnId
    session_id: SessionId
    generation: Generation
    state: TurnState
    event: str
    rule: str | None
    reason: str | None
    epoch: Epoch
    worker_id: WorkerId | None
    recoveries: int
    crash_streak: int
    person: str
    anchor: str
    first_seq: Seq
    question_seq: Seq | None
    opened_ms: int
    progressed_ms: int
    worked_ms: int
    changed_ms: int
    closed_ms: int | None
    model_tries: int
    not_before_ms: int
    model_waited_ms: int
    model_failure: str | None


def turn_of(row: Row) -> TurnRow:
    turn = TurnRow(*row)  # type: ignore[arg-type]
    object.__setattr__(turn, "state", TurnState(turn.state))
    return turn


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    entry: Entry
    accepted_by: int | None
    received_ms: int


def entry_of(row: Row) -> EntryRow:
    (entry_id, session_id, generation, kind, source, external_id) = row[:6]
    (sender, body, during_turn, accepted_by, received_ms) = row[6:]
    turn = maybe_number(during_turn)
    return EntryRow(
        entry=Entry(
            entry_id=EntryId(number(entry_id)),
            session_id=SessionId(number(session_id)),
            generation=Generation(number(generation)),
            kind=EntryKind(text(kind)),
            source=text(source),
            external_id=text(external_id),
            sender=text(sender),
            body=report_of(body) if kind == "report" else words_of(body),
            during_turn=None if turn is None else TurnId(turn),
        ),
        accepted_by=maybe_number(accepted_by),
        received_ms=number(received_ms),
    )


def call_of(row: Row) -> CallRecord:
    call_id, tool, arguments, effect, need, provider_id = row[:6]
    started_ms, died_ms, finished_ms, skipped_ms, approved_by, approved_ms = row[6:]
    return CallRecord(
        call=Call(
            call_id=CallId(text(call_id)),
            tool=text(tool),
            arguments=text(arguments),
            effect=Effect(text(effect)),
            need=Need(text(need)),
            provider_id=text(provider_id),
        ),
        started_ms=maybe_number(started_ms),
        died_ms=maybe_number(died_ms),
        finished_ms=maybe_number(finished_ms),
        skipped_ms=maybe_number(skipped_ms),
        approved_by=maybe_text(approved_by),
        approved_ms=maybe_number(approved_ms),
    )


def delivery_of(row: Row, *, is_ambiguous: bool, now_ms: int, worker_id: WorkerId) -> Delivery:
    """From a row of `delivery_head`, as it is with one more attempt of this worker."""
    turn_id, question = maybe_number(row[2]), maybe_number(row[8])
    return Delivery(
        delivery_id=DeliveryId(number(row[0])),
        session_id=SessionId(number(row[1])),
        turn_id=None if turn_id is None else TurnId(turn_id),
        cause=text(row[3]),
        part=number(row[4]),
        parts=number(row[5]),
        text=text(row[6]),
        choices=choices_of(row[7]),
        question=question,
        anchor=text(row[9]),
        attempts=number(row[10]) + 1,
        created_ms=number(row[11]),
        is_ambiguous=is_ambiguous,
        may_be_duplicate=bool(row[13]),
        file=None if row[20] is None else file_of(row[20]),
        route=Route(channel=ChannelName(text(row[17])), chat=text(row[18]), thread=text(row[19])),
        age_ms=now_ms - number(row[21]),
        is_tried=row[22] == worker_id,
        unsure=number(row[23]),
        strikes=number(row[24]),
        waited_ms=number(row[25]),
    )


def worker_of(row: Row) -> Worker:
    worker_id, host, pid, birth, version, started_ms, heartbeat_ms, draining = row[:8]
    ended_ms, how, restart_by, found_dead, report = row[8:]
    return Worker(
        worker_id=WorkerId(number(worker_id)),
        host=text(host),
        pid=number(pid),
        birth=text(birth),
        version=text(version),
        started_ms=number(started_ms),
        heartbeat_ms=number(heartbeat_ms),
        is_draining=bool(draining),
        ended_ms=maybe_number(ended_ms),
        ended_how=None if how is None else EndedHow(text(how)),
        restart_by=maybe_text(restart_by),
        found_dead=number(found_dead),
        report=maybe_text(report),
    )


def process_of(row: Row) -> Process:
    process_id, session_id, generation, turn_id, call_id, foreground, command, workdir = row[:8]
    state, pid, birth, exit_code, reason, started_ms, ended_ms, end_asked_ms = row[8:16]
    log_size, exit_read_by = row[16:]
    return Process(
        process_id=ProcessId(number(process_id)),
        session_id=SessionId(number(session_id)),
        generation=Generation(number(generation)),
        turn_id=TurnId(number(turn_id)),
        call_id=CallId(text(call_id)),
        command=text(command),
        workdir=text(workdir),
        is_foreground=bool(foreground),
        state=ProcessState(text(state)),
        birth=_birth(maybe_number(pid), maybe_text(birth)),
        exit_code=maybe_number(exit_code),
        reason=maybe_text(reason),
        started_ms=number(started_ms),
        ended_ms=maybe_number(ended_ms),
        is_end_asked=end_asked_ms is not None,
        turn_log_size=maybe_number(log_size),
        exit_read_by=maybe_text(exit_read_by),
    )


def _birth(pid: int | None, birth: str | None) -> Birth | None:
    if pid is None or birth is None:
        return None
    boot_id, _, ticks = birth.rpartition("/")
    return Birth(boot_id=boot_id, pid=pid, start_ticks=int(ticks))


def watcher_of(row: Row) -> Watcher:
    watcher_id, process_id, kind, argument, state = row[:5]
    log_offset, reports, reported_ms, noisy = row[5:]
    return Watcher(
        watcher_id=WatcherId(number(watcher_id)),
        process_id=ProcessId(number(process_id)),
        kind=WatcherKind(text(kind)),
        argument=text(argument),
        state=WatcherState(text(state)),
        log_offset=number(log_offset),
        reports=number(reports),
        reported_ms=number(reported_ms),
        noisy=number(noisy),
    )
