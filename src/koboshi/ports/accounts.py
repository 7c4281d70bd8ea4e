"""Which gateway receives and sends as an account, where several share a database."""

from collections.abc import Mapping
from typing import Protocol

from koboshi.domain.ids import ChannelName, WorkerId


class AccountOwners(Protocol):
    async def take(self, channel: ChannelName, worker_id: WorkerId) -> int | None:
        """From now on this worker alone has the account of the channel. Returns the epoch; None if
        another one has it and lives, or the channel has no account."""
        ...

    async def give_back(self, channel: ChannelName, worker_id: WorkerId, epoch: int) -> None:
        """It does not need it any more. Nothing changes if another one has it by now."""
        ...

    async def owners(self) -> Mapping[ChannelName, WorkerId]:
        """The workers that live and have an account."""
        ...
