"""What the files of an agent's process say now: whether it lives, what it wrote, and for how long
it has had what it has to answer."""

from dataclasses import dataclass, field, replace

from anyio import to_thread

from koboshi.domain.agent import AgentMessage, AgentProcess, MessageKind, Sight
from koboshi.domain.agent_talk import waited_for
from koboshi.domain.ids import ProcessId
from koboshi.ports.clock import Clock
from koboshi.ports.runners import Life, Runners
from koboshi.ports.store import Processes
from koboshi.ports.wires import Wires

REPLAY_TIMES_MAX = 10
"""How much longer an agent may take that tells its session meanwhile."""


@dataclass(slots=True, kw_only=True)
class AgentSights:
    """The looks of one turn at its agents. Nothing here is needed after a crash."""

    processes: Processes
    runners: Runners
    wires: Wires
    clock: Clock
    answer_ms_max: int
    _written: dict[tuple[ProcessId, int], int] = field(default_factory=dict)
    """How much an agent had written when the time for an answer was over, by the message."""

    async def look(self, process: AgentProcess, looked_at: int) -> Sight:
        """`looked_at` is how far its output was looked through: what lies below and is not stored
        is a line without its end."""
        process_id = process.process_id
        # First whether it lives, then how much it wrote: nothing is written after the end.
        seen = await to_thread.run_sync(self.runners.look, process_id)
        if process.is_starting and seen.birth is not None:
            # The gateway that started it died before it could store that.
            await self.processes.born(process_id, seen.birth)
        is_alive = seen.life is Life.ALIVE
        size = await to_thread.run_sync(self.wires.size, process_id)
        known = max(process.read_offset, looked_at if is_alive else 0)
        sight = Sight(is_alive=is_alive, unread=max(0, size - known))
        awaited = process.awaited
        if awaited is None:
            return sight
        fed = await to_thread.run_sync(self.wires.fed, process_id, awaited.number)
        if fed is None:
            return sight
        waited_ms = waited_for(awaited.made_ms, fed.at_ms, self.clock.now_ms())
        return replace(
            sight,
            waited_ms=waited_ms,
            told_since=process.read_offset - fed.spool_size,
            is_overdue=self._is_late(awaited, waited_ms)
            and (process.has_many_requests or known >= self._written_then(awaited, size)),
        )

    def _is_late(self, awaited: AgentMessage, waited_ms: int) -> bool:
        times = REPLAY_TIMES_MAX if awaited.kind is MessageKind.LOAD else 1
        return waited_ms > self.answer_ms_max * times

    def _written_then(self, awaited: AgentMessage, size: int) -> int:
        """How much was there when the time was over. What is written later is not waited for: an
        agent that writes on and on would never be found silent."""
        return self._written.setdefault((awaited.process_id, awaited.number), size)
