"""What the owner does about approvals: answers one on the page, and takes back what was allowed for
good."""

from koboshi.control.replies import Done, RuleList, RuleRevoked, refusal
from koboshi.control.requests import (
    AnswerApproval,
    ApproveForGood,
    DenyQuestion,
    ListRules,
    RevokeRule,
)
from koboshi.domain.command import Ruling
from koboshi.domain.ids import Seq
from koboshi.domain.rule import rule_named
from koboshi.ports.store import Store

LISTED_MAX = 1_000


async def rules(store: Store, request: ListRules | RevokeRule) -> Done:
    match request:
        case ListRules():
            return await listed(store)
        case RevokeRule(what=rule):
            return await revoke(store, rule)


async def listed(store: Store) -> RuleList:
    return RuleList(rules=await store.approvals.rules(LISTED_MAX))


async def revoke(store: Store, what: str) -> Done:
    rule_id = rule_named(what)
    revoked = None if rule_id is None else await store.approvals.revoke(rule_id)
    if revoked is None:
        words = f'there is no rule "{what}" in force; `koboshi rules list` shows them, as r1'
        return refusal("not-found", words)
    return RuleRevoked(rule=revoked)


async def answer(store: Store, request: AnswerApproval) -> Done:
    digits = request.what
    is_number = digits.isascii() and digits.isdigit() and 0 < len(digits) < 19
    ruling = Ruling(
        is_yes=not isinstance(request, DenyQuestion), keeps=isinstance(request, ApproveForGood)
    )
    if is_number and await store.approvals.rule_on(Seq(int(digits)), ruling):
        return Done()
    words = (
        f'"{digits}" is not an open approval: it was answered, has expired, or its turn has ended'
    )
    return refusal("not-found", words)
