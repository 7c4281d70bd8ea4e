"""Every word that a person will see enters the outbox here."""

from collections.abc import Sequence

from koboshi.domain.files import OutFile
from koboshi.domain.ids import Seq, SessionId, TurnId
from koboshi.domain.transcript import Choice
from koboshi.kernel.decode import encoded
from koboshi.kernel.transaction import Transaction
from koboshi.ports.wakeups import OUTBOX


def enqueue_delivery(
    tx: Transaction,
    session_id: SessionId,
    turn_id: TurnId | None,
    cause: str,
    parts: Sequence[str],
    *,
    anchor: str,
    choices: tuple[Choice, ...] = (),
    question: Seq | None = None,
    file: OutFile | None = None,
    literal: tuple[int, int] | None = None,
    to_person: bool = False,
) -> None:
    """Owe a person some words, in parts. Choices and a file come with the last part. Of what a
    child does no person is told, unless it is a question, or `to_person`: a reply to what they did.
    """
    for place, words in enumerate(parts, start=1):
        is_last = place == len(parts)
        tx.insert(
            "delivery_insert",
            session_id=session_id,
            turn_id=turn_id,
            cause=cause,
            part=place,
            parts=len(parts),
            text=words,
            choices=encoded(choices) if choices and is_last else "[]",
            question=question,
            anchor=anchor,
            file=encoded(file) if file is not None and is_last else None,
            literal=None if literal is None else encoded(literal),
            to_person=int(to_person or question is not None),
            now=tx.now_ms,
        )
    tx.hints.add(OUTBOX)


def enqueue_delivery_once(
    tx: Transaction, session_id: SessionId, cause: str, words: str, *, anchor: str
) -> None:
    """Say something for a cause for which nothing was ever said in this session."""
    if tx.row("delivery_by_cause", session_id=session_id, cause=cause) is None:
        enqueue_delivery(tx, session_id, None, cause, (words,), anchor=anchor)
