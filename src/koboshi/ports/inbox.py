"""The verbs of what arrives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from koboshi.domain.command import Command, Response, SessionFacts
from koboshi.domain.ids import ChannelName, EntryId, SessionId
from koboshi.domain.retry import Retried
from koboshi.ports.channel import NO_WATERMARKS, Inbound, Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """An `Inbound` after a first look: a command if it is one, ignored if it is not for us."""

    inbound: Inbound
    command: Command | None = None
    ignored: str | None = None


Respond: TypeAlias = Callable[[Command, SessionFacts], Response]
"""What a command does; pure, called inside the transaction that stores the command."""


class Inbox(Protocol):
    async def bind(self, accounts: Mapping[ChannelName, str]) -> tuple[ChannelName, ...]:
        """Store the accounts of the channels, before anything is received or sent. Where the
        account changed, the old account's platform ids are forgotten, as after a move. Returns
        those channels."""
        ...

    async def connect(self, channel: ChannelName, account: str) -> None:
        """The platform confirms this account. The first time of a boot is stored: what was sent
        before it is a backlog. Messages from before accounts were stored belong to the first
        confirmed account."""
        ...

    async def cursor(self, channel: ChannelName, account: str = "") -> str | None:
        """How far the channel was read as this account."""
        ...

    async def watermarks(self, channel: ChannelName, account: str = "") -> Mapping[str, str]:
        """How far each chat was read as this account."""
        ...

    async def accept(
        self,
        channel: ChannelName,
        arrivals: Sequence[Arrival],
        *,
        cursor: str | None,
        respond: Respond,
        account: str = "",
        watermarks: Mapping[str, str] = NO_WATERMARKS,
        epoch: int | None = None,
    ) -> tuple[Receipt, ...]:
        """Store new messages for this account and how far we have read, in all (`cursor`) and in
        each chat (`watermarks`; an empty one forgets the chat), and do at once what
        follows: open a turn where the session is idle, answer its open question, carry out a
        command. Messages of a person who is not allowed are ignored; in a private chat they may be
        given a code. An external id of the account that is already stored changes nothing."""
        ...

    async def drop(self, entry_id: EntryId) -> bool:
        """A waiting message will not be taken up. False if nothing was done: it is in a turn, it
        does not wait, it is no message, or there is none."""
        ...

    async def retry(self, entry_id: EntryId, *, wants_anew: bool = False) -> Retried | None:
        """Ask an unanswered message again, as a new message that names the old one or its turn. One
        that was answered is asked again if another answer is wanted. Returns the new one, or the
        existing one if it was asked again before. None if there is no such message."""
        ...

    async def messages_waiting(self, session_id: SessionId) -> int:
        """How many messages of people wait in the session."""
        ...
