"""The offline model: it needs no key and no network, and does the same each time.

It keeps nothing between two requests. All it knows is in the steps of the turn, so a turn that was
killed goes on where its last durable step is, in whatever process.
"""

from collections.abc import Sequence
from typing import assert_never

import anyio
import msgspec

from koboshi.domain import notes
from koboshi.domain.errors import ModelRefused
from koboshi.domain.ids import ProcessId, parse_shown
from koboshi.domain.telling import names
from koboshi.domain.transcript import Message, Note, Result, ResultStatus
from koboshi.models.sample_story import STORY, WORD_MS
from koboshi.models.script import BadScript, calls_of, error_of, item_at, read_script
from koboshi.models.tasks import Task, joined_in, rounds_in, task_in
from koboshi.models.wishes import (
    AskThem,
    Count,
    FollowScript,
    Refuse,
    RunCommand,
    SayNothing,
    SayWords,
    TellStory,
    Wish,
    counted,
)
from koboshi.ports.model import CallRequest, ModelReply, OnText, Request

NAME = "scripted"


class ScriptedModel:
    """A `ports.model.Model` that follows the newest words of the turn that it understands."""

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        if request.wants_summary:
            return _says(_summed_up(request))
        if request.wants_verdict:
            return _says(_verdict(request))
        steps = [step for step in request.steps if step.turn_id == request.turn_id]
        wishes = joined_in(steps)
        if not wishes:
            return await _next_of(task_in(steps), on_text)
        return await _next_of_all(wishes, rounds_in(steps), on_text)


async def _next_of(task: Task, on_text: OnText | None) -> ModelReply:
    match task.wish:
        case SayWords(text=text):
            return _says(text)
        case SayNothing():
            return _says("")
        case Refuse():
            raise ModelRefused("the scripted model was asked to fail")
        case Count(last=last):
            return _next_number(last, task)
        case AskThem() as wish:
            return _next_of_question(wish, task)
        case RunCommand() as wish:
            return _next_of_command(wish, task)
        case TellStory():
            await _say_slowly(STORY, 0 if task.is_past else WORD_MS, on_text)
            return _says(STORY)
        case FollowScript(script=script):
            return await _next_of_script(script, task, on_text)
        case _:
            assert_never(task.wish)


async def _next_of_all(
    wishes: Sequence[Wish], rounds: Sequence[Sequence[Result]], on_text: OnText | None
) -> ModelReply:
    """One wish after the other; what is to be said of each is said at the end, in one answer."""
    texts: list[str] = []
    begin = end = 0
    for wish in wishes:
        while True:
            results = tuple(result for each in rounds[begin:end] for result in each)
            is_past = end < len(rounds)
            task = Task(wish=wish, replies=end - begin, results=results, is_past=is_past)
            reply = await _next_of(task, on_text)
            if reply.text and not reply.calls:
                texts.append(reply.text)
                begin = end
                break
            if not is_past:
                return reply
            end += 1
    return _says("\n\n".join(texts))


def _summed_up(request: Request) -> str:
    """What a later request needs to know. This model has no other memory, so its place in the work
    of the turn is in the summary."""
    heard = sum(isinstance(step.body, Message) for step in request.steps)
    own = [step for step in request.steps if step.turn_id == request.turn_id]
    # Notes of this turn stay visible, and are counted where they are seen.
    task = task_in([step for step in own if not isinstance(step.body, Note)])
    done = f"{task.replies} replies, {task.results_before + len(task.results)} results"
    return f"{heard} messages. Done for the last one so far: {done}."


def _verdict(request: Request) -> str:
    """A goal is reached when the newest answer says DONE, and goes on when it says MORE. Of any
    other answer this model cannot tell, and the person is asked."""
    case = "".join(step.body.text for step in request.steps if isinstance(step.body, Message))
    _, _, answer = case.rpartition("[answer] ")
    known = {"DONE": "done", "MORE": "continue"}
    said = next((known[word] for word in known if word in answer), "blocked")
    reason = (
        f"the answer says {said}" if said != "blocked" else "an offline model cannot judge this"
    )
    return msgspec.json.encode({"verdict": said, "reason": reason}).decode()


def _says(text: str) -> ModelReply:
    return ModelReply(text=text, model=NAME)


def _next_number(last: int, task: Task) -> ModelReply:
    failed = _failure_in(task)
    if failed is not None:
        return _says(f"I could not go on counting: {failed.text}")
    done = task.results_before + len(task.results)
    if done >= last:
        return _says(counted(last))
    pause = CallRequest(provider_id=f"{NAME}-{done}", tool="pause", arguments='{"seconds":1}')
    return ModelReply(text=str(done + 1), calls=(pause,), model=NAME)


def _next_of_question(wish: AskThem, task: Task) -> ModelReply:
    failed = _failure_in(task)
    if failed is not None:
        return _says(f"I could not ask you: {failed.text}")
    if task.results:
        said = answer_in(task.results[-1].text)
        return _says(
            f"You said: {said}" if said.endswith((".", "!", "?")) else f"You said: {said}."
        )
    if task.results_before:
        return _says("You answered, and I no longer know what.")
    arguments: dict[str, object] = {"question": wish.question}
    if wish.choices:
        arguments["choices"] = wish.choices
    encoded = msgspec.json.encode(arguments).decode()
    call = CallRequest(provider_id=f"{NAME}-ask", tool="ask", arguments=encoded)
    return ModelReply(text="", calls=(call,), model=NAME)


def _next_of_command(wish: RunCommand, task: Task) -> ModelReply:
    if task.results:
        result = task.results[-1].text
        return _says(_ended_since(result, task.reports) or ran_in(result))
    if task.results_before:
        return _says("It ran, and I no longer know what it said.")
    arguments: dict[str, object] = {"command": wish.command}
    if wish.is_background:
        arguments |= {"background": True, "notify_on_complete": True}
    encoded = msgspec.json.encode(arguments).decode()
    call = CallRequest(provider_id=f"{NAME}-run", tool="terminal", arguments=encoded)
    return ModelReply(text="", calls=(call,), model=NAME)


async def _next_of_script(script: str, task: Task, on_text: OnText | None) -> ModelReply:
    try:
        item = item_at(read_script(script), task.replies)
    except BadScript as error:
        return _says(f"I cannot follow this script: {error}")
    if task.is_past:
        return ModelReply(text=item.text, calls=calls_of(item, task.replies), model=NAME)
    if item.sleep_ms:
        await anyio.sleep(item.sleep_ms / 1_000)
    failure = error_of(item)
    if failure is not None:
        raise failure
    if item.word_ms:
        await _say_slowly(item.text, item.word_ms, on_text)
    return ModelReply(text=item.text, calls=calls_of(item, task.replies), model=NAME)


async def _say_slowly(text: str, word_ms: int, on_text: OnText | None) -> None:
    for word in text.split(" "):
        if on_text is not None:
            on_text(f"{word} ")
        await anyio.sleep(word_ms / 1_000)


def _failure_in(task: Task) -> Result | None:
    """The first result that says that something went wrong: repeating it would not end."""
    return next((each for each in task.results if each.status is not ResultStatus.OK), None)


def _ended_since(result: str, reports: Sequence[str]) -> str:
    """How a command has ended that was begun in the background, if that was reported since."""
    try:
        process = parse_shown(msgspec.json.decode(result, type=_Ran).process_id)
    except (ValueError, RecursionError):
        return ""
    ends = map(notes.reported_in, reports)
    if process is None:
        return ""
    return "\n\n".join(end for end in ends if names(end, ProcessId(process[1])))


class _Answered(msgspec.Struct):
    answer: str


def answer_in(result: str) -> str:
    """What the person said, from the result of an `ask`."""
    try:
        return msgspec.json.decode(result, type=_Answered).answer.strip()
    except (ValueError, RecursionError):
        return result.strip()


class _Ran(msgspec.Struct):
    status: str
    process_id: str = ""
    exit_code: int | None = None
    reason: str = ""
    output: str = ""


def ran_in(result: str) -> str:
    """What became of a command, from the result of `terminal`."""
    try:
        ran = msgspec.json.decode(result, type=_Ran)
    except (ValueError, RecursionError):
        return result.strip()
    match ran.status:
        case "running":
            return f"It runs in the background as {ran.process_id}. I will tell you how it ends."
        case "exited":
            words = f"It exited with code {ran.exit_code}."
        case status:
            words = f"It ended: {status.replace('_', ' ')}" + (
                f", {ran.reason}." if ran.reason else "."
            )
    return f"{words}\n{ran.output}".rstrip()
