"""The tool by which the agent starts its own gateway again."""

from collections.abc import Awaitable, Callable

from koboshi.domain.ids import WorkerId
from koboshi.domain.shutdown import Leave
from koboshi.domain.worker import Worker
from koboshi.ports.store import Store
from koboshi.runtime.drain import Drain
from koboshi.tools.restart import RestartTool


def restart_tool(
    worker: Worker, store: Store, drain: Drain, why_not: Callable[[], Awaitable[str]]
) -> RestartTool:
    async def request(worker_id: WorkerId, by: str) -> None:
        """Nothing is claimed from here on, the agent's own turn least of all."""
        await store.workers.request_restart(worker_id, by)
        drain.ask(Leave.RESTART)

    return RestartTool(
        worker=worker,
        request=request,
        restarted_by=store.workers.restarted_by,
        why_not=why_not,
    )
