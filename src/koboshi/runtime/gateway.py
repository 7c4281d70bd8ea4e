"""The task tree, top to bottom."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog
from anyio import CancelScope, Event, create_task_group, move_on_after

from koboshi.control.socket import ControlSocket
from koboshi.domain.shutdown import Leave
from koboshi.domain.worker import EndedHow
from koboshi.ports.channel import Channel
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store
from koboshi.ports.wakeups import ACCOUNTS, OUTBOX, TURNS, Wakeups
from koboshi.processes.supervise import Supervise
from koboshi.processes.watch import WatchLogs
from koboshi.runtime.agent_life import AgentLife
from koboshi.runtime.burying import Burying
from koboshi.runtime.deliver import Deliver
from koboshi.runtime.dispatch import Dispatch
from koboshi.runtime.drain import Drain
from koboshi.runtime.goals import GoalLoop
from koboshi.runtime.heartbeat import Heartbeat
from koboshi.runtime.intake import Intake
from koboshi.runtime.rescue import Rescue
from koboshi.runtime.schedules import ScheduleLoop
from koboshi.runtime.trust import Trust

log = structlog.get_logger()

FAREWELL_SECONDS = 5.0
SENDS_SECONDS = 2.0
LOOK_SECONDS = 2.0


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
    burying: Burying | None = None
    """Looks after the other nodes, where there may be some."""
    trust: Trust = field(default_factory=Trust)
    schedules: ScheduleLoop
    goals: GoalLoop
    control: ControlSocket
    agents: AgentLife | None
    drain: Drain
    clock: Clock
    wakeups: Wakeups
    on_stopping: Callable[[], None]
    """Called when a stop begins, to bound it from outside."""
    on_draining: Callable[[float], None] = lambda _: None
    """Told now and then how many seconds the stop may still take."""

    async def run(self) -> None:
        """Serve until asked to stop. The next boot needs nothing that happens during the stop."""
        await self._bind_accounts()
        self.intake.opening.channels = len(self.channels)
        stop_asked = self.drain.asked
        async with create_task_group() as tasks:
            # First, so that a client that can write to this gateway can query it, too.
            await tasks.start(self.control.keep_serving)
            tasks.start_soon(self.heartbeat.keep_beating)
            if self.burying is not None:
                tasks.start_soon(self.burying.keep_looking)
                tasks.start_soon(self.trust.keep_watching, self._lose_trust, self._regain_trust)
            for channel in self.channels:
                tasks.start_soon(self.intake.keep_open, channel)
            tasks.start_soon(self.deliver.keep_delivering)
            tasks.start_soon(self.rescue.keep_rescuing)
            tasks.start_soon(self.supervise.keep_supervising)
            tasks.start_soon(self.supervise.keep_forgetting)
            tasks.start_soon(self.watch_logs.keep_watching)
            tasks.start_soon(self.schedules.keep_firing)
            tasks.start_soon(self.goals.keep_judging)
            if self.agents is not None:
                tasks.start_soon(self.agents.keep_looking)
            tasks.start_soon(self._restart_when_asked)
            dispatching = CancelScope()
            dispatched = Event()
            tasks.start_soon(self._dispatch, dispatching, dispatched)
            await stop_asked.wait()
            await self._let_steps_finish()
            # Releasing: each running turn gives its claim back.
            self.store.stop_waiting()
            dispatching.cancel()
            with move_on_after(FAREWELL_SECONDS):
                await dispatched.wait()
                await self.deliver.finish(SENDS_SECONDS)
            tasks.cancel_scope.cancel()
        with move_on_after(FAREWELL_SECONDS, shield=True):
            await self.store.workers.end(self.heartbeat.worker_id, self._ended_how())
        log.info("gateway_stopped", released=self.drain.released)

    def _lose_trust(self) -> None:
        """Other nodes may bury us soon: what is under way here must not go on beside them."""
        self.dispatch.set_down()
        self.wakeups.hint(ACCOUNTS)

    async def _regain_trust(self) -> None:
        await self.dispatch.release()
        await self.deliver.let_go()
        self.wakeups.hint(TURNS)
        self.wakeups.hint(OUTBOX)

    async def _bind_accounts(self) -> None:
        """Before anything is received or sent: a new account must not meet ids of the old one."""
        accounts = {channel.name: channel.account for channel in self.channels if channel.account}
        if not accounts:
            return
        for name in await self.store.inbox.bind(accounts):
            log.warning("account_changed", channel=name, account=accounts[name])

    async def _let_steps_finish(self) -> None:
        """Nothing new starts from here on; running steps may finish."""
        log.info("gateway_draining", running=self.dispatch.running, how=self.drain.how)
        self.on_stopping()
        if not self.dispatch.running and not self.store.is_shared:
            return
        deadline = self.clock.monotonic() + self.drain.seconds
        with move_on_after(FAREWELL_SECONDS):
            await self.store.workers.begin_drain(self.heartbeat.worker_id)
        while self.dispatch.running and not self.drain.is_hurried:
            left = deadline - self.clock.monotonic()
            if left <= 0 and not self.drain.has_time:
                return
            seen = self.wakeups.count(TURNS)
            pause = LOOK_SECONDS if self.drain.has_time else min(LOOK_SECONDS, left)
            self.on_draining(max(left, 0.0) + FAREWELL_SECONDS)
            await self.wakeups.wait(TURNS, pause, since=seen)

    def _ended_how(self) -> EndedHow:
        if self.drain.how is Leave.RESTART:
            return EndedHow.RESTART
        return EndedHow.LEFTOVERS if self.drain.released else EndedHow.STOPPED

    async def _restart_when_asked(self) -> None:
        await self.heartbeat.restart_asked.wait()
        self.drain.ask(Leave.RESTART)

    async def _dispatch(self, scope: CancelScope, done: Event) -> None:
        try:
            with scope:
                await self.dispatch.keep_dispatching()
        finally:
            done.set()
