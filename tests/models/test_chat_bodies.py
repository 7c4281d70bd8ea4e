"""The body of a request for a chat completion. What is expected here was written down from what the
provider's own library sent for the same steps."""

import json
from dataclasses import replace
from typing import Any

import pytest

from koboshi.domain.transcript import Answer, Note, Reply
from koboshi.models.chat.body import body_of
from koboshi.models.talk import ReplyOrigin
from koboshi.ports.model import Request, ToolSpec
from tests.models.asking import PAUSE, asked, call, called, found, said

ORIGIN = ReplyOrigin(system="openai-compatible", url="http://127.0.0.1:9/v1/")

LONG_TALK = asked(
    said("hello"),
    Note(cause="x", text="restarted"),
    called(call("2.0", arguments='{"seconds": 1}'), call("2.1"), text="Wait."),
    found("2.1", "bee"),
    found("2.0", "ay"),
    said("and?"),
    Answer(text="A."),
    Answer(text="B."),
    called(call("3.0"), text=""),
    found("3.0", "x"),
    said("go"),
    tools=(PAUSE,),
)

SENT = r"""
{"model": "m1", "stream": true, "messages": [
 {"role": "system", "content": "Be brief."},
 {"role": "user", "content": "hello\n\n[koboshi] restarted"},
 {"role": "assistant", "content": "Wait.", "tool_calls": [
  {"id": "id_2_0", "type": "function",
   "function": {"name": "pause", "arguments": "{\"seconds\":1}"}},
  {"id": "id_2_1", "type": "function", "function": {"name": "pause", "arguments": "{}"}}]},
 {"role": "tool", "tool_call_id": "id_2_0", "content": "ay"},
 {"role": "tool", "tool_call_id": "id_2_1", "content": "bee"},
 {"role": "user", "content": "and?"},
 {"role": "assistant", "content": "A.\n\nB.", "tool_calls": [
  {"id": "id_3_0", "type": "function", "function": {"name": "pause", "arguments": "{}"}}]},
 {"role": "tool", "tool_call_id": "id_3_0", "content": "x"},
 {"role": "user", "content": "go"}],
 "stream_options": {"include_usage": true}, "tool_choice": "auto",
 "tools": [{"type": "function", "function": {"name": "pause", "description": "Wait.",
  "parameters": {"type": "object", "properties": {"seconds": {"type": "integer"}},
   "required": []}}}]}
"""

SENT_TO_BE_SUMMED_UP = (
    "[koboshi] The record:\n\nu1 wrote: hello\n\n[koboshi] restarted\n\n"
    'the assistant said: Wait.\nthe assistant called pause {"seconds": 1}\n'
    "the assistant called pause {}\n\nresult (ok): bee\n\nresult (ok): ay\n\nu1 wrote: and?\n\n"
    "the assistant answered: A.\n\nthe assistant answered: B.\n\nthe assistant called pause {}\n\n"
    "result (ok): x\n\nu1 wrote: go"
)

# As the library stored it, but for what is of no use to the provider.
STORED_BEFORE = (
    '[{"parts":[{"content":"Hm, a pause.","id":"reasoning_content","signature":null,'
    '"provider_name":"openai-compatible","provider_details":null,"part_kind":"thinking"},'
    '{"content":"Text","id":null,"provider_name":null,"provider_details":null,"citations":null,'
    '"part_kind":"text"},{"tool_name":"pause","args":"{\\"seconds\\": 1}","tool_call_id":"id_a",'
    '"tool_kind":null,"id":null,"provider_name":null,"provider_details":{"extra_content":'
    '{"google":{"thought_signature":"c2ln"}}},"part_kind":"tool-call"}],'
    '"usage":{"input_tokens":11,"details":{},"cost":null},"model_name":"gpt-test",'
    '"timestamp":"2026-11-16T04:28:22Z","kind":"response","provider_name":"openai-compatible",'
    '"provider_url":"http://127.0.0.1:9/v1/","provider_details":{"finish_reason":"tool_calls"},'
    '"finish_reason":"tool_call","state":"complete"}]'
)


def body(request: Request, origin: ReplyOrigin = ORIGIN) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(body_of(request, "m1", origin))
    return made


def test_a_long_talk_with_tools() -> None:
    assert body(LONG_TALK) == json.loads(SENT)


def test_a_single_message_without_system_prompt_and_tools() -> None:
    assert body(asked(said("hello"), system=" ")) == {
        "model": "m1",
        "stream": True,
        "messages": [{"role": "user", "content": "hello"}],
        "stream_options": {"include_usage": True},
    }


def test_a_record() -> None:
    messages = body(replace(LONG_TALK, wants_summary=True))["messages"]

    assert messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": SENT_TO_BE_SUMMED_UP},
    ]


def _thoughtful(raw: str) -> Reply:
    made = call("2.0", arguments='{"seconds": 1}', provider_id="id_a")
    return called(made, text="Text", raw=raw)


def test_thoughts_that_were_stored_by_the_library_go_back() -> None:
    request = asked(said("go"), _thoughtful(STORED_BEFORE), found("2.0", "done"))

    _, _, spoken, _ = body(request)["messages"]

    function = {"name": "pause", "arguments": '{"seconds":1}'}
    extra = {"google": {"thought_signature": "c2ln"}}
    assert spoken == {
        "role": "assistant",
        "reasoning_content": "Hm, a pause.",
        "content": "Text",
        "tool_calls": [
            {"id": "id_a", "type": "function", "function": function, "extra_content": extra}
        ],
    }


@pytest.mark.parametrize(
    "origin",
    [
        ReplyOrigin(system="openai", url="http://127.0.0.1:9/v1/"),
        ReplyOrigin(system="openai-compatible", url="http://127.0.0.1:8/v1/"),
    ],
)
def test_they_go_nowhere_else(origin: ReplyOrigin) -> None:
    request = asked(said("go"), _thoughtful(STORED_BEFORE), found("2.0", "done"))

    sent = json.dumps(body(request, origin))

    assert "a pause" not in sent
    assert "thought_signature" not in sent


def test_thoughts_between_tags_go_back_between_tags() -> None:
    raw = STORED_BEFORE.replace('"id":"reasoning_content"', '"id":"content"')

    _, _, spoken, _ = body(asked(said("go"), _thoughtful(raw), found("2.0", "done")))["messages"]

    assert spoken["content"] == "<think>\nHm, a pause.\n</think>\n\nText"


def test_tools_that_change_are_not_mixed_up() -> None:
    other = ToolSpec(name="other", description="", parameters='{"type":"object"}')

    for tools in ((PAUSE,), (PAUSE, other), (other,), (PAUSE,)):
        offered = body(asked(said("hello"), tools=tools))["tools"]
        assert [each["function"]["name"] for each in offered] == [spec.name for spec in tools]


def test_a_schema_is_sent_as_it_is_written() -> None:
    schema = (
        '{"type":"object","properties":{"z":{"type":"string"},"a":{"default":1.0}},"x-é":"\\n"}'
    )
    spec = ToolSpec(name="other", description="é", parameters=schema)

    assert schema.encode() in body_of(asked(said("hello"), tools=(spec,)), "m1", ORIGIN)
