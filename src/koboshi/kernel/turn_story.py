"""The story of a turn in lines for people, from the journal."""

from koboshi.domain.phrases import clock_words
from koboshi.domain.story import story_of_lines
from koboshi.kernel.rows import TurnRow
from koboshi.kernel.transaction import Reading
from koboshi.kernel.view_rows import journal_line

LINES_MAX = 40


def story_of(tx: Reading, turn: TurnRow) -> tuple[str, ...]:
    """What happened to a turn, a line each, oldest first."""
    rows = tx.rows("view_journal_of_turn", session_id=turn.session_id, turn_id=turn.turn_id)
    lines = [journal_line(row) for row in rows[-LINES_MAX:]]
    return tuple(f"{clock_words(at_ms)} {words}" for at_ms, words in story_of_lines(lines))
