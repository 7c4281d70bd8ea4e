"""What the models were used for, as the operator asks for it."""

import msgspec

from koboshi.control.replies import Done
from koboshi.domain.route import Route
from koboshi.ports.store import Store


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one person used of one model in one chat."""

    route: Route
    person: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    seconds: int = 0
    """Of recordings that were written down."""


class UsageReply(Done, frozen=True, kw_only=True):
    usage: tuple[UsageRow, ...]


async def answer(store: Store, since_ms: int) -> UsageReply:
    return UsageReply(
        usage=tuple(
            UsageRow(
                route=each.route,
                person=each.line.person,
                model=each.line.model,
                calls=each.line.calls,
                tokens_in=each.line.tokens_in,
                tokens_out=each.line.tokens_out,
                seconds=each.line.seconds,
            )
            for each in await store.models.usage(since_ms)
        )
    )
