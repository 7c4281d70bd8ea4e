"""`gateway_restart`: the agent starts its own gateway again, and knows afterwards that it did."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from koboshi.domain.ids import WorkerId
from koboshi.domain.phrases import YES_NO
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.domain.worker import Worker
from koboshi.ports.model import ToolSpec
from koboshi.ports.tool import ToolAnswer, ToolContext, ToolFailed, TurnSetDown
from koboshi.tools.declared import complaint_about, decode_arguments, result_text, schema_of


class RestartArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(min_length=1, max_length=500, description="Why.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartTool:
    worker: Worker
    request: Callable[[WorkerId, str], Awaitable[None]]
    why_not: Callable[[], Awaitable[str]]
    """Why the gateway would not come back; empty if it would."""
    restarted_by: Callable[[str], Awaitable[Worker | None]]
    is_scheduled: bool = False
    """A schedule began the turn: then a person allows it."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name="gateway_restart",
            description=(
                "Start the gateway that you run in again, for example after its configuration was "
                "changed. You go on afterwards with the result of this call. Commands keep running."
            ),
            parameters=schema_of(RestartArguments),
        )

    def effect_of(self, arguments: str) -> Effect:  # noqa: ARG002  (the same for all)
        return Effect.RESUMABLE

    def need_of(self, arguments: str) -> Need:  # noqa: ARG002  (the contract's)
        return Need.APPROVAL if self.is_scheduled else Need.NOBODY

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        return f"A schedule wants to start the gateway again: {arguments}. May I?", YES_NO

    def complaint_about(self, arguments: str) -> str | None:
        return complaint_about(RestartArguments, arguments)

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        decode_arguments(RestartArguments, arguments)
        reason = await self.why_not()
        if reason:
            words = "the gateway was not restarted and goes on as it is, because it could not start"
            raise ToolFailed(f"{words} with the configuration as it is now: {reason}")
        await self.request(self.worker.worker_id, _by(context))
        raise TurnSetDown("the gateway is being restarted")

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        before = await self.restarted_by(_by(context))
        if before is None or before.worker_id == self.worker.worker_id:
            # It was never asked for, or has not happened yet.
            return await self.run(arguments, context)
        away_ms = self.worker.started_ms - (before.ended_ms or before.heartbeat_ms)
        text = result_text(
            "restarted",
            boot=self.worker.worker_id,
            version=self.worker.version,
            seconds=max(0, away_ms) / 1000,
        )
        return ToolAnswer(text=text)


def _by(context: ToolContext) -> str:
    return f"call:{context.claim.turn_id}/{context.call_id}"
