"""What the answers to a send mean. Pure."""

from koboshi.channels.discord.client import TOO_MANY, ApiAnswer
from koboshi.channels.discord.types import ChannelMessage
from koboshi.domain.durations import wait_ms
from koboshi.domain.outbox import Later, Refused, SendOutcome, Sent, Unsure

UNAUTHORIZED = 401


def outcome_of(answer: ApiAnswer) -> SendOutcome:
    """What became of a message that was sent. Whatever is not taken was certainly not sent."""
    if answer.is_good:
        return Sent(platform_id=answer.read(ChannelMessage).id)
    refusal = answer.refusal
    if answer.status == TOO_MANY:
        return Later(wait_ms=wait_ms(refusal.retry_after or 1.0), reason=refusal.message)
    if answer.status == UNAUTHORIZED:
        # The platform does not ask for quiet: it goes out at once when the token is taken again.
        return Later(wait_ms=0, reason=f"the token is refused: {refusal.message}")
    if answer.status in range(300, 400):
        return Unsure(reason=f"the platform answered {answer.status}")
    return Refused(reason=f"{refusal.message or 'refused'} ({refusal.code or answer.status})")
