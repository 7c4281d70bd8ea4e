"""What was said in a chat of which the journal lines are gone."""

from dataclasses import dataclass

from koboshi.domain.ids import Seq, TurnId
from koboshi.domain.transcript import Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Words of a person, or of an answer, as the transcript has them."""

    seq: Seq
    turn_id: TurnId
    thread: str
    body: Body
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What was said in a chat up to the journal line `seq`; the lines themselves are gone."""

    seq: int
    said: tuple[Said, ...]
    at_ms: int
    """When this was looked at."""
