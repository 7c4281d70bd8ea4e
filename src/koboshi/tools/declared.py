"""How a tool is made: a struct for its arguments, a function that does it, and a declaration.

The struct is the one truth about the arguments: the schema that the model is shown, the check
before a call is stored, and the values that the function gets are all taken from it.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

import msgspec

from koboshi.domain.approval import Approval
from koboshi.domain.phrases import YES_NO
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.model import ToolSpec
from koboshi.ports.tool import Load, ToolAnswer, ToolContext, ToolFailed

A = TypeVar("A", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTool(Generic[A]):
    """A tool (`ports.tool.Tool`) that takes the fields of `takes` and does `does`.

    `takes` should forbid unknown fields, so that a misspelt argument is a complaint and not
    silence. A call cannot be taken up after a crash: it is run again or not, as `effect` says.
    """

    name: str
    description: str
    takes: type[A]
    does: Callable[[A, ToolContext], Awaitable[str]]
    effect: Effect = Effect.ONCE
    need: Need = Need.NOBODY
    load: Load = Load.WORK
    asks: Callable[[str], tuple[str, tuple[Choice, ...]]] | None = None
    approves: Callable[[A], Approval | None] | None = None
    """What a person is asked to allow before a call; None where a call needs no person."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name, description=self.description, parameters=schema_of(self.takes)
        )

    def effect_of(self, arguments: str) -> Effect:  # noqa: ARG002  (the contract's; ours is fixed)
        return self.effect

    def need_of(self, arguments: str) -> Need:
        if self.approves is None or self.complaint_about(arguments) is not None:
            return self.need
        is_asked = self.approves(decode_arguments(self.takes, arguments)) is not None
        return Need.APPROVAL if is_asked else self.need

    async def approval_of(self, arguments: str) -> Approval:
        decoded = decode_arguments(self.takes, arguments)
        approval = None if self.approves is None else self.approves(decoded)
        if approval is not None:
            return approval
        return Approval(lead=self.question_of(arguments)[0], literal=arguments)

    def load_of(self, arguments: str) -> Load:  # noqa: ARG002  (the contract's; ours is fixed)
        return self.load

    def complaint_about(self, arguments: str) -> str | None:
        return complaint_about(self.takes, arguments)

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        if self.asks is None:
            return f"May I run {self.name} with this?", YES_NO
        return self.asks(arguments)

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        try:
            decoded = decode_arguments(self.takes, arguments)
        except ValueError as error:
            raise ToolFailed(str(error)) from None
        return ToolAnswer(text=await self.does(decoded, context))

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:  # noqa: ARG002
        raise RuntimeError(f"call {context.call_id} of {self.name} cannot be taken up")


def decode_arguments(takes: type[A], arguments: str) -> A:
    """The arguments of a call. Raises ValueError, in words for the model, if they do not fit."""
    try:
        return msgspec.json.decode(arguments, type=takes)
    except RecursionError:
        raise ValueError("the arguments are nested too deeply") from None
    except ValueError as error:
        raise ValueError(_in_words(str(error))) from None


def complaint_about(takes: type[A], arguments: str) -> str | None:
    """Why the arguments do not fit, naming the field, in words for the model; None if they do."""
    try:
        decode_arguments(takes, arguments)
    except ValueError as error:
        return str(error)
    return None


def result_text(status: str, **fields: object) -> str:
    """The result of a call: one JSON object, `status` first."""
    return msgspec.json.encode({"status": status, **fields}).decode()


@cache
def schema_of(takes: type[msgspec.Struct]) -> str:
    """The JSON schema of the arguments, as text. The struct must be flat: no structs inside."""
    _, components = msgspec.json.schema_components([takes])
    schema = {key: value for key, value in components[takes.__name__].items() if key != "title"}
    return msgspec.json.encode(schema).decode()


_PLACE = re.compile(r"(?P<wrong>.*) - at `\$\.?(?P<field>.*)`", re.DOTALL)
_FIELD = re.compile(r"Object (?P<wrong>missing|contains) \w+ field `(?P<field>.*)`", re.DOTALL)
_NAMED = {"missing": "is missing", "contains": "is not an argument of this tool"}


def _in_words(complaint: str) -> str:
    """What the decoder complained about, with the field first."""
    named = _FIELD.match(complaint)
    if named:
        return f"`{named['field']}` {_NAMED[named['wrong']]}"
    placed = _PLACE.fullmatch(complaint)
    if placed:
        return f"`{placed['field']}` does not fit: {_lowered(placed['wrong'])}"
    return f"the arguments do not fit: {_lowered(complaint)}"


def _lowered(words: str) -> str:
    return words[:1].lower() + words[1:] if not words.startswith("JSON") else words
