"""A channel of one account on a platform: what is the same on each of them."""

from typing import Protocol

from koboshi.channels.common.pacing import RateLimiter
from koboshi.domain.hearing import Hearing
from koboshi.domain.ids import ChannelName
from koboshi.domain.route import Route
from koboshi.ports.channel import Abilities, Accept


class ReceivingPart(Protocol):
    @property
    def trouble(self) -> str | None: ...

    @property
    def hearing(self) -> Hearing: ...

    async def run(self, cursor: str | None, accept: Accept) -> None: ...


class AccountOptions(Protocol):
    @property
    def name(self) -> ChannelName: ...

    @property
    def account(self) -> str: ...


def usual_abilities(ambiguous: str, question_units_max: int) -> Abilities:
    """What a platform of people's accounts can do. `ambiguous` is the setting for sends of unknown
    outcome."""
    return Abilities(
        edits=True,
        threads=True,
        typing=True,
        finds_sent=ambiguous == "probe",
        holds_unsure=ambiguous == "hold",
        interactive=True,
        takes_files=True,
        exclusive=True,
        question_units_max=question_units_max,
    )


class AccountChannel:
    def __init__(
        self, options: AccountOptions, listens: ReceivingPart, manners: RateLimiter
    ) -> None:
        self._known_as, self._listens, self._manners = options, listens, manners

    @property
    def name(self) -> ChannelName:
        return self._known_as.name

    @property
    def account(self) -> str:
        return self._known_as.account

    @property
    def trouble(self) -> str | None:
        """Why nothing can be received at the moment; None if it can."""
        return self._listens.trouble

    @property
    def hearing(self) -> Hearing:
        return self._listens.hearing

    async def receive(self, cursor: str | None, accept: Accept) -> None:
        """Raises ChannelUnusable if a person has to change something, and what the client of the
        platform raises if that cannot be had."""
        await self._listens.run(cursor, accept)

    async def pace(self, route: Route) -> None:
        await self._manners.wait_for_chat(route.chat)
