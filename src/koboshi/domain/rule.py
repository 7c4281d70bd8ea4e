"""What a person has allowed for good in one chat."""

from dataclasses import dataclass
from typing import NewType

from koboshi.domain.ids import SessionId

RuleId = NewType("RuleId", int)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """It spares the question for exactly the same thing, inside the boundary, in its chat."""

    rule_id: RuleId
    session_id: SessionId
    channel: str
    chat: str
    thread: str
    tool: str
    shown: str
    """What was allowed, as the person saw it."""
    made_by: str
    made_ms: int
    revoked_ms: int | None = None

    @property
    def name(self) -> str:
        return f"r{self.rule_id}"


def rule_named(text: str) -> RuleId | None:
    """The rule that a name as people write it means: `r3`, or 3."""
    digits = text.strip().removeprefix("r")
    is_number = digits.isascii() and digits.isdigit() and 0 < len(digits) < 19
    return RuleId(int(digits)) if is_number else None
