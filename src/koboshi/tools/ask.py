"""`ask`: put a question to the person. It is never run: the turn waits, and their words are the
result."""

from typing import Annotated, NoReturn

from msgspec import Meta, Struct

from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.tool import ToolContext
from koboshi.tools.declared import DeclaredTool, decode_arguments

QUESTION_CHARS_MAX = 2_000
CHOICE_CHARS_MAX = 100
CHOICES_MIN = 2
CHOICES_MAX = 10

_Label = Annotated[str, Meta(min_length=1, max_length=CHOICE_CHARS_MAX)]
_Question = Annotated[
    str,
    Meta(min_length=1, max_length=QUESTION_CHARS_MAX, description="What the person is asked."),
]
_Choices = Annotated[
    tuple[_Label, ...],
    Meta(
        min_length=CHOICES_MIN,
        max_length=CHOICES_MAX,
        description="What they can pick from. Leave it out for an open question.",
    ),
]


class AskArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    question: _Question
    choices: _Choices | None = None

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise ValueError("`question` is blank")
        labels = [label.strip().casefold() for label in self.choices or ()]
        if not all(labels):
            raise ValueError("`choices` holds a blank one")
        if len(set(labels)) < len(labels):
            raise ValueError("`choices` holds the same one twice")


def question_of(arguments: str) -> tuple[str, tuple[Choice, ...]]:
    """What a call of `ask` wants to know, and what there is to choose from.

    Raises ValueError for arguments that the tool complains about.
    """
    asked = decode_arguments(AskArguments, arguments)
    choices = tuple(
        Choice(choice_id=str(number), label=label.strip())
        for number, label in enumerate(asked.choices or (), start=1)
    )
    return asked.question.strip(), choices


async def _never(_: AskArguments, context: ToolContext) -> NoReturn:
    raise RuntimeError(f"call {context.call_id} is a question; the person's words are its result")


ASK = DeclaredTool(
    name="ask",
    description="Ask the person something you need to know to go on, and wait for the answer.",
    takes=AskArguments,
    does=_never,
    effect=Effect.NONE,
    need=Need.ANSWER,
    asks=question_of,
)
