"""What people ask for under torture, and what must come of it. Pure: a die decides."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

LEDGER = "ledger"
"""The file, in the folder where commands run, that every command adds one line to."""

MARK = re.compile(r"\b[a-z]+[0-9]+x[0-9]{5}[abc]?\b")
"""What a mark looks like: the chat, and a number."""

CHOICES = ("tea", "coffee", "water")
LONG_PARAGRAPHS = 50
LETTER_PARAGRAPHS = 12


class ErrandKind(StrEnum):
    ECHO = "echo"
    TOOLS = "tools"
    COUNT = "count"
    COMMAND = "command"
    JOB = "job"
    QUESTION = "question"
    LONG = "long"
    EMPTY = "empty"
    FAIL = "fail"
    STOP = "stop"
    OUTAGE = "outage"
    REPLY = "reply"  # to a question
    ORDER = "order"  # a command of the chat: it is handled, not answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """One message. `mark` is in no other one; `answer` is a pattern for the whole answer, empty
    where there is to be none."""

    kind: ErrandKind
    mark: str
    text: str
    answer: str = ""
    choice: str = ""
    """What is answered when the agent asks."""
    code: int = 0
    """The exit code of the command."""
    stop_after_s: float | None = None
    """When the person stops it."""
    recovers_after_s: float | None = None
    """When the model answers again; it is busy before."""

    @property
    def leaves_line(self) -> bool:
        return self.kind in (ErrandKind.COMMAND, ErrandKind.JOB)


def recovery_of(mark: str) -> str:
    """The file, in the folder where commands run, that makes the model answer again."""
    return f"{mark}.recovered"


def exited(code: int) -> str:
    """A pattern for what the agent says of a command that has ended."""
    return f"It exited with code {code}\\."


def errands_of(dice: random.Random, mark: str) -> list[Errand]:
    """The next things that a person asks for: most often one, sometimes three in a hurry."""
    if dice.random() < 0.12:
        return [_echo(dice, f"{mark}{letter}") for letter in "abc"]
    (make,) = dice.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    return [make(dice, mark)]


def errand_afield(dice: random.Random, mark: str) -> Errand:
    """The next thing that a person asks for on another platform."""
    (make,) = dice.choices(list(_AFIELD), list(_AFIELD.values()))
    return make(dice, mark)


def _echo(_dice: random.Random, mark: str) -> Errand:
    return Errand(kind=ErrandKind.ECHO, mark=mark, text=f"echo {mark}", answer=re.escape(mark))


def _tools(dice: random.Random, mark: str) -> Errand:
    """Two calls side by side, then one more, then the answer."""
    first, second = _pauses(dice, 0.02, 0.2), _pauses(dice, 0.02, 0.7)
    text = _script({"calls": first + second}, {"calls": _pauses(dice, 0.01, 0.1)}, {"text": mark})
    return Errand(kind=ErrandKind.TOOLS, mark=mark, text=text, answer=re.escape(mark))


def _count(_dice: random.Random, mark: str) -> Errand:
    return Errand(
        kind=ErrandKind.COUNT, mark=mark, text="count to 2 slowly", answer="1, 2: done\\."
    )


def _command(dice: random.Random, mark: str) -> Errand:
    wait, code = dice.choice((0, 0.05, 0.3)), dice.choice((0, 0, 4))
    command = f"echo {mark} >> {LEDGER}; sleep {wait}; echo {mark}; exit {code}"
    answer = f"{exited(code)}\n{re.escape(mark)}"
    return Errand(
        kind=ErrandKind.COMMAND, mark=mark, text=f"run {command}", answer=answer, code=code
    )


def _job(dice: random.Random, mark: str) -> Errand:
    wait, code = dice.choice((0, 0.1, 0.5)), dice.randint(0, 9)
    command = f"echo {mark} >> {LEDGER}; sleep {wait}; echo {mark}; exit {code}"
    # After a crash the agent may be shown the end instead, and then there is nothing to report. One
    # that ends at once is reported to the turn that has begun it.
    ended = f"{exited(code)}\n{re.escape(mark)}"
    reported = (
        f"Background process p[0-9]+ [^\n]* exited with code {code} [^\n]*:\n{re.escape(mark)}"
    )
    runs = "It runs in the background as p[0-9]+\\. I will tell you how it ends\\."
    answer = f"{runs}|{ended}|{reported}"
    text = f"in background {command}"
    return Errand(kind=ErrandKind.JOB, mark=mark, text=text, answer=answer, code=code)


def _question(dice: random.Random, mark: str) -> Errand:
    choice = dice.choice(CHOICES)
    text = f"ask me which drink for {mark}: {CHOICES[0]}, {CHOICES[1]} or {CHOICES[2]}"
    answer = f"You said: {choice}\\."
    return Errand(kind=ErrandKind.QUESTION, mark=mark, text=text, answer=answer, choice=choice)


def _long(_dice: random.Random, mark: str) -> Errand:
    """More than one part on the web."""
    words = "\n\n".join(f"{mark} {number} " + "word " * 150 for number in range(LONG_PARAGRAPHS))
    words = words.strip()
    text = _script({"text": words})
    return Errand(kind=ErrandKind.LONG, mark=mark, text=text, answer=re.escape(words))


def _empty(_dice: random.Random, mark: str) -> Errand:
    """The model says nothing, and is asked again."""
    text = _script({"empty": True}, {"text": mark})
    return Errand(kind=ErrandKind.EMPTY, mark=mark, text=text, answer=re.escape(mark))


def _errand_of_calls(dice: random.Random, mark: str) -> Errand:
    """Two calls, one after the other. The mark comes first, so that whatever is said of the request
    names it."""
    first: dict[str, object] = {"text": mark, "calls": _pauses(dice, 0.02, 0.4)}
    text = _script(first, {"calls": _pauses(dice, 0.01, 0.2)}, {"text": mark})
    return Errand(kind=ErrandKind.TOOLS, mark=mark, text=text, answer=re.escape(mark))


def _letter(_dice: random.Random, mark: str) -> Errand:
    """A few parts on a platform that takes some thousand characters at once."""
    words = "\n\n".join(f"{mark} {number} " + "word " * 150 for number in range(LETTER_PARAGRAPHS))
    words = words.strip()
    text = _script({"text": words})
    return Errand(kind=ErrandKind.LONG, mark=mark, text=text, answer=re.escape(words))


def _fail(_dice: random.Random, mark: str) -> Errand:
    text = _script({"refuse": f"no {mark}"})
    return Errand(kind=ErrandKind.FAIL, mark=mark, text=text)


def _stop(dice: random.Random, mark: str) -> Errand:
    """The model does not answer for now, or asks for a long wait, and the person has enough."""
    waits: list[dict[str, object]] = [{}, {"retry_after_ms": 60_000}]
    busy = dice.choice(waits)
    stop_after_s = dice.choice((0.1, 0.4))
    text = _script({"busy": busy}, {"text": mark})
    return Errand(kind=ErrandKind.STOP, mark=mark, text=text, stop_after_s=stop_after_s)


def _outage(dice: random.Random, mark: str) -> Errand:
    """The model is busy for a while, for every request, and then answers. Where it asks for a long
    wait, the person is told of it, and does not want to wait so long."""
    outage: dict[str, object] = {"file": recovery_of(mark)}
    if dice.random() < 0.4:
        outage["retry_after_ms"] = 30_000
    text = _script({"busy_until": outage, "text": mark})
    return Errand(
        kind=ErrandKind.OUTAGE,
        mark=mark,
        text=text,
        answer=re.escape(mark),
        recovers_after_s=dice.choice((0.1, 0.5, 1.5)),
    )


_WEIGHTS: dict[Callable[[random.Random, str], Errand], float] = {
    _echo: 3,
    _tools: 3,
    _count: 0.3,
    _command: 3,
    _job: 2,
    _question: 2,
    _long: 1,
    _empty: 1,
    _fail: 0.7,
    _stop: 1,
    _outage: 1,
}
_AFIELD: dict[Callable[[random.Random, str], Errand], float] = {
    _echo: 4,
    _errand_of_calls: 3,
    _command: 2,
    _letter: 1,
    _fail: 0.5,
    _outage: 0.5,
}
"""What is asked for where a person sees only what is said: all of it names its mark."""


def _script(*items: dict[str, object]) -> str:
    return f"script: {json.dumps(items)}"


def _pauses(dice: random.Random, low: float, high: float) -> list[object]:
    return [{"tool": "pause", "arguments": {"seconds": round(dice.uniform(low, high), 3)}}]
