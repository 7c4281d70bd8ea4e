"""What the scripted model has to do in a turn, read from its steps. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from koboshi.domain import notes
from koboshi.domain.action import EMPTY_REPLY
from koboshi.domain.transcript import Message, Note, Reply, Result, Step, Summary
from koboshi.models.wishes import SayWords, Wish, wish_in

WELCOME = """\
Hello! I am the scripted model: I work offline and need no key. I understand:
• echo <text>
• count to 20 slowly (kill the gateway while I count: I go on after it)
• run <command>, or: in background <command> (it runs on when the gateway is killed)
• ask me which drink: tea, coffee or water
• tell me a story (it comes word by word)
• say nothing, or fail (to see what happens then)
A real model is set in koboshi.toml, as `name` under [model]."""

NOTED = "Noted."


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be done, and what was done about it since it was asked for."""

    wish: Wish
    replies: int
    """Replies so far; an empty one left only a note, and counts as well."""
    results: tuple[Result, ...]
    """The results of those replies, as far as they are shown."""
    results_before: int = 0
    """Those that only the summary speaks of."""
    reports: tuple[str, ...] = ()
    """What processes have reported since."""
    is_past: bool = False
    """The reply that follows was made before: it is asked only what came behind it."""


def task_in(steps: Sequence[Step]) -> Task:
    """The task of a turn with these steps. Only people give tasks: notes are passed over."""
    summary = next((step.body for step in steps if isinstance(step.body, Summary)), None)
    told = [step for step in steps if not isinstance(step.body, Summary)]
    bodies = [step.body for step in told]
    wish: Wish = SayWords(text=_noted(bodies))
    begin, has_spoken = 0, False
    for place, body in enumerate(bodies):
        if not isinstance(body, Message):
            continue
        found = wish_in(body.text)
        if found is not None:
            wish, begin = found, place
        elif isinstance(wish, SayWords) and not has_spoken:
            wish = SayWords(text=WELCOME)
        has_spoken = True
    done = bodies[begin:]
    is_covered = summary is not None and bool(told) and told[begin].seq <= summary.covers
    replies, results = _done_in(summary.text) if summary and is_covered else (0, 0)
    return Task(
        wish=wish,
        replies=replies + sum(isinstance(body, Reply) or _is_nudge(body) for body in done),
        results=tuple(body for body in done if isinstance(body, Result)),
        results_before=results,
        reports=tuple(_reports_in(done)),
    )


def joined_in(steps: Sequence[Step]) -> list[Wish]:
    """What several messages ask for that the turn is to answer together, in order. Empty where it
    answers one, where newer words came since, and where only a summary knows what was done."""
    bodies = [step.body for step in steps]
    places = [place for place, body in enumerate(bodies) if _is_backlog(body)]
    if not places or any(isinstance(body, Summary) for body in bodies):
        return []
    if any(_wish_of(body) is not None for body in bodies[places[0] :]):
        return []
    wishes = [wish for body in bodies[: places[0]] if (wish := _wish_of(body)) is not None]
    return wishes or [SayWords(text=WELCOME)]


def rounds_in(steps: Sequence[Step]) -> list[list[Result]]:
    """The results of each reply so far; an empty reply has none."""
    rounds: list[list[Result]] = []
    for step in steps:
        if isinstance(step.body, Reply) or _is_nudge(step.body):
            rounds.append([])
        elif isinstance(step.body, Result) and rounds:
            rounds[-1].append(step.body)
    return rounds


def _wish_of(body: object) -> Wish | None:
    return wish_in(body.text) if isinstance(body, Message) else None


def _is_backlog(body: object) -> bool:
    return isinstance(body, Note) and body.cause == notes.BACKLOG


def _noted(bodies: Sequence[object]) -> str:
    """What there is to say without a message: what processes reported."""
    return "\n\n".join(map(notes.reported_in, _reports_in(bodies))) or NOTED


def _reports_in(bodies: Sequence[object]) -> list[str]:
    noted = (body for body in bodies if isinstance(body, Note))
    return [note.text for note in noted if note.cause.startswith("entry:")]


def _done_in(summary: str) -> tuple[int, int]:
    found = re.search(r"so far: (\d+) replies, (\d+) results", summary)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _is_nudge(body: object) -> bool:
    return isinstance(body, Note) and body.cause == EMPTY_REPLY
