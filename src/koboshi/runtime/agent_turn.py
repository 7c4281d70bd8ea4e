"""One claimed turn that a foreign agent works on: look where it stands, do what is next.

The agent works under its runner, whether we live or not. Here is only what carries words between
its wires and the store. `domain/agent.py` says what comes next.
"""

import errno
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

import structlog
from anyio import sleep, to_thread

from koboshi.domain import agent_words
from koboshi.domain.agent import (
    TOO_LONG,
    AgentMessage,
    AgentProcess,
    AgentStanding,
    AskPerson,
    Conclude,
    DrainAgent,
    EndAgent,
    GiveUpAgent,
    LoseAgent,
    MessageKind,
    OpenSession,
    Prompt,
    ReadOn,
    Serve,
    Sight,
    Start,
    next_move,
)
from koboshi.domain.errors import Fenced
from koboshi.domain.ids import ProcessId, TurnId
from koboshi.domain.process import Process
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.transcript import Message
from koboshi.domain.turn import Claim
from koboshi.ports.agents import AgentLanguage, AgentProgram, AgentPrograms
from koboshi.ports.clock import Clock
from koboshi.ports.runners import EndedBy, Ending, Life, Runners, Seen
from koboshi.ports.store import Loaded, Store
from koboshi.ports.tool import TurnSetDown
from koboshi.ports.wires import Wires
from koboshi.processes.ends import StoreEnd
from koboshi.runtime.agent_asking import AgentAsking, Served
from koboshi.runtime.agent_outcome import conclude, drain, give_up
from koboshi.runtime.agent_reading import (
    LOOK_EVERY_S,
    LOOK_EVERY_S_MAX,
    AgentLineTooLong,
    AgentReader,
)
from koboshi.runtime.agent_room import AgentRoom, check_budget
from koboshi.runtime.agent_sight import AgentSights
from koboshi.runtime.attachments import Attachments
from koboshi.runtime.billing import Billing
from koboshi.runtime.drain import Drain
from koboshi.runtime.recollection import Recollection
from koboshi.runtime.shipping import Shipping
from koboshi.runtime.slots import Slot

log = structlog.get_logger()

SEE_EVERY_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTurns:
    store: Store
    wires: Wires
    runners: Runners
    store_end: StoreEnd
    clock: Clock
    drain: Drain
    programs: AgentPrograms
    load_language: Callable[[], Awaitable[AgentLanguage]]
    asking: AgentAsking
    shipping: Shipping
    attachments: Attachments
    recollection: Recollection
    default: str
    """The agent of chats that chose none; empty: the built-in one."""
    room: AgentRoom
    line_bytes_max: int
    question_age_ms: int
    start_seconds_of: Callable[[str], float]
    """How long an agent may take to answer when it begins."""
    billing: Billing | None = None
    """What counts the tokens that agents tell of; None: there is no budget."""

    async def agent_of(self, turn_id: TurnId, loaded: Loaded) -> str | None:
        """The agent that works on a turn; None: the built-in one. A turn stays with the agent that
        was given it, whatever is chosen meanwhile."""
        prompted = await self.store.agents.is_prompted(turn_id)
        if prompted is not None:
            return prompted
        if loaded.session.is_child:
            return None  # its parent is the built-in agent, and so is it
        said = (step.body for step in loaded.steps)
        if any(isinstance(body, Message) and body.command for body in said):
            return None  # a command of a schedule needs no agent
        chosen = loaded.session.settings.agent
        return (self.default if chosen is None else chosen) or None

    async def run(self, claim: Claim, loaded: Loaded, agent: str, slot: Slot) -> None:
        """Work on the turn until it is answered, waits or has failed. Raises Fenced when it is no
        longer ours, and TurnSetDown when the gateway leaves: the agent works on."""
        if agent not in self.programs.names():
            await self.fail(claim, f"the agent {agent} is not configured any more")
            return
        language = await self.load_language()
        loaded = await self.attachments.bring(claim, loaded)
        slot.give_back()
        program = self.programs.program(agent, claim.session_id, loaded.standing)
        work = _Work(
            turns=self,
            claim=claim,
            loaded=loaded,
            agent=agent,
            slot=slot,
            language=language,
            workdir="" if isinstance(program, str) else program.workdir,
            sights=AgentSights(
                processes=self.store.processes,
                runners=self.runners,
                wires=self.wires,
                clock=self.clock,
                answer_ms_max=round(self.start_seconds_of(agent) * 1_000),
            ),
        )
        await work.go_on()

    def reader(self, process_id: ProcessId, agent: str, language: AgentLanguage) -> AgentReader:
        billing = self.billing
        return AgentReader(
            store=self.store,
            wires=self.wires,
            clock=self.clock,
            language=language,
            process_id=process_id,
            line_bytes_max=self.line_bytes_max,
            cost_of=None if billing is None else partial(billing.amount, agent),
        )

    async def drain_agent(self, process_id: ProcessId, prompt: AgentMessage | None) -> None:
        await drain(self.store, self.runners, self.wires, self.store_end, process_id, prompt)

    async def fail(self, claim: Claim, reason: str) -> None:
        await self.store.turns.fail(claim, reason)
        log.warning("turn_failed", reason=reason)


@dataclass(slots=True, kw_only=True)
class _Work:
    turns: AgentTurns
    claim: Claim
    loaded: Loaded
    agent: str
    slot: Slot
    language: AgentLanguage
    workdir: str
    """Where an agent of the chat works; empty where none can be started."""
    sights: AgentSights
    reader: AgentReader | None = None
    posted: dict[ProcessId, int] = field(default_factory=dict)
    later: set[int] = field(default_factory=set)
    """Requests that were served without an end, as those that wait for a command."""

    async def go_on(self) -> None:
        turns = self.turns
        while True:
            if self._is_set_down():
                raise TurnSetDown
            standing = await turns.store.agents.standing(self.claim, self.agent)
            await self._post(standing.process)
            standing = self._without_later(standing)
            sight = await self._sight(standing.process)
            match next_move(standing, sight, self.sights.answer_ms_max, self.workdir):
                case Start():
                    await self._start()
                case OpenSession(kind=kind):
                    await self._open(standing, kind)
                case Prompt() as prompt:
                    await self._prompt(standing, prompt)
                case ReadOn():
                    assert standing.process is not None
                    assert sight is not None
                    await self._read(standing.process, sight)
                    self.later.clear()
                case Serve(request=request):
                    served = await turns.asking.serve(
                        self.claim, self.loaded, self.language, request
                    )
                    if served is Served.ASKED:
                        return
                    if served is Served.LATER:
                        self.later.add(request.offset)
                case EndAgent():
                    assert standing.process is not None
                    await self._leave(standing.process, is_alive=True)
                case DrainAgent():
                    await self._drain(standing)
                case LoseAgent():
                    await self._lose(standing)
                case Conclude(prompt=prompt):
                    await self._conclude(standing, prompt)
                    return
                case AskPerson(prompt=prompt):
                    await self._ask_person(prompt)
                    return
                case GiveUpAgent() as move:
                    await self._give_up(standing, move)
                    return
                case move:
                    assert_never(move)

    def _is_set_down(self) -> bool:
        return self.turns.drain.ends_steps or self.slot.is_closed

    def _without_later(self, standing: AgentStanding) -> AgentStanding:
        """Without the requests that are not to be served just now."""
        process = standing.process
        if process is None or not self.later:
            return standing
        now = tuple(each for each in process.requests if each.offset not in self.later)
        return replace(standing, process=replace(process, requests=now))

    async def _post(self, process: AgentProcess | None) -> None:
        """Leave what is stored for the agent where its runner finds it. Doing it again makes the
        same files."""
        if process is None or process.is_drained or process.is_elsewhere:
            return
        posted, process_id = self.posted, process.process_id
        if process_id not in posted:
            posted[process_id] = await to_thread.run_sync(self.turns.wires.begun, process_id)
        bodies = await self.turns.store.agents.bodies(process_id, posted[process_id] + 1)
        for number, kind, body in bodies:
            line = self.language.line(number, kind, body)
            try:
                await to_thread.run_sync(self.turns.wires.post, process_id, number, line)
            except FileNotFoundError:
                return  # it has no runner yet, or its files are gone
            posted[process_id] = number

    async def _sight(self, process: AgentProcess | None) -> Sight | None:
        if process is None or process.is_drained or process.is_elsewhere:
            return None
        return await self.sights.look(process, self._reader_of(process.process_id).looked_at)

    async def _look(self, process_id: ProcessId) -> Seen:
        return await to_thread.run_sync(self.turns.runners.look, process_id)

    async def _start(self) -> None:
        turns = self.turns
        program = await self._program()
        begin = partial(
            turns.store.agents.begin,
            self.claim,
            self.agent,
            self.language.greeting(),
            command=program.command,
            workdir=program.workdir,
            boundary=program.boundary,
        )
        process = await turns.room.begin(self.claim, self.agent, begin, self._is_set_down)
        try:
            spec = await to_thread.run_sync(program.start)
            birth = await turns.runners.start(process.process_id, spec)
        except OSError as error:
            if shortage_in(error) is None:
                await self._not_started(process, str(error))
                return
            raise
        if birth is None:
            await self._not_started(process, "it was looked at before it could begin")
            return
        await turns.store.processes.born(process.process_id, birth)
        log.info("agent_started", agent=self.agent, process=process.process_id)

    async def _not_started(self, process: Process, why: str) -> None:
        ended_ms = self.turns.clock.now_ms()
        ending = Ending(by=EndedBy.START, exit_code=None, signal=None, ended_ms=ended_ms, error=why)
        if (await self._look(process.process_id)).life is Life.UNBORN:
            seen = Seen(life=Life.ENDED, ending=ending)
            await self.turns.store_end(process.process_id, seen)

    async def _open(self, standing: AgentStanding, kind: MessageKind) -> None:
        program = await self._program()
        assert standing.process is not None
        external_id = standing.external_id or ""
        body = self.language.opening(kind, external_id, program.workdir, program.servers)
        await self.turns.store.agents.say(self.claim, standing.process.process_id, kind, body)

    async def _program(self) -> AgentProgram:
        """How the agent is started. Where it cannot be, the turn fails with the reason."""
        turns = self.turns
        program = turns.programs.program(self.agent, self.claim.session_id, self.loaded.standing)
        if isinstance(program, str):
            await turns.fail(self.claim, program)
            raise Fenced("the agent cannot be started")
        return program

    async def _prompt(self, standing: AgentStanding, prompt: Prompt) -> None:
        process, rule = standing.process, prompt.rule
        assert process is not None
        loaded = await self.turns.store.turns.load(self.claim)
        text = agent_words.request_text(self.claim.turn_id, loaded.steps)
        if standing.prompt is None:
            await check_budget(self.turns.store, self.turns.billing, self.claim, self.agent, text)
        if prompt.goes_on:
            text = agent_words.go_on_text(
                self.claim.turn_id, loaded.steps, loaded.calls, is_away=prompt.is_away
            )
        before = agent_words.preamble(loaded.context) if prompt.is_fresh else ""
        known = await self.turns.recollection.for_agent(self.claim, is_begun=prompt.goes_on)
        parts = [part for part in (known, before, text) if part]
        body = self.language.prompt(standing.external_id or "", "\n\n".join(parts))
        await self.turns.store.agents.say(
            self.claim,
            process.process_id,
            MessageKind.PROMPT,
            body,
            rule=None if rule is None else rule.label,
            note=None if rule is None else agent_words.died_note(rule.label, rule.because),
            told=agent_words.forgot(self.agent) if prompt.is_forgetful else "",
        )
        log.info("agent_prompted", process=process.process_id, rule=rule and rule.label)

    async def _read(self, process: AgentProcess, sight: Sight) -> None:
        """Store what the agent wrote. If there is nothing whole yet, wait a moment for it."""
        turns = self.turns
        reader = self._reader_of(process.process_id)
        pause, until = LOOK_EVERY_S, turns.clock.monotonic() + SEE_EVERY_S
        try:
            while not await reader.read(process.read_offset, self.claim, is_alive=sight.is_alive):
                if not sight.is_alive or turns.clock.monotonic() > until:
                    return
                await sleep(pause)
                pause = min(pause * 2, LOOK_EVERY_S_MAX)
        except AgentLineTooLong:
            await self._end_for_its_line(process.process_id)
        except OSError as error:
            if error.errno != errno.ENODATA:
                raise
            await self._leave(process, is_alive=sight.is_alive)

    async def _leave(self, process: AgentProcess, *, is_alive: bool) -> None:
        """End it, or store its end without reading on: what it wrote may be gone."""
        if is_alive:
            await self.turns.store.agents.end(process.process_id)
            await sleep(LOOK_EVERY_S_MAX)
        else:
            await self.turns.drain_agent(process.process_id, process.busy_with)

    async def _end_for_its_line(self, process_id: ProcessId) -> None:
        limit_mb = self.turns.line_bytes_max >> 20
        words = f"the agent wrote a line of more than {limit_mb} MB, and was ended"
        await self.turns.store.agents.give_up(self.claim, process_id, TOO_LONG, words)
        raise Fenced(words)

    def _reader_of(self, process_id: ProcessId) -> AgentReader:
        if self.reader is None or self.reader.process_id != process_id:
            self.reader = self.turns.reader(process_id, self.agent, self.language)
        return self.reader

    async def _drain(self, standing: AgentStanding) -> None:
        process = standing.process
        assert process is not None
        await self.turns.drain_agent(process.process_id, process.busy_with)
        log.warning("agent_died", agent=self.agent, process=process.process_id)

    async def _lose(self, standing: AgentStanding) -> None:
        process = standing.process
        assert process is not None
        await self.turns.store.agents.drained(process.process_id, begun=True, is_away=True)
        log.warning("agent_away", agent=self.agent, process=process.process_id)

    async def _conclude(self, standing: AgentStanding, prompt: AgentMessage) -> None:
        turns, channel = self.turns, self.loaded.session.route.channel
        said = "" if standing.process is None else standing.process.said
        await conclude(turns.store, turns.shipping, self.claim, channel, self.agent, said, prompt)

    async def _ask_person(self, prompt: AgentMessage) -> None:
        asked = [step.body for step in self.loaded.steps if isinstance(step.body, Message)]
        words = agent_words.ask_after_death(self.agent, asked[-1].text if asked else "")
        turns = self.turns
        await turns.store.agents.ask(self.claim, prompt, words, turns.question_age_ms)

    async def _give_up(self, standing: AgentStanding, move: GiveUpAgent) -> None:
        turns, seconds = self.turns, self.turns.start_seconds_of(self.agent)
        await give_up(turns.store, turns.runners, self.claim, standing, move, seconds)
