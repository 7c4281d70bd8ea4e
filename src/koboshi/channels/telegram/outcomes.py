"""What the platform's answers mean. Pure."""

from koboshi.channels.telegram.types import BotAnswer
from koboshi.domain.durations import wait_ms
from koboshi.domain.outbox import Later, Moved, Refused, SendOutcome, Sent, Unsure

TOO_MANY = 429
UNAUTHORIZED = frozenset({401, 404})
"""The token is wrong or was taken back: 404 is what an unknown one gets."""

NOT_MODIFIED = "message is not modified"
NOT_THERE = ("message to edit not found", "message_id_invalid", "message not found")
NOT_OURS = "message can't be edited"
BAD_ENTITIES = ("can't parse entities", "entity_", "entities")


def outcome_of(answer: BotAnswer) -> SendOutcome:
    """What became of a message that was sent. Whatever is not taken was certainly not sent."""
    if answer.ok:
        number = answer.result.get("message_id") if isinstance(answer.result, dict) else None
        if isinstance(number, int):
            return Sent(platform_id=str(number))
        return Unsure(reason="the platform took it and did not say as what")
    parameters = answer.parameters
    if parameters is not None and parameters.migrate_to_chat_id is not None:
        return Moved(chat=str(parameters.migrate_to_chat_id))
    if answer.error_code == TOO_MANY:
        return Later(wait_ms=wait_ms_of(answer), reason=answer.description)
    if answer.error_code in UNAUTHORIZED and "bad request" not in answer.description.casefold():
        # The platform does not ask for quiet: it goes out at once when the token is taken again.
        return Later(wait_ms=0, reason=f"the token is refused: {answer.description}")
    return Refused(reason=answer.description or f"the platform answered {answer.error_code}")


def wait_ms_of(answer: BotAnswer) -> int:
    """How long the platform wants to be left in peace."""
    wait = answer.parameters.retry_after if answer.parameters is not None else None
    return max(wait_ms(wait or 1), 1)


def complains_of_entities(answer: BotAnswer) -> bool:
    """Whether it was the formatting that was not taken."""
    words = answer.description.casefold()
    return not answer.ok and any(mark in words for mark in BAD_ENTITIES)


def is_ours(answer: BotAnswer) -> bool | None:
    """Whether a message is there and ours, by what became of an edit that changes nothing: False if
    it is not there, or not ours; None if that cannot be told."""
    words = answer.description.casefold()
    if NOT_MODIFIED in words:
        return True
    if is_missing(answer) or NOT_OURS in words:
        return False
    return None


def is_missing(answer: BotAnswer) -> bool:
    words = answer.description.casefold()
    return any(mark in words for mark in NOT_THERE)
