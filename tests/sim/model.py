"""The model of the simulation: what it does is written in the message, one word for each reply.

It keeps nothing between two requests: a turn that was killed goes on where its transcript ends.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from koboshi.domain.action import EMPTY_REPLY
from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.domain.transcript import Message, Note, Reply, Result, Step
from koboshi.ports.model import CallRequest, ModelReply, OnText, Request
from tests.sim.power import Power

LONG = "so be it. " * 120
PLANNED = (
    *("none", "once", "once", "twice", "repeatable", "resumable", "guarded", "ask", "empty"),
    *("run", "run", "job", "quiet", "job wait", "quiet wait", "job kill", "watch", "refuse"),
)
"""What a message may ask for; a plan is some of these."""


@dataclass(slots=True, kw_only=True)
class SimModel:
    power: Power

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        await self.power.takes(0.05, 4.0)
        if self.power.dice.random() < 0.06:
            retry_after_ms = self.power.dice.choice((None, 1_000, 20_000))
            raise ModelBusy("overloaded", retry_after_ms)
        return reply_to([step for step in request.steps if step.turn_id == request.turn_id])


def reply_to(steps: Sequence[Step]) -> ModelReply:
    """The next reply in a turn: the next word of the newest plan, or the answer behind its last."""
    bodies = [step.body for step in steps]
    planned = [place for place, body in enumerate(bodies) if _plan_of(body) is not None]
    if not planned:
        return ModelReply(text=f"noted: {_heard(bodies)}")
    plan = _plan_of(bodies[planned[-1]])
    assert plan is not None
    key, words = plan
    done = bodies[planned[-1] :]
    place = sum(isinstance(body, Reply) or _is_nudge(body) for body in done)
    if place >= len(words):
        return ModelReply(text=f"answer {key}")
    return _reply(words[place], f"{key}.{place}", [b for b in done if isinstance(b, Result)])


def _reply(word: str, key: str, results: Sequence[Result]) -> ModelReply:
    match word:
        case "long":
            return ModelReply(text=f"answer {key.partition('.')[0]} {LONG}")
        case "empty":
            return ModelReply(text="")
        case "refuse":
            raise ModelRefused("it will not")
        case "ask":
            asked: dict[str, object] = {
                "question": f"which one, {key}?",
                "choices": ["tea", "milk"],
            }
            return _calls(key, ("ask", asked))
        case "twice":
            return _calls(key, ("do_none", {"key": f"{key}a"}), ("do_once", {"key": f"{key}b"}))
        case "run":
            return _calls(key, ("terminal", {"command": f"run {key}"}))
        case "job" | "quiet":
            job = {"command": f"job {key}", "background": True}
            return _calls(key, ("terminal", job | {"notify_on_complete": word == "job"}))
        case "watch":
            watched = {"command": f"job {key}", "background": True, "watch_patterns": ["line"]}
            return _calls(key, ("terminal", watched))
        case "wait" | "kill":
            started = [named for named in map(_process_in, results) if named]
            if not started:
                return _calls(key, ("do_none", {"key": key}))
            look = {"action": word, "process_id": started[-1]}
            return _calls(key, ("process", look | ({"timeout": 60} if word == "wait" else {})))
        case "guarded":
            return _calls(key, ("guarded", {"key": key}))
        case _:
            return _calls(key, (f"do_{word}", {"key": key}))


def _calls(key: str, *calls: tuple[str, dict[str, object]]) -> ModelReply:
    made = [
        CallRequest(provider_id=f"{key}-{place}", tool=tool, arguments=json.dumps(arguments))
        for place, (tool, arguments) in enumerate(calls)
    ]
    return ModelReply(text=f"now {key}", calls=tuple(made))


def _plan_of(body: object) -> tuple[str, list[str]] | None:
    """The key and the words of a message such as `m3 do once wait`."""
    if not isinstance(body, Message):
        return None
    key, _, plan = body.text.partition(" do")
    return (key, plan.split()) if key.startswith("m") and key[1:].isdigit() else None


def _is_nudge(body: object) -> bool:
    return isinstance(body, Note) and body.cause == EMPTY_REPLY


def _heard(bodies: Sequence[object]) -> str:
    return " ".join(body.cause for body in bodies if isinstance(body, Note))


def _process_in(result: Result) -> str | None:
    try:
        return json.loads(result.text).get("process_id")
    except (ValueError, AttributeError):
        return None
