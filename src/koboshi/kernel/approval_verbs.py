"""The verbs of the owner about approvals."""

from koboshi.domain.approval import OPERATOR
from koboshi.domain.command import QuestionKind, Ruling
from koboshi.domain.ids import Seq, TurnId
from koboshi.domain.rule import ApprovalRule, RuleId
from koboshi.domain.turn import TurnState
from koboshi.kernel.approvals import revoke_rule, rule_of
from koboshi.kernel.decode import number
from koboshi.kernel.facts import question_kind
from koboshi.kernel.keys import lock_found
from koboshi.kernel.questions import rule_on_approval
from koboshi.kernel.rows import TurnRow, read_question, read_turn
from koboshi.kernel.transaction import Readers, Reading, Transaction, Writer


class ApprovalVerbs:
    """What the owner does about approvals, on the page and at the command line."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def rules(self, limit: int) -> tuple[ApprovalRule, ...]:
        rows = await self._readers.read(lambda tx: tx.rows("rules_alive", limit=limit))
        return tuple(rule_of(row) for row in rows)

    async def revoke(self, rule_id: RuleId) -> ApprovalRule | None:
        def operation(tx: Transaction) -> ApprovalRule | None:
            lock_found(tx, "rule_session_key", rule_id=rule_id)
            return revoke_rule(tx, rule_id, OPERATOR)

        return await self._writer.write("approvals.revoke", operation)

    async def rule_on(self, question: Seq, ruling: Ruling) -> bool:
        """Answer an approval for the owner; False if that question is not open any more."""

        def operation(tx: Transaction) -> bool:
            row = tx.row("turn_waiting_for", question=question)
            if row is None:
                return False
            lock_found(tx, "turn_key", turn_id=number(row[0]))
            turn = read_turn(tx, TurnId(number(row[0])))
            if turn is None or not _is_open_approval(tx, turn, question):
                return False
            rule_on_approval(tx, turn, OPERATOR, turn.anchor, ruling, speaks=False)
            return True

        return await self._writer.write("approvals.rule_on", operation)


def _is_open_approval(tx: Reading, turn: TurnRow, question: Seq) -> bool:
    if turn.state is not TurnState.WAITING or turn.question_seq != question:
        return False
    asked = read_question(tx, question)
    return question_kind(tx, turn.turn_id, asked) is QuestionKind.APPROVAL
