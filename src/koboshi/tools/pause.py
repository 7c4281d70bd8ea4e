"""`pause`: wait a little."""

from typing import Annotated

import anyio
from msgspec import Meta, Struct

from koboshi.domain.transcript import Effect
from koboshi.ports.tool import Load, ToolContext
from koboshi.tools.declared import DeclaredTool, result_text

SECONDS_MAX = 60


class PauseArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    seconds: Annotated[float, Meta(ge=0, le=SECONDS_MAX, description="How long to wait.")]


async def _pause(arguments: PauseArguments, _: ToolContext) -> str:
    await anyio.sleep(arguments.seconds)
    slept = arguments.seconds
    return result_text("ok", slept=int(slept) if slept.is_integer() else slept)


PAUSE = DeclaredTool(
    name="pause",
    description=f"Wait for some seconds, at most {SECONDS_MAX}.",
    takes=PauseArguments,
    does=_pause,
    effect=Effect.NONE,
    load=Load.WAIT,
)
