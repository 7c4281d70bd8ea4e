"""A call of a tool of an MCP server: what is sent, and what the model and the person are told.

None of this needs a server, or the library.
"""

import json
import subprocess
import sys

import pytest

from koboshi.domain.errors import ToolUnusable
from koboshi.domain.transcript import Effect, Need
from koboshi.ports.tool import ToolAnswer, ToolFailed
from koboshi.tools.mcp import McpServers, Program, ServerSpec
from koboshi.tools.mcp.endpoint import Declined, NotTaken, Unanswered
from koboshi.tools.mcp.listing import listed_tool
from koboshi.tools.mcp.results import RESULT_CHARS_MAX, answer_text, harmless
from koboshi.tools.mcp.tool import AbsentMcpTool, McpTool
from tests.harness.listed_tools import SCHEMA, a_tool
from tests.harness.tool_context import CONTEXT


def result(*content: object, **fields: object) -> dict[str, object]:
    return {"content": list(content)} | fields


@pytest.mark.parametrize(
    "answered,status,output",
    [
        (result({"type": "text", "text": "a"}, {"type": "text", "text": "b"}), "ok", "a\nb"),
        (result({"type": "text", "text": "no such file"}, isError=True), "error", "no such file"),
        (result(), "ok", ""),
        (result({"type": "image", "data": "AAAA" * 10, "mimeType": "image/png"}), "ok",
         "[image, image/png, 30 bytes]"),
        (result({"type": "audio", "data": "", "mimeType": None}), "ok",
         "[audio, of unknown type, 0 bytes]"),
        (result({"type": "resource_link", "uri": "file:///a", "name": "A\x1b[2J"}), "ok",
         "[link A: file:///a]"),
        (result({"type": "resource", "resource": {"uri": "x://a", "text": "in it"}}), "ok",
         "[resource x://a]\nin it"),
        (result({"type": "resource", "resource": {"uri": "x://a", "blob": "AAAA"}}), "ok",
         "[resource x://a, of unknown type, 3 bytes]"),
        (result({"type": "hologram"}, {"type": "text"}, 5), "ok",
         "[hologram, not shown]\n[text, not shown]\n[a part that cannot be read]"),
        (result(structuredContent={"a": [1, None]}), "ok", '{"a":[1,null]}'),
        (result({"type": "text", "text": "b"}, structuredContent={"a": 1}), "ok", "b"),
        (result({"type": "text", "text": "\x1b[31ma\u202eb\ud800"}), "ok", "ab?"),
        ("nonsense", "ok", ""),
    ],
)  # fmt: skip
def test_a_result_is_one_object_with_plain_words(
    answered: object, status: str, output: str
) -> None:
    assert json.loads(answer_text(answered)) == {"status": status, "output": output}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("parts", [1, 100_000])
def test_a_big_result_is_cut_in_the_middle_and_quickly(parts: int) -> None:
    text = "start" + "x" * (20_000_000 // parts) + "end"

    told = json.loads(answer_text(result(*[{"type": "text", "text": text}] * parts)))

    assert told["output"].startswith("start")
    assert told["output"].endswith("end")
    assert "left out" in told["output"]
    assert len(told["output"]) < RESULT_CHARS_MAX + 100
    assert ("note" in told) == (parts > 1)


def test_words_of_others_stay_on_one_line() -> None:
    assert harmless("a\r\n\x1b[2J[koboshi]\tb") == "a [koboshi] b"
    assert len(harmless("x" * 10_000)) == 500


# ── calls ───────────────────────────────────────────────────────────────────────────────────────


class Sent:
    """What reaches a server, and what comes of it."""

    def __init__(self, outcome: object = None) -> None:
        self.outcome = outcome
        self.calls: list[tuple[str, object]] = []

    async def __call__(self, tool: str, arguments: object) -> object:
        self.calls.append((tool, arguments))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def tool_of(sent: Sent, effect: Effect = Effect.ONCE, **fields: object) -> McpTool:
    return McpTool(
        name="files_read",
        server="files",
        listed=listed_tool(a_tool(**fields)),
        effect=effect,
        need=Need.NOBODY,
        send=sent,
    )


async def test_a_call_reaches_the_server_by_the_servers_own_name() -> None:
    sent = Sent(result({"type": "text", "text": "hello"}))

    answer = await tool_of(sent, name="Files.Read").run('{"path": "a"}', CONTEXT)

    assert sent.calls == [("Files.Read", {"path": "a"})]
    assert answer == ToolAnswer(text='{"status":"ok","output":"hello"}')


async def test_a_call_that_was_not_taken_says_that_it_was_not_started() -> None:
    with pytest.raises(ToolFailed, match="it was not started: the server is away"):
        await tool_of(Sent(NotTaken("the server is away"))).run('{"path": "a"}', CONTEXT)


async def test_what_a_server_declines_is_told_in_its_words_made_harmless() -> None:
    answer = await tool_of(Sent(Declined("no\x1b[2J\nway"))).run('{"path": "a"}', CONTEXT)

    assert answer == ToolAnswer(text='{"status":"error","error":"no way"}')


async def test_what_breaks_while_it_is_sent_is_not_called_a_failure_of_the_call() -> None:
    """Issue 12, A4: the caller decides what is known of it then."""
    sent = Sent(ValueError("a bug in the library"))

    with pytest.raises(ValueError, match="a bug in the library"):
        await tool_of(sent).run('{"path": "a"}', CONTEXT)

    assert len(sent.calls) == 1
    with pytest.raises(ToolFailed):
        await tool_of(sent).run("no JSON", CONTEXT)
    assert len(sent.calls) == 1


async def test_a_once_call_without_an_answer_is_of_unknown_outcome() -> None:
    answer = await tool_of(Sent(Unanswered("the server died"))).run('{"path": "a"}', CONTEXT)

    told = json.loads(answer.text)
    assert answer.is_unknown
    assert told["status"] == "unknown"
    assert told["error"].startswith("the server died; it is unknown whether it was done.")


@pytest.mark.parametrize("effect", [Effect.NONE, Effect.REPEATABLE])
async def test_a_call_that_may_be_repeated_just_fails(effect: Effect) -> None:
    with pytest.raises(ToolFailed, match="no harm to call it again"):
        await tool_of(Sent(Unanswered("it died")), effect).run('{"path": "a"}', CONTEXT)


@pytest.mark.parametrize(
    "arguments,complaint",
    [
        ('{"path": "a"}', None),
        ('{"path": "a", "more": 1}', None),
        ("{}", "`path` is missing"),
        ("", "`path` is missing"),
        ("[]", "the arguments are not one JSON object"),
        ("{", "the arguments are not one JSON object"),
        ('{"path": ' + "[" * 100_000, "the arguments are nested too deeply"),
        (f'{{"path": "{"x" * 1_000_001}"}}', "the arguments have more than 1000000 characters"),
    ],
)
def test_arguments_that_no_server_could_use_are_a_complaint(
    arguments: str, complaint: str | None
) -> None:
    assert tool_of(Sent()).complaint_about(arguments) == complaint


def test_a_misspelt_argument_is_a_complaint_where_the_schema_is_closed() -> None:
    tool = tool_of(Sent(), inputSchema=SCHEMA | {"additionalProperties": False})

    assert (
        tool.complaint_about('{"path": "a", "pth": 1}') == "`pth` is not an argument of this tool"
    )


def test_the_person_sees_what_they_allow() -> None:
    text, choices = tool_of(Sent()).question_of('{"path":\n"a\u202eb"}')

    assert text == 'May I use read of files with this?\n\n{"path":\n"a\\u202eb"}'
    assert [choice.choice_id for choice in choices] == ["yes", "no"]


async def test_a_tool_of_a_server_that_never_came_is_judged_as_once_and_does_nothing() -> None:
    tool = AbsentMcpTool(name="files_read", server="files")

    assert tool.effect_of("{}") is Effect.ONCE
    with pytest.raises(ToolFailed, match="it was not started: the server files is not connected"):
        await tool.run("{}", CONTEXT)


# ── the library ─────────────────────────────────────────────────────────────────────────────────

A_SERVER = ServerSpec(name="files", endpoint=Program(command="x", workdir="."), timeout_seconds=1)


def test_without_the_library_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("koboshi.tools.mcp.library.find_spec", lambda _: None)

    with pytest.raises(ToolUnusable, match=r'\(files\) need .*`pip install "koboshi\[mcp\]"`'):
        McpServers([A_SERVER])
    McpServers([])


def test_the_library_is_not_loaded_before_a_server_is_connected_to() -> None:
    code = "import koboshi.tools.mcp, sys; sys.exit('mcp' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
