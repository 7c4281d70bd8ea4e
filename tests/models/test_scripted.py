"""The offline model: what it understands, and that it needs nothing but the turn's own steps."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.domain.action import EMPTY_REPLY
from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.domain.ids import CallId, EntryId, Epoch, Seq, SessionId, TurnId
from koboshi.domain.notes import BACKLOG, RECOVERY, backlog
from koboshi.domain.transcript import (
    Answer,
    Body,
    Call,
    Effect,
    Message,
    Note,
    Reply,
    Result,
    ResultStatus,
    Step,
    Summary,
)
from koboshi.models.sample_story import STORY
from koboshi.models.scripted import ScriptedModel
from koboshi.models.tasks import WELCOME
from koboshi.ports.model import CallRequest, Model, ModelReply, Request
from koboshi.tools.ask import ASK, question_of
from koboshi.tools.pause import PAUSE

TURN = TurnId(7)
EARLIER = TurnId(6)

CRASHED = Note(
    cause=RECOVERY, text="[koboshi] The gateway stopped without warning; it is back now."
)
JOINED = Note(cause=BACKLOG, text=backlog(3))
NUDGE = Note(cause=EMPTY_REPLY, text="[koboshi] Your last reply was empty.")


def says(text: str) -> Message:
    return Message(text=text, sender="ann", entry_id=EntryId(1), sent_ms=0)


def step(number: int, body: Body, turn_id: TurnId = TURN) -> Step:
    return Step(seq=Seq(number), turn_id=turn_id, epoch=Epoch(1), at_ms=0, body=body)


def request(*bodies: Body, earlier: Sequence[Body] = ()) -> Request:
    """What a turn with these steps asks of the model."""
    before = [step(number, body, EARLIER) for number, body in enumerate(earlier, start=1)]
    steps = [step(number, body) for number, body in enumerate(bodies, start=100)]
    return Request(
        session_id=SessionId(1), turn_id=TURN, system="", steps=(*before, *steps), tools=()
    )


async def reply_to(*bodies: Body, earlier: Sequence[Body] = ()) -> ModelReply:
    # A new model for each reply: nothing can be remembered from one to the next.
    model: Model = ScriptedModel()
    return await model.respond(request(*bodies, earlier=earlier))


async def answer_to(text: str) -> str:
    reply = await reply_to(says(text))
    assert not reply.calls
    return reply.text


def stored(reply: ModelReply, result: str, status: ResultStatus = ResultStatus.OK) -> list[Body]:
    """The reply and one result for each of its calls, as the store keeps them."""
    calls = tuple(
        Call(
            call_id=CallId(f"{reply.text}.{place}"),
            tool=call.tool,
            arguments=call.arguments,
            effect=Effect.NONE,
            provider_id=call.provider_id,
        )
        for place, call in enumerate(reply.calls)
    )
    results = [Result(call_id=call.call_id, status=status, text=result) for call in calls]
    return [Reply(text=reply.text, calls=calls, model=reply.model), *results]


@pytest.mark.parametrize(
    "said,answer",
    [
        ("echo hello", "hello"),
        ("ECHO Hello, World!", "Hello, World!"),
        ("  echo: two\nlines  ", "two\nlines"),
        ("please echo it", "it"),
        ("echo count to 3 slowly", "count to 3 slowly"),
        ("echo", "There is nothing to echo."),
    ],
)
async def test_echo_gives_the_words_back(said: str, answer: str) -> None:
    assert await answer_to(said) == answer


async def test_a_long_echo_passes_whole() -> None:
    text = "long words " * 5_000 + "end"

    assert await answer_to(f"echo {text}") == text


@pytest.mark.parametrize("said", ["count to 3", "Count to 3.", "please count up to 3!"])
async def test_counting_answers_at_once(said: str) -> None:
    assert await answer_to(said) == "1, 2, 3: done."


@pytest.mark.parametrize("number", ["0", "151", "9" * 5_000])
async def test_counting_has_bounds(number: str) -> None:
    assert await answer_to(f"count to {number} slowly") == (
        "I can count to any number from 1 to 150."
    )


@pytest.mark.parametrize(
    "said", ["count to 3 slowly", "Count slowly to 3!", "COUNT TO 3, SLOWLY", "count to 3\nslowly."]
)
async def test_counting_slowly_is_one_step_for_each_number(said: str) -> None:
    bodies: list[Body] = [says(said)]
    for number in ("1", "2", "3"):
        reply = await reply_to(*bodies)
        assert reply.text == number
        assert [call.tool for call in reply.calls] == ["pause"]
        assert PAUSE.complaint_about(reply.calls[0].arguments) is None
        bodies += stored(reply, '{"status":"ok","slept":1}')

    last = await reply_to(*bodies)

    assert last == ModelReply(text="1, 2, 3: done.", model="scripted")


async def test_a_long_count_is_read_out_shortly() -> None:
    assert await answer_to("count to 120") == "1, 2, 3, … 120: done."


async def test_a_count_that_was_killed_goes_on_with_the_next_number() -> None:
    """S57, S63: the recovery note is no words of the person and no progress."""
    bodies: list[Body] = [says("count to 9 slowly")]
    for _ in range(4):
        bodies += stored(await reply_to(*bodies), '{"status":"ok","slept":1}')

    undisturbed = await reply_to(*bodies)
    resumed = await reply_to(*bodies, CRASHED)

    assert resumed == undisturbed
    assert resumed.text == "5"


async def test_a_recovery_note_does_not_change_the_final_answer() -> None:
    bodies: list[Body] = [says("count to 1 slowly")]
    bodies += stored(await reply_to(*bodies), '{"status":"ok","slept":1}')

    assert (await reply_to(*bodies, CRASHED)).text == "1: done."


async def test_a_count_whose_pause_fails_ends() -> None:
    bodies: list[Body] = [says("count to 9 slowly")]
    bodies += stored(await reply_to(*bodies), "there is no tool", ResultStatus.ERROR)

    reply = await reply_to(*bodies)

    assert reply.text == "I could not go on counting: there is no tool"
    assert not reply.calls


@pytest.mark.parametrize(
    "said,question,choices",
    [
        ("ask me my name", "My name?", ()),
        ("Ask me how are you?", "How are you?", ()),
        ("ask me: how are you? I mean it", "How are you? I mean it?", ()),
        ("ask me which one? tea / coffee / water", "Which one?", ("tea", "coffee", "water")),
        ("ask me which drink: tea, coffee or water.", "Which drink?", ("tea", "coffee", "water")),
        ("ask me this: are you well? yes / no", "This: are you well?", ("yes", "no")),
        (
            "ask me to choose between tea, coffee, and green tea!",
            "What do you choose?",
            ("tea", "coffee", "green tea"),
        ),
        ("ask me whether 12:30 or 13:00 is fine", "Whether 12:30 or 13:00 is fine?", ()),
        ("ask me why?" + " " * 900 + "a / b", "Why?" + " " * 900 + "a / b?", ()),
        ("ask me which: tea, Tea or TEA", "Which: tea, Tea or TEA?", ()),
    ],
)
async def test_ask_me_asks(said: str, question: str, choices: tuple[str, ...]) -> None:
    reply = await reply_to(says(said))

    assert [call.tool for call in reply.calls] == ["ask"]
    assert ASK.complaint_about(reply.calls[0].arguments) is None
    asked, offered = question_of(reply.calls[0].arguments)
    assert (asked, tuple(choice.label for choice in offered)) == (question, choices)


@pytest.mark.parametrize(
    "result,answer",
    [
        ('{"status":"ok","answer":"tea"}', "You said: tea."),
        ("tea", "You said: tea."),
        ("Neither!", "You said: Neither!"),
        ("12", "You said: 12."),
    ],
)
async def test_the_answer_to_a_question_is_repeated(result: str, answer: str) -> None:
    """S142: it makes no difference whether the gateway died while the question was open."""
    asked = says("ask me which drink: tea or coffee")
    bodies = [asked, *stored(await reply_to(asked), result)]

    assert (await reply_to(*bodies)).text == answer
    assert (await reply_to(*bodies, CRASHED)).text == answer


async def test_a_question_that_could_not_be_asked_is_not_asked_again() -> None:
    asked = says("ask me " + "why " * 2_000)
    bodies = [asked, *stored(await reply_to(asked), "too long", ResultStatus.ERROR)]

    assert (await reply_to(*bodies)).text == "I could not ask you: too long"


async def test_ask_me_without_a_question_is_answered() -> None:
    assert (await answer_to("ask me!")).startswith("What shall I ask you?")


@pytest.mark.parametrize("said", ["say nothing", "Say  nothing!", "please say nothing."])
async def test_say_nothing_stays_empty_when_it_is_asked_for_words(said: str) -> None:
    assert await reply_to(says(said)) == ModelReply(text="", model="scripted")
    assert await reply_to(says(said), NUDGE) == ModelReply(text="", model="scripted")


@pytest.mark.parametrize("said", ["fail", "Fail!", " FAIL "])
async def test_fail_is_refused(said: str) -> None:
    with pytest.raises(ModelRefused, match="asked to fail"):
        await reply_to(says(said))


@pytest.mark.parametrize(
    "said", ["hello", "what is an echo?", "failure", "echoes", "/usr/bin/ls", "count on me", "…"]
)
async def test_anything_else_is_welcomed(said: str) -> None:
    assert await answer_to(said) == WELCOME


def test_the_welcome_says_what_works_and_where_a_real_model_is_set() -> None:
    assert len(WELCOME.splitlines()) < 10
    for words in ("echo", "count to", "ask me", "say nothing", "fail", "koboshi.toml"):
        assert words in WELCOME


async def test_words_of_the_gateway_are_not_words_of_the_person() -> None:
    """S66: a note is never replayed as if the person had written it."""
    note = Note(cause="report", text="echo from a note")

    assert (await reply_to(says("echo hi"), note)).text == "hi"
    assert (await reply_to(note)).text == "Noted."


async def test_only_the_steps_of_the_turn_count() -> None:
    counted = stored(await reply_to(says("count to 5 slowly")), '{"status":"ok","slept":1}')
    earlier = [says("count to 5 slowly"), *counted, Answer(text="1, 2, 3, 4, 5: done.")]

    reply = await reply_to(says("count to 5 slowly"), earlier=earlier)

    assert reply.text == "1"
    assert (await reply_to(says("hello"), earlier=earlier)).text == WELCOME


async def test_the_newest_words_that_are_understood_are_followed() -> None:
    """A message that joined the running turn redirects it, and small talk does not."""
    bodies: list[Body] = [says("count to 5 slowly")]
    bodies += stored(await reply_to(*bodies), '{"status":"ok","slept":1}')

    assert (await reply_to(*bodies, says("nice"))).text == "2"
    assert (await reply_to(*bodies, says("echo stop"))).text == "stop"
    assert (await reply_to(*bodies, says("count to 3 slowly"))).text == "1"


def script(*items: object) -> Message:
    return says(f"script: {json.dumps(items)}")


async def test_a_script_gives_one_item_for_each_reply() -> None:
    calls = [
        {"tool": "pause", "arguments": {"seconds": 0}},
        {"tool": "no_such_tool"},
    ]
    bodies: list[Body] = [script({"calls": calls, "text": "two calls"}, {"text": "done"})]

    first = await reply_to(*bodies)
    last = await reply_to(*bodies, *stored(first, "whatever"), CRASHED)

    assert first.text == "two calls"
    assert [(call.tool, call.arguments) for call in first.calls] == [
        ("pause", '{"seconds":0}'),
        ("no_such_tool", "{}"),
    ]
    assert len({call.provider_id for call in first.calls}) == 2
    assert last == ModelReply(text="done", model="scripted")


async def test_a_script_gives_the_same_reply_when_it_is_asked_again() -> None:
    bodies = [script({"calls": [{"tool": "pause", "arguments": {"seconds": 0}}]}, {"text": "done"})]

    assert await reply_to(*bodies) == await reply_to(*bodies, CRASHED)


async def test_an_empty_item_counts_as_a_reply_once_the_gateway_has_asked_for_words() -> None:
    bodies = [script({"empty": True}, {"text": "words"})]

    assert (await reply_to(*bodies)).text == ""
    assert (await reply_to(*bodies, NUDGE)).text == "words"


async def test_a_script_that_ends_with_an_empty_item_stays_empty() -> None:
    bodies = [script({"empty": True})]

    assert (await reply_to(*bodies, NUDGE)).text == ""


async def test_a_script_can_be_busy() -> None:
    with pytest.raises(ModelBusy) as raised:
        await reply_to(script({"busy": {"retry_after_ms": 5}}))
    assert raised.value.retry_after_ms == 5


async def test_a_script_can_be_busy_until_a_file_is_there(tmp_path: Path) -> None:
    """Issue 12, C18: the model remembers nothing, and each life asks it anew."""
    file = tmp_path / "recovered"
    words = script({"busy_until": {"file": str(file), "retry_after_ms": 5}, "text": "back"})

    for _ in range(2):
        with pytest.raises(ModelBusy) as raised:
            await reply_to(words)
        assert raised.value.retry_after_ms == 5
    file.touch()

    assert (await reply_to(words)).text == "back"


async def test_a_script_can_refuse() -> None:
    with pytest.raises(ModelRefused, match="not today"):
        await reply_to(script({"refuse": "not today"}))


async def test_a_script_can_take_its_time() -> None:
    assert (await reply_to(script({"sleep_ms": 1, "text": "late"}))).text == "late"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "[]",
        "{}",
        "[1]",
        '[{"txet": "typo"}]',
        '[{"sleep_ms": 5}]',
        '[{"text": "both", "empty": true}]',
        '[{"sleep_ms": -1, "text": "back"}]',
        '[{"calls": [{"tool": "pause", "arguments": [1]}]}]',
        '[{"calls": [{"tool": "pause", "arguments": ' + '{"a":' * 50_000,
    ],
)
async def test_a_script_that_cannot_be_followed_is_answered_in_words(text: str) -> None:
    assert (await answer_to(f"Script: {text}")).startswith("I cannot follow this script: ")


async def test_a_script_that_is_too_short_says_so() -> None:
    bodies: list[Body] = [script({"calls": [{"tool": "pause"}]})]
    bodies += stored(await reply_to(*bodies), "ok")

    assert (await reply_to(*bodies)).text == (
        "I cannot follow this script: it ends after 1 replies, and one more was asked for"
    )


def round_of(name: str) -> list[Body]:
    """A call and its result."""
    pause = CallRequest(provider_id=name, tool="pause", arguments="{}")
    return stored(ModelReply(text=name, calls=(pause,)), "{}")


async def summed_up(*bodies: Body) -> str:
    asked = replace(request(*bodies), wants_summary=True)
    return (await ScriptedModel().respond(asked)).text


async def test_a_summary_is_the_same_each_time_and_whatever_the_gateway_said() -> None:
    done = (says("count to 5 slowly"), *round_of("1"))

    assert await summed_up(*done) == await summed_up(*done, CRASHED)


@pytest.mark.parametrize("covered", [1, 2, 3])
async def test_it_goes_on_from_a_summary_of_its_own_work(covered: int) -> None:
    """Its place in the work is nowhere but in the steps, and then in what stands for them."""
    wish = says("count to 5 slowly")
    rounds = [body for number in range(4) for body in round_of(str(number))]
    text = await summed_up(wish, *rounds[: 2 * covered])
    summary = Summary(text=text, covers=Seq(1_000))

    reply = await reply_to(summary, wish, *rounds[2 * covered :])

    assert reply.text == "5"


async def test_a_summary_of_a_summary_knows_both() -> None:
    wish = says("count to 5 slowly")
    first = Summary(text=await summed_up(wish, *round_of("1")), covers=Seq(1_000))
    second = Summary(text=await summed_up(first, wish, *round_of("2")), covers=Seq(2_000))

    assert (await reply_to(second, wish)).text == "3"


async def test_a_wish_that_came_after_the_summary_is_not_begun_yet() -> None:
    text = await summed_up(says("count to 5 slowly"), *round_of("1"))

    reply = await reply_to(Summary(text=text, covers=Seq(50)), says("count to 3 slowly"))

    assert reply.text == "1"


@pytest.mark.parametrize("words", ["run ls", "ask me which drink: tea or coffee"])
async def test_what_only_the_summary_knows_is_not_done_again(words: str) -> None:
    text = await summed_up(says(words), *round_of("1"))

    reply = await reply_to(Summary(text=text, covers=Seq(1_000)), says(words))

    assert reply.calls == ()


async def test_a_story_comes_word_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("koboshi.models.scripted.WORD_MS", 0)
    heard: list[str] = []
    reply = await ScriptedModel().respond(request(says("Tell me a story!")), heard.append)

    assert len(heard) > 100
    assert "".join(heard).strip() == reply.text == STORY


async def test_messages_of_a_backlog_are_done_one_after_the_other_and_answered_as_one() -> None:
    """Issue 13, B10: it needs nothing but the steps, so that a kill between two loses nothing."""
    script = json.dumps([{"empty": True}, {"text": "there"}])
    bodies: list[Body] = [
        says("echo first"),
        says("hello?"),
        says("count to 2 slowly"),
        says(f"script: {script}"),
        says("run date"),
        JOINED,
    ]

    for number in ("1", "2"):
        reply = await reply_to(*bodies)
        assert (reply.text, [call.tool for call in reply.calls]) == (number, ["pause"])
        bodies += stored(reply, "done")
    assert (await reply_to(*bodies)) == ModelReply(text="", model="scripted")
    bodies += [NUDGE, CRASHED]
    reply = await reply_to(*bodies)
    assert [call.tool for call in reply.calls] == ["terminal"]
    bodies += stored(reply, '{"status": "exited", "exit_code": 0, "output": "today"}')

    last = await reply_to(*bodies)

    assert not last.calls
    said = ["first", "1, 2: done.", "there", "It exited with code 0.\ntoday"]
    assert last.text == "\n\n".join(said)


async def test_newer_words_take_the_place_of_a_backlog() -> None:
    """Issue 13, B10: what steers the turn is what it does from there on."""
    reply = await reply_to(says("echo one"), says("count to 2 slowly"), JOINED, says("echo two"))

    assert reply.text == "two"


async def test_a_backlog_that_it_does_not_understand_is_welcomed_once() -> None:
    """Issue 13, B10."""
    assert (await reply_to(says("hi"), says("hello"), JOINED)).text == WELCOME
