"""The composition root: builds every object from the configuration and passes it on."""

import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
from anyio import Event, create_task_group, open_signal_receiver
from anyio.abc import TaskStatus

from koboshi import __version__
from koboshi.agent.prompt import system_prompt
from koboshi.channels.web.channel import WebChannel
from koboshi.commands.run import respond
from koboshi.config import Config, WebConfig
from koboshi.domain.action import TurnLimits
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.ids import ChannelName
from koboshi.domain.outbox import DeliveryLimits
from koboshi.domain.recovery import Policy, RecoveryPolicy, World
from koboshi.domain.worker import Worker
from koboshi.models.scripted import ScriptedModel
from koboshi.ports.channel import Channel
from koboshi.ports.model import Model
from koboshi.runtime.answers import answer
from koboshi.runtime.calls import CallRunner
from koboshi.runtime.clock import SystemClock
from koboshi.runtime.control import ControlSocket
from koboshi.runtime.deliver import Deliver
from koboshi.runtime.dispatch import Dispatch
from koboshi.runtime.gateway import Gateway
from koboshi.runtime.health import GatewayHealth
from koboshi.runtime.heartbeat import Heartbeat
from koboshi.runtime.intake import Intake
from koboshi.runtime.rescue import Rescue
from koboshi.runtime.turn import TurnRunner
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores import faults
from koboshi.stores.sqlite.store import SqliteStore, StoreOptions, open_store
from koboshi.tools.ask import ASK
from koboshi.tools.pause import PAUSE
from koboshi.tools.registry import Toolbox

log = structlog.get_logger()

WEB_TOKEN_NAME = "web-token"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    lock_wait_seconds: float
    accept_data_loss: bool = False
    announce: Callable[[str], None] = lambda _: None
    """Told the address to open, once it serves."""


async def serve(config: Config, options: RunOptions) -> None:
    """Run a gateway on the configuration until it is asked to stop.

    Raises StoreRefused, ChannelUnusable or StoreFailed, alone or inside exception groups.
    """
    clock, wakeups, stop_asked = SystemClock(), LocalWakeups(), Event()
    world = world_of(config)
    store = await open_store(
        config.home,
        world=world,
        clock=clock,
        wakeups=wakeups,
        options=StoreOptions(
            lock_wait_seconds=options.lock_wait_seconds,
            accept_data_loss=options.accept_data_loss,
            crash_at=os.environ.get(faults.VARIABLE, ""),
            waiting_max=config.limits.inbox_waiting_max,
            question_age_ms_max=config.limits.question_age_ms,
        ),
        on_failure=lambda failure: log.error("store_failed", error=str(failure)),
    )
    for warning in (*config.warnings, *store.warnings):
        log.warning("startup_warning", warning=warning)
    try:
        worker = await store.workers.start(socket.gethostname(), os.getpid(), _birth(), __version__)
        gateway, web = _build(config, store, worker, world, clock, wakeups, stop_asked)
        log.info("gateway_started", worker=worker.worker_id, home=str(config.home))
        async with create_task_group() as tasks:
            await tasks.start(_stop_at_signals, stop_asked)
            for channel in web:
                tasks.start_soon(_announce, channel, options.announce)
            await gateway.run(stop_asked)
            tasks.cancel_scope.cancel()
    finally:
        await store.close()


def world_of(config: Config) -> World:
    """What recovery must know of the configuration."""
    recovery = config.recovery
    return World(
        policy=Policy(
            recovery=RecoveryPolicy(recovery.policy),
            fresh_ms=int(recovery.fresh_seconds * 1000),
            deaths_max=recovery.attempts,
        ),
        channels={ChannelName(channel.name): True for channel in config.enabled_channels},
        # Whoever has the token of the web channel is allowed; platforms with people come later.
        is_allowed=lambda channel, _person: channel.startswith("web:"),
        busy=config.gateway.busy,
    )


@asynccontextmanager
async def owned_store(config: Config, *, who: str) -> AsyncIterator[SqliteStore]:
    """The store of a home in which no gateway runs, owned for a moment.

    Raises HomeHeld at once when one does.
    """
    store = await open_store(
        config.home,
        world=world_of(config),
        clock=SystemClock(),
        wakeups=LocalWakeups(),
        options=StoreOptions(lock_wait_seconds=0, who=who),
    )
    try:
        yield store
    finally:
        await store.close()


async def answer_from_home(config: Config, request: Mapping[str, object]) -> Mapping[str, object]:
    """What the owner of the home would answer, with this process as the owner."""
    async with owned_store(config, who="the koboshi command line") as store:
        return await answer(store, request, is_running=False)


def _build(
    config: Config,
    store: SqliteStore,
    worker: Worker,
    world: World,
    clock: SystemClock,
    wakeups: LocalWakeups,
    stop_asked: Event,
) -> tuple[Gateway, list[WebChannel]]:
    limits, worker_id = config.limits, worker.worker_id
    has_recovered = Event()
    heartbeat = Heartbeat(
        store=store,
        clock=clock,
        worker_id=worker_id,
        every_seconds=limits.heartbeat_seconds,
        drain_asked=Event(),
        last_beat=clock.monotonic(),
    )
    health = GatewayHealth(
        store=store, heartbeat=heartbeat, has_recovered=has_recovered, stop_asked=stop_asked
    )
    web = [
        WebChannel(
            name=ChannelName(channel.name),
            host=channel.host,
            port=channel.port,
            token=web_token(config.home, channel),
            views=store.views,
            wakeups=wakeups,
            health=health,
            clock=clock,
        )
        for channel in config.enabled_channels
        if isinstance(channel, WebConfig)
    ]
    channels: dict[ChannelName, Channel] = {channel.name: channel for channel in web}
    tools = Toolbox([ASK, PAUSE])
    runner = TurnRunner(
        store=store,
        model=model_of(config),
        tools=tools,
        calls=CallRunner(store=store, tools=tools, result_chars_max=limits.step_bytes_max // 4),
        wakeups=wakeups,
        clock=clock,
        system=system_prompt(config.model.system_prompt),
        text_max_of=lambda name: channels[name].abilities.text_max if name in channels else 4_000,
        limits=TurnLimits(
            steps_max=limits.steps_per_turn_max, empty_replies_max=limits.empty_replies_max
        ),
        model_tries_max=limits.model_tries_max,
        question_age_ms_max=limits.question_age_ms,
        poll_seconds=limits.poll_seconds,
        release_seconds=limits.release_seconds,
    )
    gateway = Gateway(
        store=store,
        channels=list(channels.values()),
        intake=Intake(store=store, clock=clock, is_allowed=world.is_allowed, respond=respond),
        dispatch=Dispatch(
            store=store,
            wakeups=wakeups,
            runner=runner,
            worker_id=worker_id,
            turns_max=config.gateway.max_turns,
            poll_seconds=limits.poll_seconds,
        ),
        deliver=Deliver(
            store=store,
            wakeups=wakeups,
            clock=clock,
            channels=channels,
            worker_id=worker_id,
            limits=DeliveryLimits(
                attempts_max=limits.delivery_attempts_max, age_ms_max=limits.delivery_age_ms_max
            ),
            in_flight_max=limits.deliveries_in_flight_max,
        ),
        rescue=Rescue(
            store=store,
            worker_id=worker_id,
            at_once=limits.recoveries_at_once,
            every_seconds=limits.rescue_seconds,
            has_looked=has_recovered,
        ),
        heartbeat=heartbeat,
        control=ControlSocket(
            home=config.home, answer=lambda request: answer(store, request, is_running=True)
        ),
    )
    return gateway, web


def model_of(config: Config) -> Model:
    if config.model.is_scripted:
        return ScriptedModel()
    raise ChannelUnusable(
        f'model "{config.model.name}" is not available in this version; use "scripted"'
    )


def web_token(home: Path, channel: WebConfig) -> str:
    """The configured token, or one that is made at the first start and kept in the home."""
    if channel.token is not None:
        return channel.token.reveal()
    path = home / WEB_TOKEN_NAME
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
        return token


async def _announce(channel: WebChannel, announce: Callable[[str], None]) -> None:
    port = await channel.listening()
    announce(f"http://127.0.0.1:{port}")
    log.info("web_listening", port=port)


async def _stop_at_signals(stop_asked: Event, *, task_status: TaskStatus[None]) -> None:
    with open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        task_status.started()
        async for number in signals:
            if number == signal.SIGHUP:
                log.info("reload_ignored", reason="the configuration is read at start")
                continue
            log.info("signal_received", signal=number.name)
            stop_asked.set()


def _birth() -> str:
    """What tells this process from a later one with the same pid: boot and start time."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        ticks = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19]
    except OSError:
        return "unknown"
    return f"{boot}/{ticks}"
