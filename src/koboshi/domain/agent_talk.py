"""What a foreign agent told, as its spool has it: read from the wire, not judged yet."""

import re
from dataclasses import dataclass
from typing import TypeAlias

from koboshi.domain.ids import ProcessId, TurnId

_TURN_MARK = re.compile(r"\[koboshi turn (\d{1,18})\]")
SAID_CHARS_MAX = 400_000
"""Words of an agent between two steps; more are left out, and that is said."""
TITLE_CHARS_MAX = 500
RESULT_CHARS_MAX = 16_000
EVENT_CHARS_MAX = 8_000
CALLS_MAX = 5_000
"""Calls of an agent in one turn that become steps; more are not kept, and that is said."""
TERMINALS = "acp:"
"""How the calls begin by which agents have us run commands."""
LEFT_OUT = "\n… (the rest is left out)"


def terminal_calls(process_id: ProcessId) -> str:
    """How the calls of one agent begin by which it has us run commands."""
    return f"{TERMINALS}{process_id}:"


def turn_mark(turn_id: TurnId) -> str:
    """What a prompt carries, so that a replay shows whether it was received."""
    return f"[koboshi turn {turn_id}]"


def without_turn_marks(text: str) -> str:
    """Words of others, in which no turn is named as a prompt names it."""
    return _TURN_MARK.sub(r"(koboshi turn \1)", text)


def marks_in(text: str) -> tuple[TurnId, ...]:
    return tuple(TurnId(int(found)) for found in _TURN_MARK.findall(text))


def waited_for(made_ms: int, fed_ms: int, now_ms: int) -> int:
    """For how long an agent has had a message: since it was fed, or less where the clock was set
    since. The moment of the message moves with the clock, the mark of the runner does not."""
    since_fed = now_ms - fed_ms
    return min(now_ms - made_ms, since_fed if since_fed >= 0 else now_ms - made_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Words for the person."""

    offset: int
    session: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Echoed:
    """Words of the person, which the agent repeats: in a replay."""

    offset: int
    session: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBegan:
    """The agent uses a tool of its own."""

    offset: int
    session: str
    external_id: str
    kind: str
    title: str
    arguments: str
    """A JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    offset: int
    session: str
    external_id: str
    is_ok: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldMore:
    """Anything else: a plan, a thought, a change of mode, or what is no message at all."""

    offset: int
    session: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The agent answered a message of ours."""

    offset: int
    number: int
    error: str | None = None
    external_id: str | None = None
    """Of a new session: the agent's name of it."""
    can_load: bool = False
    stop: str | None = None
    """Of a prompt: why the agent stopped."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: int = 0
    """What these tokens are counted as in the budget; 0: they are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The agent asks something of us."""

    offset: int
    session: str
    external_id: str
    """Its id of the request, as JSON."""
    method: str
    params: str


Heard: TypeAlias = Said | Echoed | CallBegan | CallEnded | ToldMore | Settled | Asked
