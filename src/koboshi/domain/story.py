"""What happened, in plain words, from the lines of the journal. Pure.

The one place that words events. It is here and not in `control/`, because `/why` is answered in the
transaction that stores the command, where the kernel reads the journal. `explain` and `trace` tell
the same lines from the views, and the events that the page and the chat get carry these words.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from koboshi.domain.action import EMPTY_REPLY, OWN_REPLY
from koboshi.domain.agent_death import death_words
from koboshi.domain.boot import ENDED_WORDS
from koboshi.domain.goal import GoalRule
from koboshi.domain.ids import shown
from koboshi.domain.notes import BACKLOG, CHILD, ENDED, MOVED_ON, RECOVERY, RETRY, TIMED
from koboshi.domain.occasion import rule_words
from koboshi.domain.phrases import failure
from koboshi.domain.worker import EndedHow

_TURN = {
    "opened": "accepted",
    "claimed": "work began",
    "asked": "it waits for the answer",
    "replied": "the person answered",
    "declined": "the person did not want it to go on",
    "expired": "the question was not answered in time, so the turn was closed",
    "answered": "the answer was stored",
    "settled": "done: nothing is left to deliver",
    "released": "set down, because the gateway was stopping",
    "postponed": "set down for a while",
    "interrupted": "ended by a newer message",
    "erred": "failed",
    "cut": "stopped by the person",
    "dropped": "ended for good",
    "resumed": "taken up again",
    "prompted": "it waits for a yes or a no",
    "parked": "set aside",
    "cleared": "ended",
    "gave-up": "given up",
    "silenced": "done, and no person was told: there was nothing to report, or it works for a turn",
}
_TAKEN_UP = {
    "crash": "taken up again after the gateway had died",
    "drain": "taken up again after a restart",
    "node-lost": "taken up again after its machine was lost",
    "person": "taken up again, because the person wanted it",
}
_NOTES = {
    RECOVERY: "the model was told of the interruption",
    RETRY: "the model was told what ran before, so that it does not repeat it",
    MOVED_ON: "the model was told of the request that is not continued",
    BACKLOG: "what else was sent before this boot joined it, and the model was told so",
    EMPTY_REPLY: "the model was asked again, because its reply was empty",
    TIMED: "time began it: a schedule, or a standing goal",
    CHILD: "it works for another turn, and the model was told so",
}
_CHILD = {"made": "was asked for", "begun": "began", "ended": "ended"}
_GOAL = {
    "begun": "was set",
    "judging": "is judged by the answer",
    "active": "continues",
    "waiting": "waits",
    "paused": "was paused",
    "done": "is reached",
    "cleared": "was cleared",
}
_GOAL_RULES: Mapping[str, str] = {
    GoalRule.FAILED: "its turn failed",
    GoalRule.STOPPED: "its turn was stopped",
    GoalRule.BY_PERSON: "a person asked for it",
    GoalRule.NEW: "a new conversation was begun",
    GoalRule.PERSON_FIRST: "what a person wrote goes first",
    GoalRule.STEPS: "all of its steps are used up",
    GoalRule.TOKENS: "all of its tokens are used up",
    GoalRule.UNREADABLE: "the verdict could not be read",
    GoalRule.NO_JUDGE: "no verdict could be had",
    GoalRule.IDLE: "nothing was done for it for a long time",
    GoalRule.WOKEN: "what it waited for has come",
    GoalRule.DECLINED: "the person did not want it to go on",
    GoalRule.NOT_ALLOWED: "its person has no access any more",
}
"""Without those that the events say already."""
_DELIVERY = {
    "delivered": "was delivered",
    "postponed": "was put off",
    "rejected": "was refused by the platform",
    "abandoned": "was given up",
}


class Happening(Protocol):
    """A line of the journal, as far as it is worded."""

    @property
    def at_ms(self) -> int: ...

    @property
    def subject(self) -> str: ...

    @property
    def number(self) -> int: ...

    @property
    def event(self) -> str: ...

    @property
    def after(self) -> str | None: ...

    @property
    def rule(self) -> str | None: ...

    @property
    def reason(self) -> str | None: ...

    @property
    def worker_id(self) -> int | None: ...


def story_of_lines(lines: Sequence[Happening]) -> list[tuple[int, str]]:
    """What the lines say, each with its time, without those that say nothing."""
    worded = zip(lines, words_of_lines(lines), strict=True)
    return [(line.at_ms, words) for line, words in worded if words]


def words_of_lines(lines: Sequence[Happening]) -> tuple[str, ...]:
    """What each line says. It is empty for a line that repeats its neighbour."""
    tools: dict[str, str] = {}
    for line in lines:
        if line.subject == "call" and line.reason:
            call_id, _, tool = line.reason.partition(" ")
            tools[call_id] = tool
    return tuple(_words(line, tools) or "" for line in lines)


def _words(line: Happening, tools: Mapping[str, str]) -> str | None:
    match line.subject:
        case "turn":
            return _of_turn(line)
        case "step":
            return _of_step(line, tools)
        case "call":
            _, _, tool = (line.reason or "").partition(" ")
            return f"the tool {tool} began"
        case "delivery":
            words = _DELIVERY.get(line.event, line.event)
            return _with_reason(f"d{line.number} {words}", line.reason)
        case "process":
            words = "began" if line.event == "begun" else line.event
            return _with_reason(f"{shown('process', line.number)} {words}", line.reason)
        case "worker":
            return _of_worker(line)
        case "model":
            return _with_reason(f"it went on with the model {line.after}", line.reason)
        case "schedule":
            why = rule_words(line.rule) if line.rule else line.reason
            return _with_reason(f"{shown('schedule', line.number)} {line.event}", why)
        case "goal":
            return _of_goal(line)
        case "child":
            name = f"sub-agent {shown('child', line.number)}"
            return _with_reason(f"{name} {_CHILD.get(line.event, line.event)}", line.reason)
        case _:
            return _with_reason(f"{line.subject} {line.number}: {line.event}", line.reason)


def _of_turn(line: Happening) -> str:
    words = _TURN.get(line.event, line.event)
    match line.event:
        case "claimed":
            return f"{words} (boot {line.worker_id})"
        case "resumed":
            words = _TAKEN_UP.get(line.reason or "", words)
            return f"{words} (rule {line.rule})" if line.rule else words
        case "erred":
            return _with_reason(words, failure(line.reason or ""))
        case "postponed":
            return _with_reason(words, line.reason)
        case "prompted" | "parked" | "cleared" | "gave-up":
            by = f"{words} (rule {line.rule})" if line.rule else words
            return _with_reason(by, line.reason)
        case "declined" if line.reason == "other words":
            return f"{words}: they wrote something else, and that opened a turn of its own"
        case _:
            return words


def _of_goal(line: Happening) -> str:
    words = f"goal {shown('goal', line.number)} {_GOAL.get(line.event, line.event)}"
    return _with_reason(words, _GOAL_RULES.get(line.rule or ""))


def _of_worker(line: Happening) -> str | None:
    """The words follow the name of the boot. Its report says more than that it started."""
    match line.event:
        case "booted":
            return line.reason
        case "ended" if line.reason in ENDED_WORDS:
            return ENDED_WORDS[EndedHow(line.reason)]
        case "started":
            return None
        case _:
            return _with_reason(line.event, line.reason)


def _of_step(line: Happening, tools: Mapping[str, str]) -> str | None:
    cause = line.reason or ""
    match line.event:
        case "answer":
            return None  # the turn's own line says so
        case "note" if cause == ENDED:
            return None  # likewise
        case "reply" if cause == OWN_REPLY:
            return "the gateway runs the command itself; no model is asked"
        case "reply":
            return "the agent replied" if cause == "agent" else "the model replied"
        case "result":
            call_id = cause.removeprefix("call:")
            tool = tools.get(call_id)
            return f"the tool {tool} has its result" if tool else f"call {call_id} has its result"
        case "question":
            asks_itself = cause.startswith("verdict:") or cause in ("asked-first", "agent-died")
            who = "the gateway asked the person whether to go on" if asks_itself else ""
            return who or "the model asked the person a question"
        case "note" if cause.startswith("entry:"):
            return "a report was passed on to the model"
        case "note" if cause.startswith("agent:"):
            return death_words(cause.removeprefix("agent:"))
        case "summary":
            return "what was said before was summed up for the model"
        case "note":
            return _NOTES.get(cause, "the model was told something")
        case _:
            return f"{line.event} was stored"


def _with_reason(words: str, reason: str | None) -> str:
    return f"{words}: {reason}" if reason else words
