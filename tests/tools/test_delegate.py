"""`delegate`: what the model is told of a sub-agent that it asked for."""

import json

import pytest

from koboshi.domain.child import ChildTask, Delegated
from koboshi.domain.ids import CallId, ChildId, SessionId
from koboshi.domain.transcript import Effect, Need
from koboshi.domain.turn import Claim
from koboshi.ports.tool import ToolFailed
from koboshi.tools.delegate import DelegateTool
from tests.harness.tool_context import CONTEXT


class Refusing:
    """A store that makes no further child."""

    def __init__(self) -> None:
        self.asked: list[ChildTask] = []

    async def delegate(self, claim: Claim, call_id: CallId, task: ChildTask) -> Delegated:
        assert (claim, call_id) == (CONTEXT.claim, CONTEXT.call_id)
        self.asked.append(task)
        return Delegated(refusal="16 sub-agents work already")

    async def of_session(self, session_id: SessionId) -> tuple[()]:
        return ()

    async def child(self, child_id: ChildId) -> None:
        return None


async def test_a_refusal_is_told_in_words() -> None:
    children = Refusing()
    with pytest.raises(ToolFailed, match="16 sub-agents"):
        await DelegateTool(children=children).run(json.dumps({"task": "look"}), CONTEXT)
    assert children.asked == [ChildTask(name="look", task="look")]


@pytest.mark.parametrize("arguments", ['{"task": ""}', "{}", '{"task": "x", "deep": 1}', "[]"])
def test_unusable_arguments_are_complained_about(arguments: str) -> None:
    assert DelegateTool(children=Refusing()).complaint_about(arguments)


async def test_a_task_of_blanks_is_no_task() -> None:
    with pytest.raises(ToolFailed, match="says nothing"):
        await DelegateTool(children=Refusing()).run('{"task": " \\n "}', CONTEXT)


def test_it_is_repeatable_and_asks_no_person() -> None:
    tool = DelegateTool(children=Refusing())
    assert tool.effect_of("{}") is Effect.REPEATABLE
    assert tool.need_of("{}") is Need.NOBODY
