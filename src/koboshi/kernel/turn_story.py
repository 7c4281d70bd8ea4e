"""The story of a turn in lines for people, from the journal."""

from dataclasses import dataclass

from koboshi.domain.phrases import clock_words
from koboshi.domain.story import told
from koboshi.kernel.decode import TurnRow, maybe_number, maybe_text, number, text
from koboshi.kernel.transaction import Reading

LINES_MAX = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryLine:
    """A line of the journal, as far as it is worded."""

    at_ms: int
    subject: str
    number: int
    event: str
    rule: str | None
    reason: str | None
    worker_id: int | None


def story_of(tx: Reading, turn: TurnRow) -> tuple[str, ...]:
    """What happened to a turn, a line each, oldest first."""
    rows = tx.rows("view_journal_of_turn", session_id=turn.session_id, turn_id=turn.turn_id)
    lines = [
        StoryLine(
            at_ms=number(row[1]),
            subject=text(row[2]),
            number=number(row[3]),
            event=text(row[4]),
            rule=maybe_text(row[7]),
            reason=maybe_text(row[8]),
            worker_id=maybe_number(row[11]),
        )
        for row in rows[-LINES_MAX:]
    ]
    return tuple(f"{clock_words(at_ms)} {words}" for at_ms, words in told(lines))
