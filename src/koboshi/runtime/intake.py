"""Channel to inbox: a text is a command or a message. The store decides who may write."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog
from anyio import sleep

from koboshi.commands.jobs import asks_for_log
from koboshi.commands.parse import message_in, parse_command
from koboshi.domain.command import CommandName
from koboshi.domain.errors import ChannelUnusable, StoreFailed
from koboshi.domain.ids import ProcessId
from koboshi.domain.inbox import Words
from koboshi.domain.people import name_kept
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.shutdown import nothing_against_it
from koboshi.ports.channel import NO_WATERMARKS, Accept, Channel, Inbound, Receipt
from koboshi.ports.clock import Clock
from koboshi.ports.store import Arrival, Respond, Store
from koboshi.runtime.opening import Opening
from koboshi.runtime.owning import Owning

log = structlog.get_logger()

RECONNECT_SECONDS = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
REFUSED_SECONDS = (1.0, 2.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0)
"""The pause while a person has to change something first."""
STEADY_SECONDS = 60.0
"""A connection that held this long resets the back-off."""
PIECE_MAX = 20
"""Messages in one commit. A commit of more would keep other channels waiting."""
CROWD = 10
"""So many messages at once are a flood: behind them there is a pause for the other channels."""
REST = 2.0
"""How long the pause is, in the time that they took."""
REST_SECONDS_MAX = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    store: Store
    clock: Clock
    respond: Respond
    output_of: Callable[[ProcessId], Awaitable[str]]
    """The last output of a process, for commands that ask for it."""
    why_not_restart: Callable[[], Awaitable[str]] = nothing_against_it
    """Why the gateway would not come back from a restart; empty if it would."""
    opening: Opening = field(default_factory=Opening)
    owning: Owning | None = None
    """Who has which account, where several gateways share a database."""

    def accept_for(self, channel: Channel) -> Accept:
        """What the channel calls with everything it receives."""

        async def accept(
            batch: Sequence[Inbound],
            cursor: str | None = None,
            watermarks: Mapping[str, str] = NO_WATERMARKS,
        ) -> tuple[Receipt, ...]:
            if not batch and cursor is None and not watermarks:
                self.opening.accept()
                await self.store.inbox.connect(channel.name, channel.account)
                return ()
            receipts: tuple[Receipt, ...] = ()
            while len(batch) > PIECE_MAX:
                # Places stand for all before them, so they are stored with the last piece.
                receipts += await self._accept(channel, batch[:PIECE_MAX])
                batch = batch[PIECE_MAX:]
            return receipts + await self._accept(channel, batch, cursor, watermarks)

        return accept

    async def _accept(
        self,
        channel: Channel,
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        """Store it. A channel in a flood is kept off the processor for longer than it had it."""
        began = self.clock.monotonic()
        arrivals = [await self._with_facts(self.look_at(inbound)) for inbound in batch]
        receipts = await self.store.inbox.accept(
            channel.name,
            arrivals,
            cursor=cursor,
            respond=self.respond,
            account=channel.account,
            watermarks=watermarks,
            epoch=None if self.owning is None else self.owning.epoch_of(channel.name),
        )
        if len(batch) >= CROWD:
            await sleep(min(REST * (self.clock.monotonic() - began), REST_SECONDS_MAX))
        return receipts

    def look_at(self, inbound: Inbound) -> Arrival:
        """What an inbound is, provided its sender is allowed."""
        sender_name = storable(inbound.sender_name)
        name = name_kept(sender_name) if inbound.is_group else ""
        words = replace(inbound.words, text=storable(inbound.words.text), name=name)
        inbound = replace(inbound, words=words, sender_name=sender_name)
        if inbound.ignored is not None:
            return Arrival(inbound=inbound, ignored=inbound.ignored)
        if not words.text.strip() and words.choice_id is None and not words.files:
            return Arrival(inbound=inbound, ignored="blank")
        # What another person wrote is read by the agent, and is never a command.
        command = None if words.is_forwarded else parse_command(_said(words))
        carried = None if command is None else message_in(command)
        if carried is None:
            return Arrival(inbound=inbound, command=command)
        words = replace(inbound.words, text=carried[0], busy=carried[1])
        return Arrival(inbound=replace(inbound, words=words))

    async def _with_facts(self, arrival: Arrival) -> Arrival:
        """Facts that a command needs and no row holds are read before the transaction that answers
        it."""
        command = arrival.command
        if command is None:
            return arrival
        is_restart = command.name is CommandName.RESTART
        if not is_restart and not asks_for_log(command):
            return arrival
        place, sender = arrival.inbound.route, arrival.inbound.sender
        if not await self.store.people.is_allowed(place.channel, sender):
            return arrival  # not allowed: nothing is read, and nothing answered
        if is_restart:
            trouble = await self.why_not_restart()
            return replace(arrival, command=replace(command, trouble=trouble))
        assert command.process_id is not None, "a log is asked for by its process"
        output = await self.output_of(command.process_id)
        return replace(arrival, command=replace(command, output=output))

    async def keep_open(self, channel: Channel) -> None:
        """Receive for ever, and where one gateway alone may, whenever it is this one."""
        if self.owning is not None and channel.abilities.exclusive and channel.account:
            await self.owning.keep(channel, self.keep_receiving)
        else:
            await self.keep_receiving(channel)

    async def keep_receiving(self, channel: Channel) -> None:
        """Receive for ever: reconnect after a pause, and after a longer one if the connection was
        refused.

        Raises ChannelUnusable if the first attempt of every channel shows that it cannot work as
        it is configured.
        """
        failures, is_first = 0, True
        while True:
            began = self.clock.monotonic()
            pauses: Sequence[float] = RECONNECT_SECONDS
            try:
                cursor = await self.store.inbox.cursor(channel.name, channel.account)
                await channel.receive(cursor, self.accept_for(channel))
            except StoreFailed:
                raise
            except ChannelUnusable as error:
                log.warning("channel_unusable", channel=channel.name, error=str(error))
                pauses = REFUSED_SECONDS
                if is_first:
                    self.opening.refuse(channel.name, error)
            except Exception as error:  # a channel's failure is its own; the others go on
                missing = shortage_in(error)
                log.warning(
                    "channel_failed",
                    channel=channel.name,
                    error=missing or str(error),
                    exc_info=missing is None,
                )
                if is_first:
                    self.opening.accept()
            if self.clock.monotonic() - began > STEADY_SECONDS:
                failures = 0
            await sleep(pauses[min(failures, len(pauses) - 1)])
            failures, is_first = failures + 1, False


def _said(words: Words) -> str:
    """What was written; or the command that a button below no question stands for. Pressing it is
    the same as writing it."""
    pressed = words.choice_id or ""
    return pressed if pressed.startswith("/") and not words.question else words.text


def storable(text: str) -> str:
    """The text without what cannot be stored: halves of characters, from broken encodings."""
    return text.encode("utf-8", "replace").decode()
