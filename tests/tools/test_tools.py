"""The toolbox, and the tools that come with the gateway."""

import json
from dataclasses import replace

import pytest
from msgspec import Struct

from koboshi.domain.inbox import Words, picked_choice
from koboshi.domain.transcript import Author, Choice, Effect, Need, Question
from koboshi.ports.tool import Tool, ToolFailed
from koboshi.tools.ask import ASK, question_of
from koboshi.tools.declared import complaint_about, result_text
from koboshi.tools.pause import PAUSE
from koboshi.tools.registry import Toolbox
from tests.harness.tool_context import CONTEXT


def test_the_toolbox_finds_tools_by_name() -> None:
    box = Toolbox([ASK, PAUSE])

    assert box.names == ("ask", "pause")
    assert box.find("pause") is PAUSE
    assert box.find("no_such_tool") is None


def test_the_toolbox_tells_the_model_of_its_tools_in_order() -> None:
    assert [spec.name for spec in Toolbox([PAUSE, ASK]).specs()] == ["pause", "ask"]


def test_two_tools_cannot_share_a_name() -> None:
    with pytest.raises(ValueError, match='two tools with the name "ask"'):
        Toolbox([ASK, PAUSE, ASK])


@pytest.mark.parametrize("name", ["", "Pause", "pause-it", "1st", "x" * 65])
def test_a_tool_has_a_name_that_every_provider_takes(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a tool"):
        Toolbox([replace(PAUSE, name=name)])


@pytest.mark.parametrize("tool", [ASK, PAUSE])
def test_a_schema_describes_an_object_and_allows_nothing_else(tool: Tool) -> None:
    schema = json.loads(tool.spec.parameters)

    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert tool.spec.description


def test_the_schema_of_pause_carries_its_bounds() -> None:
    seconds = json.loads(PAUSE.spec.parameters)["properties"]["seconds"]

    assert (seconds["minimum"], seconds["maximum"]) == (0, 60)


@pytest.mark.parametrize(
    "arguments,result",
    [
        ('{"seconds": 0}', '{"status":"ok","slept":0}'),
        ('{"seconds": 0.01}', '{"status":"ok","slept":0.01}'),
    ],
)
async def test_pause_waits_and_says_how_long(arguments: str, result: str) -> None:
    assert (await PAUSE.run(arguments, CONTEXT)).text == result


def test_pause_need_no_person_and_can_be_repeated() -> None:
    assert PAUSE.need_of('{"seconds": 1}') is Need.NOBODY
    assert PAUSE.effect is Effect.NONE


@pytest.mark.parametrize(
    "arguments,complaint",
    [
        ('{"seconds": 60}', None),
        ('{"seconds": 61}', "`seconds` does not fit: expected `float` <= 60.0"),
        ('{"seconds": -1}', "`seconds` does not fit: expected `float` >= 0.0"),
        ('{"seconds": "1"}', "`seconds` does not fit: expected `float`, got `str`"),
        ("{}", "`seconds` is missing"),
        ('{"seconds": 1, "minutes": 1}', "`minutes` is not an argument of this tool"),
        ("[]", "the arguments do not fit: expected `object`, got `array`"),
        ("", "the arguments do not fit: input data was truncated"),
        ("seconds", "the arguments do not fit: JSON is malformed: invalid character (byte 0)"),
    ],
)
def test_a_complaint_names_the_argument(arguments: str, complaint: str | None) -> None:
    assert PAUSE.complaint_about(arguments) == complaint


class Anything(Struct):
    value: object


def test_arguments_that_are_nested_without_end_are_a_complaint() -> None:
    deep = '{"value": ' + "[" * 100_000

    assert complaint_about(Anything, deep) == "the arguments are nested too deeply"


async def test_a_call_with_bad_arguments_fails_in_words_for_the_model() -> None:
    with pytest.raises(ToolFailed, match="`seconds` is missing"):
        await PAUSE.run("{}", CONTEXT)


async def test_only_resumable_tools_can_be_taken_up() -> None:
    with pytest.raises(RuntimeError, match="cannot be taken up"):
        await PAUSE.resume('{"seconds": 0}', CONTEXT)


async def test_ask_is_a_question_and_is_never_run() -> None:
    assert ASK.need_of('{"question": "Why?"}') is Need.ANSWER
    assert ASK.effect is Effect.NONE
    with pytest.raises(RuntimeError, match="is a question"):
        await ASK.run('{"question": "Why?"}', CONTEXT)


@pytest.mark.parametrize(
    "arguments", ['{"question":" Why? "}', '{"question":"Why?","choices":null}']
)
def test_a_question_without_choices_is_open(arguments: str) -> None:
    assert question_of(arguments) == ("Why?", ())


def test_choices_are_numbered() -> None:
    assert question_of('{"question":"Which?","choices":["tea"," coffee "]}') == (
        "Which?",
        (Choice(choice_id="1", label="tea"), Choice(choice_id="2", label="coffee")),
    )


@pytest.mark.parametrize("said", ["coffee", "COFFEE", "2"])
def test_a_choice_can_be_picked_by_its_words_or_its_number(said: str) -> None:
    """S141: the next plain message, or a number, answers the question."""
    text, choices = question_of('{"question":"Which?","choices":["tea","coffee"]}')
    question = Question(author=Author.MODEL, text=text, choices=choices)

    picked = picked_choice(question, Words(text=said, sent_ms=0))

    assert picked == choices[1]


@pytest.mark.parametrize(
    "arguments,names",
    [
        ('{"choices":["a","b"]}', "`question` is missing"),
        ('{"question":""}', "`question`"),
        ('{"question":"  "}', "`question` is blank"),
        (json.dumps({"question": "x" * 2_001}), "`question`"),
        ('{"question":"Which?","choices":["a"]}', "`choices`"),
        (json.dumps({"question": "Which?", "choices": list("abcdefghijk")}), "`choices`"),
        ('{"question":"Which?","choices":["a",""]}', "`choices[1]`"),
        ('{"question":"Which?","choices":["a"," "]}', "`choices` holds a blank one"),
        ('{"question":"Which?","choices":["a","A "]}', "`choices` holds the same one twice"),
        ('{"question":"Which?","choices":["a",2]}', "`choices[1]`"),
        ('{"question":"Which?","options":["a","b"]}', "`options` is not an argument"),
    ],
)
def test_ask_complains_about_what_no_one_could_answer(arguments: str, names: str) -> None:
    complaint = ASK.complaint_about(arguments)

    assert complaint is not None
    assert names in complaint
    with pytest.raises(ValueError, match="`"):
        question_of(arguments)


def test_a_result_is_one_object_with_its_status_first() -> None:
    text = result_text("ok", output="é", code=0)

    assert text == '{"status":"ok","output":"é","code":0}'
