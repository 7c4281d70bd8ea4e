"""A channel that cannot be made: it is down, with the reason, and deliveries there wait."""

from dataclasses import dataclass
from pathlib import Path

from koboshi.channels.common.optional import OptionalParts
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.files import Attachment
from koboshi.domain.ids import ChannelName
from koboshi.domain.outbox import Delivery, Later, SendOutcome
from koboshi.ports.channel import Abilities, Accept


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentChannel(OptionalParts):
    name: ChannelName
    reason: str

    @property
    def abilities(self) -> Abilities:
        return Abilities()

    @property
    def trouble(self) -> str | None:
        return self.reason

    async def receive(self, cursor: str | None, accept: Accept) -> None:  # noqa: ARG002
        raise ChannelUnusable(self.reason)

    async def send(self, delivery: Delivery) -> SendOutcome:  # noqa: ARG002
        return Later(wait_ms=0, reason=self.reason)

    async def fetch(self, attachment: Attachment, path: Path) -> None:  # noqa: ARG002
        raise ConnectionError(self.reason)
