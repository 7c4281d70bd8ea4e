"""The model: a transcript goes in, one reply comes out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from koboshi.domain.ids import SessionId, TurnId
from koboshi.domain.transcript import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model sees it. `parameters` is a JSON schema, as text."""

    name: str
    description: str
    parameters: str
    sends_files: bool = False
    """The model is told of it only where the person can be sent files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    session_id: SessionId
    turn_id: TurnId
    system: str
    steps: tuple[Step, ...]
    tools: tuple[ToolSpec, ...]
    wants_summary: bool = False
    """The reply is a summary of the steps, not the next one of the conversation."""
    wants_verdict: bool = False
    """The reply is a verdict about a goal, as one JSON object."""
    tokens_out_max: int | None = None
    """The longest that the reply may be, thoughts and calls included: so much is reserved for it.
    None: as long as the model likes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    provider_id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A whole reply: the stream reached its end, and the arguments of every call parse."""

    text: str
    calls: tuple[CallRequest, ...] = ()
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    raw: str = ""
    is_cut: bool = False
    """The text is not whole: it reached the longest that it may be."""


OnText: TypeAlias = Callable[[str], None]
"""Called with each piece of the text as it comes, for display: nothing counts before the end."""


class Model(Protocol):
    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        """The model's next reply. Raises ModelBusy (ask again; ModelCut if a call was cut at the
        longest that a reply may be), ModelOverfull (ask for less) or ModelRefused (do not ask)."""
        ...
