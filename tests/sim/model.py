"""The model of the simulation: what it does is written in the message, one word for each reply.

It keeps nothing between two requests: a turn that was killed goes on where its transcript ends.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from koboshi.domain.action import EMPTY_REPLY
from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.domain.notes import BACKLOG
from koboshi.domain.transcript import Message, Note, Reply, Result, ResultStatus, Step
from koboshi.ports.model import CallRequest, ModelReply, OnText, Request
from tests.sim.effects import Asked, Effects
from tests.sim.loop import SimClock
from tests.sim.power import Power
from tests.sim.weather import Weather

LONG = "so be it. " * 120
PLANNED = (
    *("none", "once", "once", "twice", "repeatable", "resumable", "guarded", "ask", "empty"),
    *("run", "run", "job", "quiet", "job wait", "quiet wait", "job kill", "watch", "refuse"),
)
"""What a message may ask for; a plan is some of these."""
STEADY = ("none", "once", "twice", "repeatable", "resumable", "run", "none", "repeatable")
"""Those of them that need no person and leave nothing behind."""
AGAIN = "again: "
"""How a reply begins that repeats a call which is said to have failed."""

ASKED_TO_NAME = re.compile(r"name it as (p[0-9]+)\.")
"""What a note about the end of a process asks for."""


class Deadly(Exception):
    """The reply that kills the gateway which asked for it."""


@dataclass(slots=True, kw_only=True)
class SimModel:
    power: Power
    effects: Effects
    weather: Weather
    clock: SimClock

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        await self.power.takes(0.0, 0.001)
        self._look_at(request)
        await self.power.takes(0.05, 4.0)
        if self.weather.is_model_down(self.clock.monotonic()):
            raise ModelBusy("it is down")
        if self.power.dice.random() < self.weather.busy_share:
            retry_after_ms = self.power.dice.choice((None, 1_000, 20_000))
            raise ModelBusy("overloaded", retry_after_ms)
        try:
            return reply_to([step for step in request.steps if step.turn_id == request.turn_id])
        except Deadly as deadly:
            self.effects.killed[str(deadly)] += 1
            self.power.go_off(f"of the reply to {deadly}")
            self.power.check_on()
            raise

    def _look_at(self, request: Request) -> None:
        self.effects.asked.append(
            Asked(
                at_s=self.clock.monotonic(),
                wall_ms=self.clock.now_ms(),
                turn_id=request.turn_id,
                steps=request.steps,
            )
        )


def reply_to(steps: Sequence[Step]) -> ModelReply:
    """The next reply in a turn: the next word of the newest plan, or the answer behind its last."""
    bodies = [step.body for step in steps]
    planned = [place for place, body in enumerate(bodies) if _plan_of(body) is not None]
    if not planned:
        return ModelReply(text=f"noted: {_heard(bodies)}")
    # What came while no gateway ran is done as a whole; newer words take the place of older ones.
    told = [place for place, body in enumerate(bodies) if _is_backlog(body)]
    is_backlog = bool(told) and planned[-1] < told[0]
    plans = [plan for place in planned if (plan := _plan_of(bodies[place])) is not None]
    done = bodies[planned[-1] :]
    repeated = _repeated(done)
    if repeated is not None:
        return repeated
    place = sum(_is_planned(body) or _is_nudge(body) for body in done)
    results = [body for body in done if isinstance(body, Result)]
    texts: list[str] = []
    for key, words in plans if is_backlog else plans[-1:]:
        steps_of_plan = words.index("long") if "long" in words else len(words)
        if place < steps_of_plan:
            return _reply(words[place], f"{key}.{place}", results)
        place -= steps_of_plan
        texts.append(f"answer {key} {LONG}" if "long" in words else f"answer {key}")
    return ModelReply(text="\n".join(texts) + _ends_told(key, bodies))


def _reply(word: str, key: str, results: Sequence[Result]) -> ModelReply:
    match word:
        case "empty":
            return ModelReply(text="")
        case "deadly":
            raise Deadly(key.partition(".")[0])
        case "killer":
            return _calls(key, ("do_none", {"key": f"{key}!"}))
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
        case "run" | "slow":
            return _calls(key, ("terminal", {"command": f"{word} {key}"}))
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


def _repeated(done: Sequence[object]) -> ModelReply | None:
    """As models do: a call that is said to have failed is made once more."""
    replies = [body for body in done if isinstance(body, Reply) and body.calls]
    if not replies or replies[-1].text.startswith(AGAIN):
        return None
    said = {body.call_id: body.status for body in done if isinstance(body, Result)}
    failed = [
        call
        for call in replies[-1].calls
        if call.tool.startswith("do_") and said.get(call.call_id) is ResultStatus.ERROR
    ]
    calls = [
        CallRequest(provider_id=f"{call.provider_id}+", tool=call.tool, arguments=call.arguments)
        for call in failed
    ]
    return ModelReply(text=f"{AGAIN}{replies[-1].text}", calls=tuple(calls)) if calls else None


def _is_planned(body: object) -> bool:
    return isinstance(body, Reply) and not body.text.startswith(AGAIN)


def _is_nudge(body: object) -> bool:
    return isinstance(body, Note) and body.cause == EMPTY_REPLY


def _is_backlog(body: object) -> bool:
    return isinstance(body, Note) and body.cause == BACKLOG


def _heard(bodies: Sequence[object]) -> str:
    return " ".join(body.cause for body in bodies if isinstance(body, Note))


def _ends_told(key: str, bodies: Sequence[object]) -> str:
    """As models do: some tell the person what they are asked to tell, and some forget it."""
    if int(key[1:]) % 2:
        return ""
    noted = " ".join(body.text for body in bodies if isinstance(body, Note))
    return "".join(f", and {name} has ended" for name in ASKED_TO_NAME.findall(noted))


def _process_in(result: Result) -> str | None:
    try:
        return json.loads(result.text).get("process_id")
    except (ValueError, AttributeError):
        return None
