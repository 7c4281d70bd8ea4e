"""What a model writes into a call: any arguments are judged without an error, and either done or
refused in words."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from koboshi.domain.transcript import Effect, Need
from koboshi.ports.tool import Tool, ToolFailed
from koboshi.tools.ask import AskArguments
from koboshi.tools.danger import DANGERS, danger_in
from koboshi.tools.declared import complaint_about
from koboshi.tools.pause import PauseArguments
from koboshi.tools.process import ProcessArguments
from koboshi.tools.restart import RestartArguments
from koboshi.tools.terminal import TerminalArguments
from tests.fakes.files import CONTEXT, Files
from tests.hostile.wild import JSON, NUMBERS, TEXTS, as_bytes, fuzzed, objects

ARGUMENTS = objects(
    path=TEXTS,
    content=TEXTS,
    old=TEXTS,
    new=TEXTS,
    pattern=TEXTS,
    offset=NUMBERS,
    limit=NUMBERS,
    command=TEXTS,
    timeout=NUMBERS,
    watch_patterns=st.lists(TEXTS, max_size=3),
    check_every=NUMBERS,
    question=TEXTS,
    choices=st.lists(TEXTS, max_size=3),
)
WRITTEN = (
    ARGUMENTS.map(lambda value: as_bytes(value).decode())
    | JSON.map(lambda value: as_bytes(value).decode())
    | TEXTS
)
WRONG = ["", "null", "[]", "{", '{"path": 1}', '{"path": "a", "path": "b"}', "[" * 50_000, "\ud800"]
NOT_RUN = {"search_files"}
"""Starts a program for each."""


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path.resolve())


async def outcome(tool: Tool, written: str) -> str:
    try:
        return (await tool.run(written, CONTEXT)).text
    except ToolFailed as failed:
        return f"failed: {failed}"


@fuzzed(40)
@given(written=WRITTEN)
async def test_any_arguments_are_judged_and_done_or_refused(files: Files, written: str) -> None:
    for name, tool in files.tools.items():
        assert tool.effect_of(written) in Effect
        assert tool.need_of(written) in Need
        if name not in NOT_RUN:
            said = await outcome(tool, written)
            assert said.startswith(('{"status":', "failed: "))
            said.encode()


async def test_arguments_that_are_none_are_refused_by_every_tool(files: Files) -> None:
    for written in WRONG:
        for tool in files.tools.values():
            said = await outcome(tool, written)
            assert said.startswith("failed: "), (written[:40], said)
            assert len(said) < 1_000


@fuzzed(60)
@given(written=WRITTEN)
def test_any_call_of_a_command_or_a_question_is_understood_or_complained_about(
    written: str,
) -> None:
    for complaint in (
        complaint_about(TerminalArguments, written),
        complaint_about(ProcessArguments, written),
        complaint_about(AskArguments, written),
        complaint_about(PauseArguments, written),
        complaint_about(RestartArguments, written),
    ):
        assert complaint is None or complaint.encode()


@fuzzed(60)
@example("'" * 20_000)
@example("a;" * 10_000)
@example("\\\n" * 10_000 + "rm -rf /")
@example("$(" * 5_000)
@given(command=TEXTS | st.text(alphabet="rm -f/'\"\\;&|$()`\n{}<>x", max_size=60))
def test_any_command_is_judged(command: str) -> None:
    assert danger_in(command) in {None, *(danger.label for danger in DANGERS)}
    assert danger_in(f"{json.dumps(command)}; rm -rf build") is not None
