"""What the platform's answers mean. Pure."""

from msgspec.structs import replace

from koboshi.channels.telegram.types import BotAnswer
from koboshi.domain.durations import wait_ms
from koboshi.domain.outbox import Later, Moved, Refused, SendOutcome, Sent, Unsure

TOO_MANY = 429
UNAUTHORIZED = frozenset({401, 404})
"""The token is wrong or was taken back: 404 is what an unknown one gets."""

NOT_MODIFIED = "message is not modified"
NOT_THERE = ("message to edit not found", "message_id_invalid", "message not found")
NOT_OURS = "message can't be edited"
NO_FORUM = "not a forum"
NO_RIGHT = "not enough rights"
AGAIN = "then remove the schedule and add it again"
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


def outcome_of_topic(answer: BotAnswer, *, is_private: bool) -> SendOutcome:
    """What became of a topic that was asked for, with the remedy where people have one."""
    if answer.ok:
        made = answer.result if isinstance(answer.result, dict) else {}
        return outcome_of(replace(answer, result={"message_id": made.get("message_thread_id")}))
    outcome, words = outcome_of(answer), answer.description.casefold()
    if not isinstance(outcome, Refused):
        return outcome
    if NO_FORUM in words:
        where = "for the bot at BotFather" if is_private else "in the settings of the group"
        return Refused(reason=f"topics are off in this chat; turn them on {where}, {AGAIN}")
    if NO_RIGHT in words:
        right = "make the bot an administrator with the right to manage topics"
        return Refused(reason=f"the bot may not make topics here; {right}, {AGAIN}")
    return outcome


def wait_ms_of(answer: BotAnswer) -> int:
    """How long the platform asks us to slow down."""
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
