"""The story of a turn in lines for people, from the journal."""

from koboshi.domain.notes import BACKLOG, ENDED
from koboshi.domain.phrases import clock_words
from koboshi.kernel.decode import TurnRow, number, text
from koboshi.kernel.transaction import Reading

LINES_MAX = 40

_SAID = {
    ("turn", "opened"): "accepted",
    ("turn", "claimed"): "work began",
    ("turn", "answered"): "answered",
    ("turn", "settled"): "the answer was delivered",
    ("turn", "asked"): "waits for the person",
    ("turn", "replied"): "the question was answered",
    ("turn", "declined"): "not continued",
    ("turn", "expired"): "nobody answered in time",
    ("turn", "prompted"): "asked whether to continue",
    ("turn", "parked"): "set aside",
    ("turn", "cleared"): "left for a newer message",
    ("turn", "gave-up"): "given up",
    ("turn", "erred"): "failed",
    ("turn", "interrupted"): "interrupted",
    ("turn", "resumed"): "taken up again",
    ("turn", "released"): "set down for a restart",
    ("turn", "postponed"): "set down for a while",
    ("turn", "cut"): "stopped",
    ("turn", "dropped"): "ended for good",
    ("step", "reply"): "the model replied",
    ("step", "result"): "a tool finished",
    ("step", "question"): "a question was put",
    ("step", "answer"): "the answer was stored",
    ("call", "started"): "a tool began",
    ("step", "note"): "the model was told something",
    ("step", "summary"): "what was said before was summed up",
    ("delivery", "delivered"): "a part was delivered",
    ("delivery", "postponed"): "a delivery was put off",
    ("delivery", "rejected"): "a delivery was refused",
    ("delivery", "abandoned"): "a delivery was given up",
}


def story_of(tx: Reading, turn: TurnRow) -> tuple[str, ...]:
    """What happened to a turn, a line each, oldest first."""
    rows = tx.rows("view_journal_of_turn", session_id=turn.session_id, turn_id=turn.turn_id)
    lines = []
    for row in rows[-LINES_MAX:]:
        at_ms, subject, event, rule, reason = row[1], row[2], row[4], row[7], row[8]
        if (subject, event, reason) == ("step", "note", ENDED):
            continue  # the turn's own line says so
        words = _SAID.get((text(subject), text(event)), f"{subject} {event}")
        if (subject, event, reason) == ("step", "note", BACKLOG):
            words = "what else was sent before this boot joined it"
        if rule:
            words += f" ({rule})"
        if reason and subject in ("turn", "delivery"):
            words += f": {reason}"
        lines.append(f"{clock_words(number(at_ms))} {words}")
    return tuple(lines)
