"""A person's decisions about turns that no worker runs: `/resume`, `/drop`, `/retry`. Pure."""

from koboshi.domain.command import (
    ActionStanding,
    Command,
    OperatorAction,
    Response,
    Retry,
    SessionFacts,
    TurnGlance,
    standing_of,
)
from koboshi.domain.phrases import excerpt

NOT_ALLOWED = (
    "a person whose message is in it may not use this gateway any more. Write what you want, and "
    "I leave that aside."
)


def resume(_command: Command, facts: SessionFacts) -> Response:
    """What `/resume` does."""
    turn = facts.open_turn
    if turn is None:
        offer = f" {_retry_hint(facts)}" if facts.failed is not None else ""
        return Response(reply=f"There is nothing to resume.{offer}")
    obstacle = _obstacle(turn, facts)
    if obstacle is not None:
        return Response(reply=f"There is nothing to resume: {obstacle}")
    if not turn.is_allowed:
        return Response(reply=f"I cannot go on with {_request(turn)}: {NOT_ALLOWED}")
    return Response(reply=f"I go on with {_request(turn)}.", will=OperatorAction.RESUME)


def drop(_command: Command, facts: SessionFacts) -> Response:
    """What `/drop` does."""
    turn = facts.open_turn
    if turn is None:
        if facts.failed is not None and facts.last_turn is not None:
            said = "has ended already; nothing of it is left to drop."
            return Response(reply=f"«{excerpt(facts.failed.words)}» {said}")
        return Response(reply="There is nothing to drop.")
    obstacle = _obstacle(turn, facts)
    if obstacle is not None:
        return Response(reply=f"There is nothing to drop: {obstacle} /stop stops it.")
    return Response(reply=f"Dropped: {_request(turn)}.", will=OperatorAction.DROP)


def retry(_command: Command, facts: SessionFacts) -> Response:
    """What `/retry` does. A turn is asked again once; the new turn can be retried in turn."""
    turn, failed = facts.open_turn, facts.failed
    if turn is not None and _obstacle(turn, facts) is None:
        return Response(
            reply=f"{_request(turn)} has not ended: /resume goes on with it, /drop ends it."
        )
    if failed is None:
        return Response(reply="There is nothing to retry: nothing has failed here.")
    if not failed.words:
        return Response(
            reply="There is nothing to retry: what failed was begun by a report of a background "
            "process. Write what you want me to do."
        )
    after = "" if turn is None else " after this one"
    words = f"I try «{excerpt(failed.words)}» once more{after}."
    return Response(reply=words, retry=Retry(turn_id=failed.turn_id))


def _obstacle(turn: TurnGlance, facts: SessionFacts) -> str | None:
    """Why a person's decision does not apply to the open turn, in a sentence; None if it does."""
    standing = standing_of(
        turn.state,
        is_worked_on=turn.is_worked_on,
        is_claimed_before=turn.is_claimed_before,
        asked=None if facts.question is None else facts.question.kind,
    )
    match standing:
        case ActionStanding.LEFT:
            return None
        case ActionStanding.WORKED_ON:
            return f"I am working on {_request(turn)}."
        case ActionStanding.ASKED:
            return f"I wait for your answer in {_request(turn)}."
        case _:
            return f"{_request(turn)} is next in the queue."


def _retry_hint(facts: SessionFacts) -> str:
    words = "" if facts.failed is None else facts.failed.words
    return f"/retry asks «{excerpt(words)}» again." if words else ""


def _request(turn: TurnGlance) -> str:
    words = excerpt(turn.request)
    return f"«{words}»" if words else "what a background process reported"
