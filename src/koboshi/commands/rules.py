"""`/rules`: what was allowed for good in a chat. Pure."""

from koboshi.domain.command import Command, Response, SessionFacts
from koboshi.domain.durations import ago
from koboshi.domain.phrases import excerpt
from koboshi.domain.rule import rule_named

SHOWN_CHARS = 200


def rules(command: Command, facts: SessionFacts) -> Response:
    """List the rules of this chat, or revoke one of them."""
    word, _, named = command.argument.partition(" ")
    if not word:
        return Response(reply=_listed(facts))
    if not facts.role.is_owner:
        return Response(reply="Only an owner can take back what was allowed here.")
    rule_id = rule_named(named) if word.casefold() == "revoke" else None
    if rule_id is None:
        return Response(reply="/rules lists them, and /rules revoke r1 takes one back.")
    found = next((each for each in facts.rules if each.rule_id == rule_id), None)
    if found is None:
        return Response(reply=f"There is no rule r{rule_id} in this chat. /rules lists them.")
    words = f"Revoked {found.name}: I ask again before «{excerpt(found.shown, SHOWN_CHARS)}»."
    return Response(reply=words, revokes=found.rule_id)


def _listed(facts: SessionFacts) -> str:
    if not facts.rules:
        return "Nothing is allowed for good in this chat."
    lines = [
        f"{each.name} {excerpt(each.shown, SHOWN_CHARS)} (by {each.made_by}, "
        f"{ago(each.made_ms, facts.now_ms)})"
        for each in facts.rules
    ]
    begin = "Allowed for good in this chat, inside the boundary:"
    return "\n".join([begin, *lines, "/rules revoke r1 takes one back."])
