"""Whether a message arrived whose id we were not told.

Bots cannot read what they said. But an edit that changes nothing is answered in three ways: "not
modified" (it is there and ours), "not found", and "can't be edited" (not ours). So the ids
above the last one that was there before are tried, one by one, with the very buttons that the
message was sent with. That is only done where no other message of ours can be among them: then
nothing of anyone is altered, and a message of ours can only be the one that is looked for.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from koboshi.channels.telegram.outcomes import is_missing, is_ours
from koboshi.channels.telegram.types import BotAnswer
from koboshi.domain.outbox import Delivery, Later, Near, SendOutcome, Sent

PROBES_MAX = 48
SPARSE_PROBES_MAX = 16
"""Where a missing message proves nothing, the search is short."""
MISSING_MAX = 4
"""In a chat that counts its own messages, so many missing in a row are its end."""

Probe = Callable[[int], Awaitable[BotAnswer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdSpan:
    """The ids that the message can have."""

    first: int
    known: frozenset[int]
    is_dense: bool
    """The chat counts its own messages: none are missing between two of them. In others, one count
    goes over all chats of the bot."""

    @property
    def width(self) -> int:
        return PROBES_MAX if self.is_dense else SPARSE_PROBES_MAX


def span_of(delivery: Delivery, near: Near) -> IdSpan | None:
    """Where to look; None if what is there could be another message of ours, or could be
    anywhere."""
    before = [int(each) for each in near.before if each.isdigit()]
    if not near.is_alone or not before:
        return None
    return IdSpan(
        first=max(before) + 1,
        known=frozenset(int(each) for each in near.known if each.isdigit()),
        is_dense=delivery.route.chat.startswith("-100"),
    )


async def look(span: IdSpan, probe: Probe) -> SendOutcome | None:
    """Sent if it is there, Later if it certainly is not, None if that cannot be told."""
    missing = 0
    for number in range(span.first, span.first + span.width):
        if number in span.known:
            missing = 0
            continue
        answer = await probe(number)
        match is_ours(answer):
            case True:
                return Sent(platform_id=str(number))
            case None:
                return None
            case False:
                missing = missing + 1 if is_missing(answer) else 0
        if span.is_dense and missing >= MISSING_MAX:
            return Later(wait_ms=0, reason="it is not there")
    return None
