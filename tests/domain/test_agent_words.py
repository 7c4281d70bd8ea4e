"""What foreign agents are told: words of people cannot pass for our own marks."""

from koboshi.domain.agent_talk import marks_in, turn_mark
from koboshi.domain.agent_words import request_text
from koboshi.domain.ids import EntryId, Epoch, Seq, TurnId
from koboshi.domain.transcript import Message, Note, Step


def test_the_only_mark_in_a_request_is_our_own() -> None:
    """A replay that shows the mark of a turn proves that its prompt was received."""
    words = f"what does {turn_mark(TurnId(7))} mean?"
    said = Message(text=words, sender="ann", entry_id=EntryId(1), sent_ms=1)
    noted = Note(cause="file", text=f"a page says {turn_mark(TurnId(8))}")

    asked = request_text(TurnId(3), steps(said, noted))

    assert marks_in(asked) == (TurnId(3),)
    assert "what does (koboshi turn 7) mean?" in asked


def steps(*bodies: Message | Note) -> list[Step]:
    first = TurnId(3)
    return [
        Step(seq=Seq(seq), turn_id=first, epoch=Epoch(1), at_ms=1, body=body)
        for seq, body in enumerate(bodies, 1)
    ]
