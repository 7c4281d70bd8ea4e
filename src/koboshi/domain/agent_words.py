"""What is said to foreign agents and about them, in words."""

from collections.abc import Sequence

from koboshi.domain.agent_talk import turn_mark, without_turn_marks
from koboshi.domain.ids import TurnId
from koboshi.domain.marks import MARK, unmarked
from koboshi.domain.phrases import excerpt
from koboshi.domain.transcript import Answer, CallRecord, Message, Note, Reply, Step

PREAMBLE_CHARS_MAX = 24_000
STEP_CHARS_MAX = 4_000
CALLS_NAMED = 10
NO_WORDS = "(the agent ended without words)"
_STOPS = {
    "max_tokens": "The agent stopped: it reached the limit of its words.",
    "max_turn_requests": "The agent stopped: it reached the limit of its requests.",
    "refusal": "The agent declined to go on.",
}


def request_text(turn_id: TurnId, steps: Sequence[Step]) -> str:
    """What a turn asks of the agent, with the mark by which a replay is known."""
    return "\n\n".join([*_asked(steps), turn_mark(turn_id)])


def _asked(steps: Sequence[Step]) -> list[str]:
    found = []
    for step in steps:
        match step.body:
            case Message() as message:
                found.append(unmarked(message.words))
            case Note(cause=cause, text=text) if not cause.startswith(("recovery", "agent")):
                found.append(text)
    return [without_turn_marks(words) for words in found if words]


def go_on_text(
    turn_id: TurnId, steps: Sequence[Step], calls: Sequence[CallRecord], *, is_away: bool = False
) -> str:
    """Said to an agent that died at work, or is away: what is known, and that it goes on."""
    happened = "Your process ended while you worked on the request below"
    if is_away:
        happened = (
            "You worked on the request below on another machine, which cannot be reached now and "
            "may work on"
        )
    lines = [
        f"{MARK} {happened}; you were started again. "
        "How far you came is not known. Look at what is there before you repeat anything."
    ]
    unknown = [_call_words(each) for each in calls if each.died_ms or not each.finished_ms]
    unknown = unknown or [_call_words(each) for each in calls[-1:]]
    if unknown:
        lines.append("These steps of yours have no known end:")
        lines += unknown[-CALLS_NAMED:]
    lines.append("The request was:")
    return "\n\n".join(["\n".join(lines), *_asked(steps), turn_mark(turn_id)])


def preamble(context: Sequence[Step]) -> str:
    """What was said in the chat before, for an agent that does not know it; else empty."""
    found: list[str] = []
    size = 0
    for step in reversed(context):
        words = _spoken(step)
        if not words:
            continue
        size += len(words)
        if size > PREAMBLE_CHARS_MAX:
            break
        found.append(words)
    if not found:
        return ""
    head = f"{MARK} This conversation began before your session. What was said so far:"
    end = f"{MARK} That was the record. Now:"
    return "\n\n".join([head, *reversed(found), end])


def _spoken(step: Step) -> str:
    match step.body:
        case Message() as message:
            return f"Person: {excerpt(unmarked(message.words), STEP_CHARS_MAX)}"
        case Answer(text=text):
            return f"You: {excerpt(unmarked(text), STEP_CHARS_MAX)}"
        case Reply(text=text) if text.strip():
            return f"You: {excerpt(unmarked(text), STEP_CHARS_MAX)}"
        case _:
            return ""


def _call_words(record: CallRecord) -> str:
    return f"- {record.call.tool}: {excerpt(unmarked(record.call.arguments), 200)}"


def died_note(rule: str, because: str) -> Note:
    """For the transcript: why a prompt was sent after a death."""
    return Note(cause=f"agent:{rule}", text=f"{MARK} {because[0].upper()}{because[1:]}.")


def forgot(agent: str) -> str:
    """Said to the person, when the agent has lost its memory."""
    return (
        f"The agent {agent} could not take up its earlier session: its own memory of this "
        "conversation is gone. It goes on with what I have recorded here."
    )


def waits_for_room(agent: str, running: int) -> str:
    """Said to a person whose agent cannot be started yet."""
    return (
        f"The agent {agent} is not started yet: as many agents are at work as may at once "
        f"({running}). Yours begins when one of them has nothing to do; /why says more, and /stop "
        "ends it."
    )


def asks_too_much(agent: str, most: int) -> str:
    """Said once in a turn in which the agent asks for very much at once."""
    return (
        f"The agent {agent} asks for more than {most} things at once. They are looked at one after "
        "the other, and it waits meanwhile; /stop ends it."
    )


def does_too_much(agent: str, most: int) -> str:
    """Said once in a turn in which the agent has used more tools than are recorded."""
    return (
        f"The agent {agent} has used its tools more than {most} times for this. What it does from "
        "now on is not recorded; /stop ends it."
    )


def silent(agent: str, reason: str, seconds: float, *, has_history: bool) -> str:
    """Why a turn failed whose agent did not answer when it was to begin; with what helps."""
    anew = " /new begins without its earlier session." if has_history else ""
    return (
        f"{reason} within {seconds:g} seconds, and was ended. `koboshi agents try {agent}` shows "
        f"what it does; `agents.{agent}.start_seconds` is how long it may take.{anew}"
    )


def awaits_answer(agent: str, method: str, waited: str) -> str:
    """What holds up a turn whose agent is not ready yet."""
    return (
        f"the agent {agent} has not answered {method} for {waited}; after "
        f"`agents.{agent}.start_seconds` it is ended (rule agent-silent)"
    )


def ask_after_death(agent: str, request: str) -> str:
    return (
        f"The agent {agent} died while it worked on «{excerpt(request, 200)}», and how far it came "
        "is not known. Shall it go on?"
    )


def answer_text(said: str, stop: str) -> str:
    """The words of the answer, and why the agent stopped if that was not its own end."""
    why = _STOPS.get(stop, "")
    return "\n\n".join(part for part in (said.strip(), why) if part) or NO_WORDS
