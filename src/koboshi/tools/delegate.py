"""`delegate`: the agent gives a part of its work to a sub-agent, and goes on.

The tool is repeatable by its call id: a kill behind its commit does not make two.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from koboshi.domain.child import NAME_CHARS_MAX, TASK_CHARS_MAX, ChildState, ChildTask
from koboshi.domain.phrases import excerpt
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.children import Children
from koboshi.ports.model import ToolSpec
from koboshi.ports.tool import ToolAnswer, ToolContext, ToolFailed
from koboshi.tools.declared import complaint_about, decode_arguments, result_text, schema_of


class DelegateArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=TASK_CHARS_MAX,
            description="What it is to do, and what its answer must contain. It sees nothing of "
            "this conversation: write down all that it needs to know.",
        ),
    ]
    name: Annotated[
        str, Meta(max_length=NAME_CHARS_MAX, description="A short name, for the person.")
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateTool:
    children: Children

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name="delegate",
            description=(
                "Give a self-contained part of your work to a sub-agent with a context of its own, "
                "in the same work folder. The call returns at once. You are told what the "
                "sub-agent answers when it has ended, in this turn or in a later one, so do not "
                "wait for it and do not do its work as well: go on with something else, or answer "
                "the person that it is under way. Several work side by side."
            ),
            parameters=schema_of(DelegateArguments),
        )

    def effect_of(self, _arguments: str) -> Effect:
        return Effect.REPEATABLE

    def need_of(self, _arguments: str) -> Need:
        return Need.NOBODY

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        raise NotImplementedError("a sub-agent is asked for without a question")

    def complaint_about(self, arguments: str) -> str | None:
        return complaint_about(DelegateArguments, arguments)

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        try:
            asked = decode_arguments(DelegateArguments, arguments)
        except ValueError as error:
            raise ToolFailed(str(error)) from None
        if not asked.task.strip():
            raise ToolFailed("`task` says nothing")
        name = excerpt(asked.name.strip() or asked.task, NAME_CHARS_MAX)
        task = ChildTask(name=name, task=asked.task)
        made = await self.children.delegate(context.claim, context.call_id, task)
        if made.child is None:
            raise ToolFailed(made.refusal)
        is_waiting = made.child.state is ChildState.WAITING
        told = "It begins when another one has ended." if is_waiting else "It works now."
        told = f"{told} You are told when it has ended."
        return ToolAnswer(text=result_text("delegated", id=made.child.shown, told=told))

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        return await self.run(arguments, context)
