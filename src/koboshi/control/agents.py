"""The foreign agents that live in this home, with their memory."""

from anyio import to_thread

from koboshi.control.replies import AgentStatus
from koboshi.domain.ids import ProcessId, shown
from koboshi.domain.process import Birth
from koboshi.ports.agents import Agents, LivingAgent
from koboshi.ports.runners import Life, Runners
from koboshi.processes.memory import memory_of


async def living_agents(agents: Agents, runners: Runners) -> tuple[AgentStatus, ...]:
    living = tuple(each for each in await agents.living() if not each.is_starting)
    return await to_thread.run_sync(_told, living, runners) if living else ()


def _told(living: tuple[LivingAgent, ...], runners: Runners) -> tuple[AgentStatus, ...]:
    births: dict[ProcessId, Birth] = {}
    for each in living:
        seen = runners.look(each.process_id)
        if seen.life is Life.ALIVE and seen.birth is not None:
            births[each.process_id] = seen.birth
    memory = memory_of(births)
    return tuple(
        AgentStatus(
            agent=each.agent,
            process=shown("process", each.process_id),
            session=shown("session", each.session_id),
            turn=None if each.busy_with is None else shown("turn", each.busy_with),
            used_ms=each.used_ms,
            memory_bytes=memory.get(each.process_id),
        )
        for each in living
        if each.process_id in births
    )
