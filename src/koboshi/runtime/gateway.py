"""The task tree, top to bottom."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
from anyio import CancelScope, Event, create_task_group, move_on_after

from koboshi.domain.worker import EndedHow
from koboshi.ports.channel import Channel
from koboshi.ports.store import Store
from koboshi.runtime.control import ControlSocket
from koboshi.runtime.deliver import Deliver
from koboshi.runtime.dispatch import Dispatch
from koboshi.runtime.heartbeat import Heartbeat
from koboshi.runtime.intake import Intake
from koboshi.runtime.rescue import Rescue
from koboshi.runtime.supervise import Supervise
from koboshi.runtime.watch import WatchLogs

log = structlog.get_logger()

FAREWELL_SECONDS = 5.0


@dataclass(slots=True, kw_only=True)
class Gateway:
    store: Store
    channels: Sequence[Channel]
    intake: Intake
    dispatch: Dispatch
    deliver: Deliver
    rescue: Rescue
    supervise: Supervise
    watch_logs: WatchLogs
    heartbeat: Heartbeat
    control: ControlSocket
    on_stopping: Callable[[], None]

    async def run(self, stop_asked: Event) -> None:
        """Serve until asked to stop. Nothing that happens on the way out is needed at boot."""
        async with create_task_group() as tasks:
            # First, so that whoever can write to this gateway can ask about it, too.
            await tasks.start(self.control.keep_serving)
            tasks.start_soon(self.heartbeat.keep_beating)
            for channel in self.channels:
                tasks.start_soon(self.intake.keep_receiving, channel)
            tasks.start_soon(self.deliver.keep_delivering)
            tasks.start_soon(self.rescue.keep_rescuing)
            tasks.start_soon(self.supervise.keep_supervising)
            tasks.start_soon(self.supervise.keep_forgetting)
            tasks.start_soon(self.watch_logs.keep_watching)
            tasks.start_soon(self._stop_at_drain, stop_asked)
            dispatching = CancelScope()
            dispatched = Event()
            tasks.start_soon(self._dispatch, dispatching, dispatched)
            await stop_asked.wait()
            log.info("gateway_stopping", running=self.dispatch.running)
            self.on_stopping()
            had_leftovers = self.dispatch.running > 0
            self.store.stop_waiting()
            dispatching.cancel()
            with move_on_after(FAREWELL_SECONDS):
                await dispatched.wait()
            tasks.cancel_scope.cancel()
        with move_on_after(FAREWELL_SECONDS, shield=True):
            how = EndedHow.LEFTOVERS if had_leftovers else EndedHow.STOPPED
            await self.store.workers.end(self.heartbeat.worker_id, how)
        log.info("gateway_stopped")

    async def _stop_at_drain(self, stop_asked: Event) -> None:
        await self.heartbeat.drain_asked.wait()
        stop_asked.set()

    async def _dispatch(self, scope: CancelScope, done: Event) -> None:
        try:
            with scope:
                await self.dispatch.keep_dispatching()
        finally:
            done.set()
