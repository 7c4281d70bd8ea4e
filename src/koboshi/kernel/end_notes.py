"""What the model is told about turns that ended without an answer: read from their rows."""

from koboshi.domain import notes, phrases
from koboshi.domain.ids import TurnId
from koboshi.domain.inbox import Entry
from koboshi.domain.transcript import Message, Note
from koboshi.domain.turn import TurnEvent
from koboshi.kernel.decode import TurnRow, body_of, text
from koboshi.kernel.read import read_headline
from koboshi.kernel.transaction import Reading

RETRY = "retry"
"""The source of an entry that asks words again. Its key is the turn or the message that they are
of: there is one for each."""

MESSAGES_QUOTED = 20
RETRIES_FOLLOWED = 10


def end_note(tx: Reading, turn: TurnRow, event: TurnEvent, reason: str) -> Note:
    """The note that closes the transcript of a turn: what was asked, when, and how it ended."""
    asked = _words_in(tx, turn)
    headline = "" if asked else read_headline(tx, turn)
    words = notes.ended(
        event,
        phrases.failure(reason),
        request=asked or headline,
        is_report=bool(headline),
        at=phrases.clock_words(turn.opened_ms),
        is_begun=turn.epoch > 0,
    )
    return Note(cause=notes.ENDED, text=words)


def retry_note(tx: Reading, entry: Entry) -> Note | None:
    """What ran for words that are asked again, as a crash would have it told. It is read when the
    turn opens, so it does not matter how long the words have waited. None if nothing ran."""
    if entry.source != RETRY or not entry.external_id.isdecimal():
        return None
    calls: list[tuple[str, str, str]] = []
    turn_id: TurnId | None = TurnId(int(entry.external_id))
    for _ in range(RETRIES_FOLLOWED):
        if turn_id is None:
            break
        rows = tx.rows("calls_begun", turn_id=turn_id, limit=notes.CALLS_NAMED + 1)
        calls += [(text(tool), text(arguments), text(how)) for tool, arguments, how in rows]
        turn_id = _asked_again_in(tx, turn_id)
    return Note(cause=notes.RETRY, text=notes.asked_again(calls)) if calls else None


def _asked_again_in(tx: Reading, turn_id: TurnId) -> TurnId | None:
    """The turn whose words this one has asked again, if it has."""
    row = tx.row("turn_retried_by", turn_id=turn_id)
    key = "" if row is None else text(row[0])
    return TurnId(int(key)) if key.isdecimal() else None


def _words_in(tx: Reading, turn: TurnRow) -> str:
    """What people said in a turn, in order."""
    rows = tx.rows(
        "turn_messages",
        session_id=turn.session_id,
        first_seq=turn.first_seq,
        turn_id=turn.turn_id,
        limit=MESSAGES_QUOTED,
    )
    said = (body_of("message", row[0]) for row in rows)
    return "\n".join(each.words for each in said if isinstance(each, Message)).strip()
