"""Approvals: who may answer one, what a yes is bound to, and what was allowed for good in a chat.

A yes copies the seal of its question to the call, and the call starts only under that seal
(`call_start`). A rule does the same without a question, in the transaction that would have asked:
so a rule that was revoked before that commit spares nothing, and no crash can lose or double it.
"""

from koboshi.domain.approval import OPERATOR, NotAnAnswer, why_no_answer
from koboshi.domain.command import QuestionKind
from koboshi.domain.ids import CallId, SessionId
from koboshi.domain.inbox import Words
from koboshi.domain.role import Role
from koboshi.domain.rule import ApprovalRule, RuleId
from koboshi.domain.session import Session
from koboshi.domain.transcript import ApprovalSeal
from koboshi.domain.turn import Claim, TurnState
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import maybe_number, number, text
from koboshi.kernel.facts import question_kind
from koboshi.kernel.rows import TurnRow, is_shown_in, read_question, read_session, whose_rules
from koboshi.kernel.transaction import Reading, Row, Transaction


def no_answer(
    tx: Reading, context: VerbContext, session: Session, turn: TurnRow, person: str, words: Words
) -> NotAnAnswer | None:
    """Why words of this person do not answer the open question; None if they do. The one place that
    decides it: for messages, for buttons, and for what waited while the gateway was down."""
    if turn.state is not TurnState.WAITING or turn.question_seq is None:
        return None
    question = read_question(tx, turn.question_seq)
    kind = question_kind(tx, turn.turn_id, question)
    is_allowed = context.allows(tx, session.route.channel, person)
    is_shown = kind is not QuestionKind.APPROVAL or is_shown_in(tx, session, turn)
    return why_no_answer(kind, question, words, is_allowed=is_allowed, is_shown=is_shown)


def spare_by_rule(
    tx: Transaction, context: VerbContext, claim: Claim, call_id: CallId, sealed: ApprovalSeal
) -> bool:
    """Approve the call by a rule of its chat, if there is one whose person is still an owner."""
    if not sealed.rule_key:
        return False
    chat = whose_rules(tx, claim.session_id)
    row = tx.row("rule_alive", session_id=chat, rule_key=sealed.rule_key)
    if row is None:
        return False
    rule_id, made_by = number(row[0]), text(row[1])
    channel = read_session(tx, claim.session_id).route.channel
    if made_by != OPERATOR and context.role_of(tx, channel, made_by) is not Role.OWNER:
        return False
    return bool(
        tx.change(
            "call_approve",
            turn_id=claim.turn_id,
            call_id=call_id,
            person=f"rule:{rule_id}",
            seal=sealed.seal,
            now=tx.now_ms,
        )
    )


def revoke_rule(tx: Transaction, rule_id: RuleId, by: str) -> ApprovalRule | None:
    """Revoke a rule; None if there is none that is in force."""
    if not tx.change("rule_revoke", rule_id=rule_id, by=by, now=tx.now_ms):
        return None
    row = tx.row("rule_by_id", rule_id=rule_id)
    assert row is not None
    return rule_of(row)


def rules_of(tx: Reading, session_id: SessionId, limit: int) -> tuple[ApprovalRule, ...]:
    """The rules of a chat that are in force, newest first."""
    rows = tx.rows("rules_of_session", session_id=session_id, limit=limit)
    return tuple(rule_of(row) for row in rows)


def rule_of(row: Row) -> ApprovalRule:
    rule_id, session_id, channel, chat, thread, tool, shown, made_by, made_ms, revoked_ms = row
    return ApprovalRule(
        rule_id=RuleId(number(rule_id)),
        session_id=SessionId(number(session_id)),
        channel=text(channel),
        chat=text(chat),
        thread=text(thread),
        tool=text(tool),
        shown=text(shown),
        made_by=text(made_by),
        made_ms=number(made_ms),
        revoked_ms=maybe_number(revoked_ms),
    )
