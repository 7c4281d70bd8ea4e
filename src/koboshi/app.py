"""The composition root: builds every object from the configuration and passes it on."""

import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog
from anyio import Event, create_task_group, open_signal_receiver
from anyio.abc import TaskStatus

from koboshi import __version__
from koboshi.agent.prompt import system_prompt
from koboshi.channels.web.channel import WebChannel
from koboshi.channels.web.limits import WebLimits
from koboshi.commands.run import respond
from koboshi.config import Config, WebConfig, secrets_of
from koboshi.domain.action import TurnLimits
from koboshi.domain.errors import ModelUnusable, StoreFailed
from koboshi.domain.ids import ChannelName
from koboshi.domain.outbox import DeliveryLimits
from koboshi.domain.recovery import Policy, RecoveryPolicy, World
from koboshi.domain.worker import Worker
from koboshi.logs import redactor
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
from koboshi.runtime.runners import LocalRunners
from koboshi.runtime.supervise import Supervise
from koboshi.runtime.turn import TurnRunner
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores import faults
from koboshi.stores.sqlite.store import SqliteStore, StoreOptions, open_store
from koboshi.tools.ask import ASK
from koboshi.tools.files.tools import file_tools
from koboshi.tools.pause import PAUSE
from koboshi.tools.process import ProcessTool
from koboshi.tools.registry import Toolbox
from koboshi.tools.terminal import TerminalTool, store_end

log = structlog.get_logger()

WEB_TOKEN_NAME = "web-token"
PROCESSES_NAME = "processes"

KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR")
"""What commands inherit of our environment: nothing that may hold a key, or bend a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    lock_wait_seconds: float
    accepts_loss: bool = False
    announce: Callable[[str], None] = lambda _: None
    """Told the address to open, once it serves."""


async def serve(config: Config, options: RunOptions) -> None:
    """Run a gateway on the configuration until it is asked to stop.

    Raises StoreRefused, Unusable or StoreFailed, alone or inside exception groups.
    """
    clock, wakeups, world = SystemClock(), LocalWakeups(), world_of(config)
    store = await _open(config, options, world, clock, wakeups)
    for warning in (*config.warnings, *store.warnings):
        log.warning("startup_warning", warning=warning)
    try:
        host = socket.gethostname()
        worker = await store.workers.start(host, os.getpid(), _birth(), __version__)
        stop_asked = Event()
        _make_workdir(config.gateway.workdir)
        parts = _Parts(
            config=config,
            store=store,
            worker=worker,
            world=world,
            stop_asked=stop_asked,
            clock=clock,
            wakeups=wakeups,
            has_recovered=Event(),
            runners=LocalRunners(config.home / PROCESSES_NAME, clock),
        )
        gateway, web = _build(parts)
        log.info("gateway_started", worker=worker.worker_id, home=str(config.home))
        async with create_task_group() as tasks:
            await tasks.start(_stop_at_signals, stop_asked)
            for channel in web:
                tasks.start_soon(_announce, channel, options.announce)
            await gateway.run(stop_asked)
            tasks.cancel_scope.cancel()
    finally:
        await store.close()


async def _open(
    config: Config, options: RunOptions, world: World, clock: SystemClock, wakeups: LocalWakeups
) -> SqliteStore:
    return await open_store(
        config.home,
        world=world,
        clock=clock,
        wakeups=wakeups,
        options=StoreOptions(
            lock_wait_seconds=options.lock_wait_seconds,
            accepts_loss=options.accepts_loss,
            crash_at=os.environ.get(faults.VARIABLE, ""),
            waiting_max=config.limits.inbox_waiting_max,
            question_age_ms_max=config.limits.question_age_ms,
        ),
        on_failure=lambda failure: log.error("store_failed", error=str(failure)),
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What the objects of one gateway share."""

    config: Config
    store: SqliteStore
    worker: Worker
    world: World
    stop_asked: Event
    clock: SystemClock
    wakeups: LocalWakeups
    has_recovered: Event
    runners: LocalRunners

    def heartbeat(self) -> Heartbeat:
        return Heartbeat(
            store=self.store,
            clock=self.clock,
            worker_id=self.worker.worker_id,
            every_seconds=self.config.limits.heartbeat_seconds,
            drain_asked=Event(),
            last_beat=self.clock.monotonic(),
        )

    def web_channels(self, heartbeat: Heartbeat) -> list[WebChannel]:
        health = GatewayHealth(
            store=self.store,
            heartbeat=heartbeat,
            has_recovered=self.has_recovered,
            stop_asked=self.stop_asked,
        )
        return [
            WebChannel(
                name=ChannelName(channel.name),
                host=channel.host,
                port=channel.port,
                token=web_token(self.config.home, channel),
                views=self.store.views,
                wakeups=self.wakeups,
                health=health,
                clock=self.clock,
                limits=self._web_limits(),
            )
            for channel in self.config.enabled_channels
            if isinstance(channel, WebConfig)
        ]

    def _web_limits(self) -> WebLimits:
        limits = self.config.limits
        return WebLimits(
            body_bytes_max=limits.request_bytes_max,
            message_chars_max=limits.message_chars_max,
            route_chars_max=limits.route_chars_max,
            body_s=limits.http_read_seconds,
            poll_s=limits.poll_seconds,
        )

    def toolbox(self) -> Toolbox:
        terminal = self.config.tools.terminal
        return Toolbox(
            [
                TerminalTool(
                    processes=self.store.processes,
                    runners=self.runners,
                    clock=self.clock,
                    approval=terminal.approval,
                    workdir=str(self.config.gateway.workdir),
                    timeout_seconds=terminal.timeout_seconds,
                    background_seconds=self.config.limits.background_seconds_max,
                    environment=environment_of_commands(os.environ),
                ),
                ProcessTool(processes=self.store.processes, runners=self.runners, clock=self.clock),
                *file_tools(workdir=self.config.gateway.workdir, home=self.config.home),
                ASK,
                PAUSE,
            ]
        )

    def supervise(self) -> Supervise:
        return Supervise(
            store=self.store,
            wakeups=self.wakeups,
            runners=self.runners,
            store_end=partial(store_end, self.store.processes, self.clock),
            poll_seconds=self.config.limits.poll_seconds,
        )

    def turn_runner(self, channels: Mapping[ChannelName, Channel]) -> TurnRunner:
        limits, tools = self.config.limits, self.toolbox()
        result_chars_max = limits.step_bytes_max // 4
        return TurnRunner(
            store=self.store,
            model=model_of(self.config),
            tools=tools,
            calls=CallRunner(
                store=self.store,
                tools=tools,
                result_chars_max=result_chars_max,
                redact=redactor(secrets_of(self.config)),
            ),
            wakeups=self.wakeups,
            clock=self.clock,
            system=system_prompt(self.config.model.system_prompt),
            text_max_of=lambda name: _text_max(channels.get(name)),
            limits=TurnLimits(
                steps_max=limits.steps_per_turn_max, empty_replies_max=limits.empty_replies_max
            ),
            model_tries_max=limits.model_tries_max,
            question_age_ms_max=limits.question_age_ms,
            poll_seconds=limits.poll_seconds,
            release_seconds=limits.release_seconds,
        )

    def dispatch(self, channels: Mapping[ChannelName, Channel]) -> Dispatch:
        return Dispatch(
            store=self.store,
            wakeups=self.wakeups,
            runner=self.turn_runner(channels),
            worker_id=self.worker.worker_id,
            turns_max=self.config.gateway.max_turns,
            poll_seconds=self.config.limits.poll_seconds,
        )

    def deliver(self, channels: Mapping[ChannelName, Channel]) -> Deliver:
        limits = self.config.limits
        return Deliver(
            store=self.store,
            wakeups=self.wakeups,
            clock=self.clock,
            channels=channels,
            worker_id=self.worker.worker_id,
            limits=DeliveryLimits(
                attempts_max=limits.delivery_attempts_max, age_ms_max=limits.delivery_age_ms_max
            ),
            in_flight_max=limits.deliveries_in_flight_max,
        )

    def rescue(self) -> Rescue:
        return Rescue(
            store=self.store,
            worker_id=self.worker.worker_id,
            at_once=self.config.limits.recoveries_at_once,
            every_seconds=self.config.limits.rescue_seconds,
            has_looked=self.has_recovered,
        )


def _build(parts: _Parts) -> tuple[Gateway, list[WebChannel]]:
    store, is_allowed = parts.store, parts.world.is_allowed
    heartbeat = parts.heartbeat()
    web = parts.web_channels(heartbeat)
    channels: dict[ChannelName, Channel] = {channel.name: channel for channel in web}
    gateway = Gateway(
        store=store,
        channels=list(channels.values()),
        intake=Intake(store=store, clock=parts.clock, is_allowed=is_allowed, respond=respond),
        dispatch=parts.dispatch(channels),
        deliver=parts.deliver(channels),
        rescue=parts.rescue(),
        supervise=parts.supervise(),
        heartbeat=heartbeat,
        control=ControlSocket(
            home=parts.config.home,
            answer=lambda request: answer(store, request, is_running=True),
        ),
    )
    return gateway, web


def _text_max(channel: Channel | None) -> int:
    """How long a part may be; for a channel that is not configured, what every platform takes."""
    return 4_000 if channel is None else channel.abilities.text_max


def _make_workdir(workdir: Path) -> None:
    """Where commands run; without it they fail one by one, and say so."""
    try:
        workdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        log.warning("workdir_missing", workdir=str(workdir), error=str(error))


def environment_of_commands(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of every command."""
    kept = {name: environ[name] for name in KEPT_VARIABLES if name in environ}
    kept |= {name: value for name, value in environ.items() if name.startswith("LC_")}
    return kept | {"TERM": "dumb", "PYTHONUNBUFFERED": "1", "PAGER": "cat"}


def model_of(config: Config) -> Model:
    if config.model.is_scripted:
        return ScriptedModel()
    raise ModelUnusable(
        f'model "{config.model.name}" is not available in this version; use "scripted"'
    )


def web_token(home: Path, channel: WebConfig) -> str:
    """The configured token, or one that is made at the first start and kept in the home."""
    if channel.token is not None:
        return channel.token.reveal()
    path = home / WEB_TOKEN_NAME
    kept = path.read_text(encoding="ascii").strip() if path.exists() else ""
    return kept or _made_token(path)


def _made_token(path: Path) -> str:
    """A new token in a file. It gets its name when it is whole: half a token would lock us out."""
    token = secrets.token_urlsafe(32)
    unnamed = path.with_suffix(".new")
    try:
        unnamed.unlink(missing_ok=True)
        descriptor = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
            file.flush()
            os.fsync(file.fileno())
        unnamed.rename(path)
    except OSError as error:
        raise StoreFailed(f"{path} can not be written: {error}") from error
    return token


async def _announce(channel: WebChannel, announce: Callable[[str], None]) -> None:
    port = await channel.listening()
    announce(f"http://{channel.host}:{port}")
    log.info("web_listening", host=channel.host, port=port)


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
