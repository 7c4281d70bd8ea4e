"""What ran before for words that are asked again."""

from koboshi.domain import notes
from koboshi.domain.ids import TurnId
from koboshi.domain.inbox import Entry
from koboshi.domain.transcript import Note
from koboshi.domain.turn import TurnState
from koboshi.kernel.decode import first_text, text
from koboshi.kernel.rows import RETRY, read_turn
from koboshi.kernel.transaction import Reading

RETRIES_FOLLOWED = 10


def retry_note(tx: Reading, entry: Entry) -> Note | None:
    """What ran before for words that are asked again, told as after a crash. It is read when the
    turn opens, however long the words have waited. None if nothing ran."""
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
    if not calls:
        return None
    turn = read_turn(tx, TurnId(int(entry.external_id)))
    is_answered = turn is not None and turn.state in (TurnState.ANSWERED, TurnState.DONE)
    return Note(cause=notes.RETRY, text=notes.asked_again(calls, is_answered=is_answered))


def _asked_again_in(tx: Reading, turn_id: TurnId) -> TurnId | None:
    """The turn whose words this turn asked again, if it did."""
    key = first_text(tx.row("turn_retried_by", turn_id=turn_id)) or ""
    return TurnId(int(key)) if key.isdecimal() else None
