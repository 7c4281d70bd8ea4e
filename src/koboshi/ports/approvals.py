"""What the owner does about approvals."""

from typing import Protocol

from koboshi.domain.command import Ruling
from koboshi.domain.ids import Seq
from koboshi.domain.rule import ApprovalRule, RuleId


class Approvals(Protocol):
    async def rules(self, limit: int) -> tuple[ApprovalRule, ...]:
        """What was allowed for good in all chats and is in force, newest first."""
        ...

    async def revoke(self, rule_id: RuleId) -> ApprovalRule | None:
        """Revoke a rule; None if there is none in force."""
        ...

    async def rule_on(self, question: Seq, ruling: Ruling) -> bool:
        """Answer an open approval for the owner. False if that question is not open any more, or
        is no approval."""
        ...
