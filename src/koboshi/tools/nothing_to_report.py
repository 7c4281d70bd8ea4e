"""`nothing_to_report`: the model of a quiet schedule ends its turn without a word to the person."""

from typing import Annotated

from msgspec import Meta, Struct

from koboshi.domain.action import NOTHING_TO_REPORT
from koboshi.domain.transcript import Effect
from koboshi.ports.tool import ToolContext
from koboshi.tools.declared import DeclaredTool, result_text


class NothingArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    why: Annotated[str, Meta(max_length=500, description="In a few words, for the record.")] = ""


async def _nothing(_arguments: NothingArguments, _context: ToolContext) -> str:
    return result_text("ok")


NOTHING = DeclaredTool(
    name=NOTHING_TO_REPORT,
    description=(
        "End this scheduled work without telling the person anything, because there is nothing "
        "worth telling. Call it instead of an answer."
    ),
    takes=NothingArguments,
    does=_nothing,
    effect=Effect.NONE,
)
