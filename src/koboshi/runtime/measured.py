"""A channel and a model that note how long each operation took, and change nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from koboshi.control.neighbours import ModelStanding
from koboshi.domain.errors import ModelBusy, ModelOverfull, ModelRefused
from koboshi.domain.files import Attachment
from koboshi.domain.hearing import Hearing
from koboshi.domain.ids import ChannelName, TurnId
from koboshi.domain.outbox import Delivery, Later, Near, SendOutcome, Sent, Unsure
from koboshi.domain.route import Route
from koboshi.ports.channel import NO_WATERMARKS, Abilities, Accept, Channel, Inbound, Receipt
from koboshi.ports.clock import Clock
from koboshi.ports.model import Model, ModelReply, OnText, Request
from koboshi.runtime.meter import Labels, Meter, labelled


class MeasuredChannel:
    def __init__(self, channel: Channel, meter: Meter, clock: Clock) -> None:
        self._channel = channel
        self._meter = meter
        self._clock = clock
        self._platform = channel.name.partition(":")[0]
        self._here = labelled(platform=self._platform)
        self._was_connected = False

    @property
    def name(self) -> ChannelName:
        return self._channel.name

    @property
    def account(self) -> str:
        return self._channel.account

    @property
    def abilities(self) -> Abilities:
        return self._channel.abilities

    @property
    def trouble(self) -> str | None:
        return self._channel.trouble

    @property
    def hearing(self) -> Hearing:
        return self._channel.hearing

    async def receive(self, cursor: str | None, accept: Accept) -> None:
        async def timed(
            batch: Sequence[Inbound],
            cursor: str | None = None,
            watermarks: Mapping[str, str] = NO_WATERMARKS,
        ) -> tuple[Receipt, ...]:
            if not batch and cursor is None and not watermarks:
                return await accept(batch)  # only that it is connected
            began = self._clock.monotonic()
            receipts = await accept(batch, cursor, watermarks)
            took = self._clock.monotonic() - began
            self._meter.time("koboshi_accept_duration_seconds", self._here, took)
            for receipt in receipts:
                if receipt.is_duplicate:
                    self._meter.count("koboshi_inbox_duplicates_total", self._here)
            return receipts

        if self._was_connected:
            self._meter.count("koboshi_adapter_reconnects_total", self._here)
        self._was_connected = True
        await self._channel.receive(cursor, timed)

    def split(self, text: str) -> tuple[str, ...]:
        return self._channel.split(text)

    async def pace(self, route: Route) -> None:
        await self._channel.pace(route)

    async def send(self, delivery: Delivery) -> SendOutcome:
        began, outcome = self._clock.monotonic(), "broke"
        try:
            sent = await self._channel.send(delivery)
            outcome = type(sent).__name__.lower()
        finally:
            took = self._clock.monotonic() - began
            labels = labelled(platform=self._platform, outcome=outcome)
            self._meter.time("koboshi_send_duration_seconds", labels, took)
        if isinstance(sent, Unsure):
            self._ambiguous("open")
        if delivery.may_be_duplicate:
            self._ambiguous("labelled")
        self._heed(sent)
        return sent

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:
        found = await self._channel.find(delivery, near)
        if isinstance(found, Sent | Later):
            self._ambiguous("arrived" if isinstance(found, Sent) else "absent")
        return found

    async def typing(self, route: Route) -> None:
        await self._channel.typing(route)

    async def edit(self, route: Route, platform_id: str, text: str) -> None:
        await self._channel.edit(route, platform_id, text)

    async def draft(self, route: Route, turn_id: TurnId, text: str) -> None:
        await self._channel.draft(route, turn_id, text)

    async def fetch(self, attachment: Attachment, path: Path) -> None:
        await self._channel.fetch(attachment, path)

    def _ambiguous(self, resolution: str) -> None:
        labels = labelled(platform=self._platform, resolution=resolution)
        self._meter.count("koboshi_outbox_ambiguous_total", labels)

    def _heed(self, outcome: SendOutcome) -> None:
        if isinstance(outcome, Later | Unsure) and outcome.wait_ms:
            seconds = outcome.wait_ms / 1000
            self._meter.count("koboshi_rate_limited_seconds_total", self._here, seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredModel:
    model: Model
    meter: Meter
    clock: Clock
    name: str
    """As configured: `provider:model`."""
    standing: ModelStanding = field(default_factory=ModelStanding)

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        began, outcome, reason = self.clock.monotonic(), "ended", ""
        try:
            reply = await self.model.respond(request, on_text)
            outcome = "ok"
        except ModelBusy as error:
            outcome, reason = "busy", error.reason
            raise
        except ModelRefused as error:
            outcome = "overfull" if isinstance(error, ModelOverfull) else "refused"
            reason = error.reason
            raise
        finally:
            # A stopped turn says nothing about the model.
            if outcome != "ended":
                self.standing.note(self.clock, outcome, reason)
            took = self.clock.monotonic() - began
            labels = self._labels(outcome=outcome)
            self.meter.time("koboshi_llm_request_duration_seconds", labels, took)
        for direction, tokens in (("in", reply.tokens_in), ("out", reply.tokens_out)):
            if tokens:
                labels = self._labels(direction=direction)
                self.meter.count("koboshi_llm_tokens_total", labels, tokens)
        return reply

    def _labels(self, **more: str) -> Labels:
        provider, _, model = self.name.partition(":")
        return labelled(provider=provider, model=model, **more)
