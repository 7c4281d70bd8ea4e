"""When a turn is over, the person is told of ended processes that the model knew of and kept."""

from collections.abc import Sequence
from dataclasses import replace

from koboshi.domain import phrases
from koboshi.domain.ids import SessionId, TurnId
from koboshi.domain.inbox import Entry, ReportWords
from koboshi.domain.process import Process
from koboshi.domain.telling import KnownEnd, Teller, teller_of
from koboshi.domain.transcript import Answer, Author, Message, Note, Question, Result, Step
from koboshi.domain.watch import notice
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import text, texts
from koboshi.kernel.enqueue import enqueue_delivery_once
from koboshi.kernel.process_rows import read_process
from koboshi.kernel.rows import entry_of, read_turn, step_of
from koboshi.kernel.transaction import Reading, Transaction

HEADLINE_CHARS = 1_000
"""Longer than a headline: it is put on one line, as a quotation of it is."""


def tell_ends(
    tx: Transaction, context: VerbContext, session_id: SessionId, turn_id: TurnId
) -> None:
    """Tell the person how processes ended, where the model of the turn knew it and did not say."""
    known = tx.rows("ends_known", session_id=session_id, turn_id=turn_id)
    if not known:
        return
    steps = _steps_of(tx, turn_id)
    is_answered = _is_answered(tx, session_id, steps)
    quotes = texts(tx.rows("words_of_turn", turn_id=turn_id))
    for entry in (entry_of(row).entry for row in known):
        assert isinstance(entry.body, ReportWords)
        process = read_process(tx, entry.body.process_id)
        if process is None:
            continue
        end = _known_end(tx, session_id, entry, process, steps)
        headline = phrases.excerpt(entry.body.headline.removesuffix(":"), HEADLINE_CHARS)
        end = replace(end, is_quoted=any(headline in words for words in quotes))
        if teller_of(end, is_answered=is_answered) is Teller.GATEWAY:
            words = notice(process, entry.body.output, context.notify)
            if words is not None:
                cause = f"report:{entry.entry_id}"
                enqueue_delivery_once(tx, session_id, cause, words, anchor=entry.body.anchor)


def _steps_of(tx: Reading, turn_id: TurnId) -> list[Step]:
    turn = read_turn(tx, turn_id)
    assert turn is not None
    return [step_of(row) for row in tx.rows("steps_of_turn", **turn.span)]


def _is_answered(tx: Reading, session_id: SessionId, steps: Sequence[Step]) -> bool:
    """Whether there is an answer, and no part of it was abandoned."""
    answers = [step for step in steps if isinstance(step.body, Answer)]
    return any(not _is_abandoned(tx, session_id, step) for step in answers)


def _known_end(
    tx: Reading, session_id: SessionId, entry: Entry, process: Process, steps: Sequence[Step]
) -> KnownEnd:
    cause = f"entry:{entry.entry_id}"
    noted = [s.seq for s in steps if isinstance(s.body, Note) and s.body.cause == cause]
    read = [
        step.seq
        for step in steps
        if isinstance(step.body, Result) and step.body.call_id == process.exit_read_by
    ]
    since = min(noted + read)
    return KnownEnd(
        process_id=process.process_id,
        is_read=bool(read),
        is_sole_request=bool(noted) and sum(map(_is_request, steps)) == 1,
        said=tuple(_sent(tx, session_id, step) for step in steps if step.seq > since),
    )


def _is_request(step: Step) -> bool:
    """Whether the step is a message or a report, which the turn has to answer."""
    is_report = isinstance(step.body, Note) and step.body.cause.startswith("entry:")
    return is_report or isinstance(step.body, Message)


def _sent(tx: Reading, session_id: SessionId, step: Step) -> str:
    """What the person is sent of a step, if the model wrote it."""
    match step.body:
        case Question(author=Author.MODEL) | Answer():
            rows = tx.rows("deliveries_of_cause", session_id=session_id, cause=f"step:{step.seq}")
        case _:
            return ""
    if any(is_file for _, _, is_file in rows) and not _is_abandoned(tx, session_id, step):
        return step.body.text
    return "\n".join(text(words) for words, state, _ in rows if state != "abandoned")


def _is_abandoned(tx: Reading, session_id: SessionId, step: Step) -> bool:
    """Whether a part of it was abandoned."""
    rows = tx.rows("deliveries_of_cause", session_id=session_id, cause=f"step:{step.seq}")
    return any(state == "abandoned" for _, state, _ in rows)
