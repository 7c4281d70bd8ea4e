"""A turn that a foreign agent works on: where it stands, and what is done next.

Everything is derived from rows and from the files of the agent's runner, so a turn that is taken up
after a crash is no special case: it goes on reading where the last gateway had stored its place.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from koboshi.domain.agent_death import (
    DeathFacts,
    DeathRule,
    DeathVerdict,
    FedState,
    Memory,
    decide_death,
)
from koboshi.domain.ids import CallId, ProcessId, TurnId
from koboshi.domain.recovery import RecoveryPolicy

ANSWER_MS_MAX = 120_000
"""How long an agent may take to answer when it is started, and when it opens a session."""
REPLAY_BYTES_MAX = 256 << 20
"""How much of a replay is read before its end: more is none."""
REQUESTS_MAX = 200
"""How many requests of a process may wait; behind them its output is not read."""
REQUEST_BYTES_MAX = 16 << 20
"""The same, of all their words together."""
SILENT, REFUSED, TOO_LONG = "agent-silent", "agent-refused", "agent-line-too-long"
"""Rules by which an agent is given up, beside those of its death."""


class MessageKind(StrEnum):
    INITIALIZE = "initialize"
    NEW = "new"
    LOAD = "load"
    PROMPT = "prompt"
    CANCEL = "cancel"
    REPLY = "reply"


METHODS = {
    MessageKind.INITIALIZE: "initialize",
    MessageKind.NEW: "session/new",
    MessageKind.LOAD: "session/load",
    MessageKind.PROMPT: "session/prompt",
    MessageKind.CANCEL: "session/cancel",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessage:
    """What was said to an agent, without its words."""

    process_id: ProcessId
    number: int
    kind: MessageKind
    turn_id: TurnId | None
    updates: int
    begun: bool | None
    is_asked: bool
    is_settled: bool
    error: str | None
    stop: str | None
    tokens_in: int
    tokens_out: int
    made_ms: int

    @property
    def is_ok(self) -> bool:
        return self.is_settled and self.error is None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """What an agent asks of us, and has no answer yet."""

    process_id: ProcessId
    offset: int
    turn_id: TurnId | None
    external_id: str
    method: str
    params: str
    call_id: CallId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProcess:
    process_id: ProcessId
    read_offset: int
    said: str
    can_load: bool
    replayed_turn: TurnId | None
    is_drained: bool
    is_elsewhere: bool
    """It is on another node: only that can read what it wrote, and feed it."""
    messages: tuple[AgentMessage, ...]
    """In their order, without replies."""
    workdir: str
    """Where it works. The folder of a chat changes with the role of its person."""
    requests: tuple[AgentRequest, ...]
    """The oldest of those that have no answer."""
    has_many_requests: bool = False
    """More than half of those wait that may: they are answered before more is read."""
    is_starting: bool = False
    """Its birth is not stored."""
    is_end_asked: bool = False
    """It will be ended: nothing more is asked of it."""

    def _first(self, *kinds: MessageKind) -> AgentMessage | None:
        return next((each for each in self.messages if each.kind in kinds), None)

    @property
    def greeting(self) -> AgentMessage | None:
        return self._first(MessageKind.INITIALIZE)

    @property
    def opening(self) -> AgentMessage | None:
        """How the session was opened in this process: the newest way that was tried."""
        kinds = (MessageKind.NEW, MessageKind.LOAD)
        return next((each for each in reversed(self.messages) if each.kind in kinds), None)

    @property
    def awaited(self) -> AgentMessage | None:
        """What it has to answer before it can be given a prompt, and has not answered yet."""
        first = (self.greeting, self.opening)
        return next((each for each in first if each is not None and not each.is_settled), None)

    @property
    def busy_with(self) -> AgentMessage | None:
        """The prompt that has no answer yet."""
        prompts = (each for each in self.messages if each.kind is MessageKind.PROMPT)
        return next((each for each in prompts if not each.is_settled), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStanding:
    """What the rows say about a turn and its agent."""

    turn_id: TurnId
    agent: str
    """The agent that works on it: the one that was prompted, else the one of the chat."""
    agent_session_id: int | None
    external_id: str | None
    process: AgentProcess | None
    """The newest of the agent session."""
    prompts: tuple[AgentMessage, ...]
    """Those of this turn, oldest first, of any process."""
    has_history: bool
    """An earlier process of the agent session was prompted."""
    deaths: int
    """Processes that died while they had to do with this turn."""
    policy: RecoveryPolicy
    is_interactive: bool
    is_prompt_away: bool = False
    """The process of the newest prompt is on another node."""

    @property
    def prompt(self) -> AgentMessage | None:
        """The newest prompt of this turn."""
        return self.prompts[-1] if self.prompts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What the files of the process say now."""

    is_alive: bool
    unread: int
    waited_ms: int = 0
    """For how long the agent has had what it has to answer first."""
    told_since: int = 0
    """How many bytes were read of it since."""
    is_overdue: bool = False
    """The time for that is over, and the answer is not among what was written by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start a process for the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSession:
    """Have the session loaded, or a new one made."""

    kind: MessageKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Give the agent the request of the turn; after a death, by a rule."""

    rule: DeathRule | None
    goes_on: bool
    """It is told what happened, instead of the request alone."""
    is_away: bool
    """What happened: its process is on a node that is away."""
    is_fresh: bool
    """The agent knows nothing of the conversation."""
    is_forgetful: bool
    """It knew something before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPerson:
    """Ask whether it shall go on."""

    prompt: AgentMessage
    rule: DeathRule


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOn:
    """Store what the agent has written, or wait for more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """Answer what it asks."""

    request: AgentRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAgent:
    """It works in a folder that is not the chat's any more, or is to end for another reason: when
    it has, another one follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainAgent:
    """It has ended, and all that it wrote is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseAgent:
    """It works on a node that is away: its outcome stays unknown, and it is ended at its return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclude:
    """It has answered."""

    prompt: AgentMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUpAgent:
    """The turn fails."""

    rule: str
    reason: str
    awaited: AgentMessage | None = None
    """What the agent did not answer in time."""
    ends_it: bool = False
    """Its process is of no use any more, and is ended."""


Move: TypeAlias = (
    Start
    | OpenSession
    | Prompt
    | AskPerson
    | ReadOn
    | Serve
    | EndAgent
    | DrainAgent
    | LoseAgent
    | Conclude
    | GiveUpAgent
)


def next_move(
    standing: AgentStanding,
    sight: Sight | None,
    answer_ms_max: int = ANSWER_MS_MAX,
    workdir: str = "",
) -> Move:
    """What is done next. Without a process, or where its files need no look, there is no sight.
    `workdir` is where an agent of the chat works now; empty where that is not known."""
    process, prompt = standing.process, standing.prompt
    if prompt is not None and prompt.is_settled:
        return Conclude(prompt=prompt)
    if process is None or process.is_drained:
        return _without_process(standing)
    if process.is_elsewhere:
        return _without_process(standing) if process.busy_with is None else LoseAgent()
    assert sight is not None
    if process.awaited and (sight.told_since > REPLAY_BYTES_MAX or sight.is_overdue):
        return _silent(process.awaited)
    if sight.unread and not (process.has_many_requests and sight.is_alive):
        return ReadOn()
    if not sight.is_alive:
        return DrainAgent()
    is_elsewhere = bool(workdir) and process.workdir != workdir
    if (is_elsewhere or process.is_end_asked) and process.busy_with is None:
        return EndAgent()
    if process.requests:
        return Serve(request=process.requests[0])
    greeting, opening = process.greeting, process.opening
    if process.awaited is not None and sight.waited_ms > answer_ms_max:
        return _silent(process.awaited)
    if greeting is None or not greeting.is_settled:
        return ReadOn()
    if greeting.error is not None:
        return _refused(f"the agent does not begin: {greeting.error}")
    if opening is None:
        may_load = process.can_load and standing.external_id is not None
        return OpenSession(kind=MessageKind.LOAD if may_load else MessageKind.NEW)
    if not opening.is_settled:
        return ReadOn()
    if opening.error is not None and opening.kind is MessageKind.LOAD:
        return OpenSession(kind=MessageKind.NEW)
    if opening.error is not None:
        return _refused(f"the agent does not open a session: {opening.error}")
    if process.busy_with is not None:
        return ReadOn()
    return _prompt(standing, process, opening)


def _silent(awaited: AgentMessage) -> GiveUpAgent:
    reason = f"the agent does not answer {METHODS[awaited.kind]}"
    return GiveUpAgent(rule=SILENT, reason=reason, awaited=awaited, ends_it=True)


def _refused(reason: str) -> GiveUpAgent:
    """Ended, so that the next message finds out whether it is well again: after a login, say."""
    return GiveUpAgent(rule=REFUSED, reason=reason, ends_it=True)


def _without_process(standing: AgentStanding) -> Move:
    rule = decide_death(death_facts(standing))
    if rule.then is DeathVerdict.GIVE_UP:
        return GiveUpAgent(rule=rule.label, reason=rule.because)
    return Start()


def _prompt(standing: AgentStanding, process: AgentProcess, opening: AgentMessage) -> Move:
    is_new = opening.kind is MessageKind.NEW
    prompted = any(each.kind is MessageKind.PROMPT for each in process.messages)
    is_fresh = is_new and not prompted
    is_forgetful = is_fresh and standing.has_history
    if standing.prompt is None:
        return Prompt(
            rule=None, goes_on=False, is_away=False, is_fresh=is_fresh, is_forgetful=is_forgetful
        )
    rule = decide_death(death_facts(standing))
    match rule.then:
        case DeathVerdict.GIVE_UP:
            return GiveUpAgent(rule=rule.label, reason=rule.because)
        case DeathVerdict.ASK:
            return AskPerson(prompt=standing.prompt, rule=rule)
        case then:
            goes_on = then is DeathVerdict.GO_ON
            return Prompt(
                rule=rule,
                goes_on=goes_on,
                is_away=standing.is_prompt_away,
                is_fresh=is_fresh,
                is_forgetful=is_forgetful,
            )


def death_facts(standing: AgentStanding) -> DeathFacts:
    """What is known about the newest prompt of the turn, whose process has died."""
    prompt, process = standing.prompt, standing.process
    fed = FedState.NONE
    if prompt is not None:
        fed = FedState.UNBEGUN if prompt.begun is False else FedState.BEGUN
    memory = Memory.UNTRIED
    is_next = process is not None and (prompt is None or process.process_id != prompt.process_id)
    is_here = process is not None and not process.is_drained and not process.is_elsewhere
    if process is not None and is_next and is_here:
        memory = _memory(standing, process)
    return DeathFacts(
        fed=fed,
        has_updates=prompt is not None and prompt.updates > 0,
        memory=memory,
        deaths=standing.deaths,
        policy=standing.policy,
        is_asked=prompt is not None and prompt.is_asked,
        is_interactive=standing.is_interactive,
        is_away=standing.is_prompt_away,
    )


def _memory(standing: AgentStanding, process: AgentProcess) -> Memory:
    opening = process.opening
    if opening is None or not opening.is_ok:
        return Memory.UNTRIED
    if opening.kind is MessageKind.LOAD:
        is_there = process.replayed_turn == standing.turn_id
        return Memory.WITH if is_there else Memory.WITHOUT
    return Memory.GONE if standing.has_history else Memory.FIRST
