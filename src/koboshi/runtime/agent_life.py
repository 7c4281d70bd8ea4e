"""The life of agents outside of turns: one whose turn was stopped is told so, and ended if it does
not hear; one that is idle or has no conversation any more is ended; one that has ended is drained.

All of it is read from rows, at every hint and now and then, so a boot goes on with it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
from anyio import to_thread

from koboshi.domain.errors import Fenced
from koboshi.domain.ids import ProcessId
from koboshi.ports.agents import AgentLanguage, LivingAgent
from koboshi.ports.runners import Life
from koboshi.ports.wakeups import PROCESSES, TURNS, Wakeups
from koboshi.runtime.agent_reading import AgentLineTooLong, AgentReader
from koboshi.runtime.agent_turn import AgentTurns

log = structlog.get_logger()

STOP_WITHIN_MS = 10_000
"""How long an agent may take to stop when it is told so."""
BUSY_LOOK_S = 0.5


@dataclass(slots=True, kw_only=True)
class AgentLife:
    turns: AgentTurns
    wakeups: Wakeups
    idle_ms_of: Callable[[str], int]
    poll_seconds: float
    _readers: dict[ProcessId, AgentReader] = field(default_factory=dict)

    async def keep_looking(self) -> None:
        while True:
            seen = self.wakeups.count(PROCESSES) + self.wakeups.count(TURNS)
            is_busy = await self.look()
            pause = BUSY_LOOK_S if is_busy else min(self.poll_seconds, 2.0)
            if seen == self.wakeups.count(PROCESSES) + self.wakeups.count(TURNS):
                await self.wakeups.wait(PROCESSES, pause, since=self.wakeups.count(PROCESSES))

    async def look(self) -> bool:
        """Look after every agent once. Returns whether one of them is being stopped."""
        is_busy = False
        for agent in await self.turns.store.agents.living():
            try:
                is_busy |= await self._look_after(agent)
            except (OSError, Fenced) as error:
                log.warning("agent_unseen", process=agent.process_id, error=str(error))
        return is_busy

    async def _look_after(self, agent: LivingAgent) -> bool:
        is_stopped = agent.busy_with is not None and agent.is_abandoned
        if not is_stopped and (agent.busy_with is not None or agent.has_open_turn):
            # Its turn looks after it. One that is just being started has no runner yet, and a look
            # would settle that it never begins.
            return False
        turns, process_id, now_ms = self.turns, agent.process_id, self.turns.clock.now_ms()
        seen = await to_thread.run_sync(turns.runners.look, process_id)
        if seen.life is not Life.ALIVE and not agent.has_open_turn:
            await self._read_to_end(agent)
            return False
        if agent.busy_with is not None:
            await self._stop(agent, now_ms)
            return True
        if agent.is_end_asked:
            return False
        is_idle = now_ms - agent.used_ms > self.idle_ms_of(agent.agent)
        # One that never answered is of no use: no turn waits for it any more.
        if is_idle or not agent.is_session_open or not agent.is_ready:
            await turns.store.agents.end(process_id)
            log.info("agent_idle", process=process_id, agent=agent.agent)
        return False

    async def _stop(self, agent: LivingAgent, now_ms: int) -> None:
        """Its turn is over: it is told once, and ended when it does not hear."""
        turns, process_id = self.turns, agent.process_id
        assert agent.busy_with is not None
        language = await turns.load_language()
        if agent.cancelled_ms is None:
            external_id = await turns.store.agents.external_id(process_id) or ""
            body = language.cancel(external_id)
            await turns.store.agents.cancel(process_id, agent.busy_with, body)
        elif now_ms - agent.cancelled_ms > STOP_WITHIN_MS and not agent.is_end_asked:
            await turns.store.agents.end(process_id)
            log.warning("agent_does_not_stop", process=process_id, agent=agent.agent)
        begun = await to_thread.run_sync(turns.wires.begun, process_id)
        for number, kind, body in await turns.store.agents.bodies(process_id, begun + 1):
            line = language.line(number, kind, body)
            await to_thread.run_sync(turns.wires.post, process_id, number, line)
        await self._read(agent, language, is_alive=True)

    async def _read(self, agent: LivingAgent, language: AgentLanguage, *, is_alive: bool) -> bool:
        reader = self._readers.get(agent.process_id)
        if reader is None:
            reader = self.turns.reader(agent.process_id, agent.agent, language)
            self._readers[agent.process_id] = reader
        try:
            return await reader.read(agent.read_offset, None, is_alive=is_alive)
        except AgentLineTooLong:
            await self.turns.store.agents.end(agent.process_id)
            return False

    async def _read_to_end(self, agent: LivingAgent) -> None:
        """It has ended outside of a turn: what it wrote is kept, and then forgotten with it."""
        language = await self.turns.load_language()
        if await self._read(agent, language, is_alive=False):
            return  # the next look goes on
        size = await to_thread.run_sync(self.turns.wires.size, agent.process_id)
        if size <= agent.read_offset or not await self._can_be_read(agent):
            await self.turns.drain_agent(agent.process_id, None)
            self._readers.pop(agent.process_id, None)

    async def _can_be_read(self, agent: LivingAgent) -> bool:
        try:
            await to_thread.run_sync(self.turns.wires.read, agent.process_id, agent.read_offset, 1)
        except OSError:
            return False
        return True
