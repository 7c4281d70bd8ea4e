"""What a turn of a schedule does without a model."""

import json

import pytest

from koboshi.domain.action import CallModel, Finish, RunOwnCommand, next_action, told_of_command
from koboshi.domain.ids import CallId, EntryId, Epoch, Seq, TurnId
from koboshi.domain.transcript import (
    Body,
    Call,
    Effect,
    Message,
    Reply,
    Result,
    ResultStatus,
    Step,
)

ID = CallId("1.0")


def steps(*bodies: Body) -> list[Step]:
    return [
        Step(seq=Seq(place), turn_id=TurnId(1), epoch=Epoch(1), at_ms=0, body=body)
        for place, body in enumerate(bodies, start=1)
    ]


def said(command: str = "", text: str = "go") -> Message:
    return Message(text=text, sender="ann", entry_id=EntryId(1), sent_ms=0, command=command)


def called(tool: str) -> Reply:
    call = Call(call_id=ID, tool=tool, arguments="{}", effect=Effect.NONE)
    return Reply(text="", calls=(call,))


def result(**fields: object) -> Result:
    return Result(call_id=ID, status=ResultStatus.OK, text=json.dumps(fields))


def test_a_command_is_run_and_told_without_a_model() -> None:
    assert next_action(steps(said("date")), ()) == RunOwnCommand(command="date")
    ended = steps(
        said("date"), called("terminal"), result(status="exited", exit_code=0, output="x")
    )
    action = next_action(ended, ())
    assert isinstance(action, Finish)
    assert (action.reply.text, action.is_silent) == ("x", False)


@pytest.mark.parametrize(
    "fields, told",
    [
        ({"status": "exited", "exit_code": 0, "output": ""}, ""),
        ({"status": "exited", "exit_code": 0, "output": "hi\n"}, "hi"),
        ({"status": "exited", "exit_code": 3, "output": ""}, "`date` ended with code 3."),
        ({"status": "timed_out", "output": "so far"}, "`date` was timed_out.\nso far"),
    ],
)
def test_output_is_told_if_there_is_any_and_a_code_other_than_0_always(
    fields: dict[str, object], told: str
) -> None:
    assert told_of_command("date", result(**fields)) == told


def test_a_command_that_was_not_run_is_told() -> None:
    refused = Result(call_id=ID, status=ResultStatus.ERROR, text="no such tool")
    assert "no such tool" in told_of_command("date", refused)


def test_nothing_to_report_ends_the_turn_in_silence_and_a_message_in_between_does_not() -> None:
    quiet = (said(), called("nothing_to_report"), result(status="ok"))
    action = next_action(steps(*quiet), ())
    assert isinstance(action, Finish)
    assert action.is_silent
    assert next_action(steps(*quiet, said(text="wait!")), ()) == CallModel()
    assert next_action(steps(said(), called("pause"), result(status="ok")), ()) == CallModel()
