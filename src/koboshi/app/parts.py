"""The objects of one gateway, built from its configuration."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from anyio import Event

from koboshi.agent.prompt import system_prompt
from koboshi.app.boot_config import environment_of_commands, redactor_of
from koboshi.app.context import context_limits
from koboshi.app.control_context import control_context_of, ends_of, report_limits
from koboshi.app.metrics import metrics_of
from koboshi.app.plugins import open_plugins
from koboshi.app.restart_tool import restart_tool
from koboshi.app.servers import open_servers
from koboshi.app.slots import slots_of
from koboshi.app.tokens import make_tokens, web_token
from koboshi.app.web import names_of, pages_of, web_limits
from koboshi.app.zone import zone_of
from koboshi.channels.web.channel import WebChannel
from koboshi.clock import SystemClock
from koboshi.commands.run import respond
from koboshi.config import Config, TelegramConfig, WebConfig
from koboshi.control.context import ControlContext, until_written_to
from koboshi.control.handle import answer, reply_to
from koboshi.control.neighbours import Neighbours
from koboshi.control.socket import ControlSocket
from koboshi.domain.action import TurnLimits
from koboshi.domain.ids import ChannelName, ProcessId
from koboshi.domain.outbox import DeliveryLimits
from koboshi.domain.recovery import BootConfig
from koboshi.domain.shutdown import nothing_against_it
from koboshi.domain.worker import Worker
from koboshi.ports.channel import Channel
from koboshi.ports.model import Model
from koboshi.ports.tool import Tool
from koboshi.ports.wakeups import OUTBOX
from koboshi.processes.ends import ProcessEnds, output_of
from koboshi.processes.runners import LocalRunners
from koboshi.processes.supervise import Retention, Supervise
from koboshi.processes.watch import WatchLogs
from koboshi.runtime.attachments import Attachments
from koboshi.runtime.calls import CallRunner
from koboshi.runtime.deliver import Deliver
from koboshi.runtime.dispatch import Dispatch
from koboshi.runtime.drafts import Drafts
from koboshi.runtime.drain import Drain
from koboshi.runtime.gateway import Gateway
from koboshi.runtime.health import GatewayHealth
from koboshi.runtime.heartbeat import Heartbeat
from koboshi.runtime.intake import Intake
from koboshi.runtime.measured import MeasuredChannel, MeasuredModel
from koboshi.runtime.memory import count_kills
from koboshi.runtime.meter import Meter, labelled
from koboshi.runtime.model_caller import ModelCaller
from koboshi.runtime.progress import Progress
from koboshi.runtime.rescue import Rescue
from koboshi.runtime.shipping import Shipping
from koboshi.runtime.turn import TurnRunner
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores.sqlite.store import SqliteStore
from koboshi.tools.ask import ASK
from koboshi.tools.files.tools import file_tools
from koboshi.tools.mcp import McpServers
from koboshi.tools.patterns import matcher
from koboshi.tools.pause import PAUSE
from koboshi.tools.plugins import PluginTools
from koboshi.tools.process import ProcessTool
from koboshi.tools.registry import Toolbox
from koboshi.tools.terminal import TerminalTool

if TYPE_CHECKING:
    from koboshi.channels.telegram.channel import TelegramChannel


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the objects of one gateway share."""

    config: Config
    store: SqliteStore
    model: Model
    worker: Worker
    world: BootConfig
    drain: Drain
    clock: SystemClock
    wakeups: LocalWakeups
    has_recovered: Event
    runners: LocalRunners
    neighbours: Neighbours
    meter: Meter = field(default_factory=Meter)
    is_supervised: bool = False
    """Whether a parent of ours starts the gateway again whenever it dies."""
    why_not_restart: Callable[[], Awaitable[str]] = nothing_against_it

    def heartbeat(self) -> Heartbeat:
        return Heartbeat(
            store=self.store,
            clock=self.clock,
            worker_id=self.worker.worker_id,
            every_seconds=self.config.limits.heartbeat_seconds,
            wakeups=self.wakeups,
            restart_asked=Event(),
            count_kills=count_kills,
            last_beat=self.clock.monotonic(),
        )

    def health(
        self, heartbeat: Heartbeat, reached: "Sequence[TelegramChannel | WebChannel]" = ()
    ) -> GatewayHealth:
        return GatewayHealth(
            store=self.store,
            heartbeat=heartbeat,
            has_recovered=self.has_recovered,
            stop_asked=self.drain.asked,
            channels=lambda: {channel.name: channel.trouble for channel in reached},
            neighbours=self.neighbours.told,
        )

    def telegram_channels(self) -> "list[TelegramChannel]":
        found = [each for each in self.config.enabled_channels if isinstance(each, TelegramConfig)]
        if not found:
            return []
        # Its libraries cost every start that has no use for them.
        from koboshi.app.telegram import telegram_channel

        on_back = partial(self.wakeups.hint, OUTBOX)
        return [telegram_channel(self.config, each, self.clock, on_back) for each in found]

    def web_channels(self, health: GatewayHealth, jobs: ControlContext) -> list[WebChannel]:
        return [
            WebChannel(
                name=ChannelName(channel.name),
                names=names_of(channel),
                port=channel.port,
                token=web_token(self.config.home, channel),
                views=self.store.views,
                wakeups=self.wakeups,
                health=health,
                clock=self.clock,
                limits=web_limits(self.config),
                home=self.config.home,
                metrics=metrics_of(
                    self.store, self.clock, self.worker, self.config.home, health, self.meter
                ).text,
                on_refused=partial(
                    self.meter.count, "koboshi_auth_failures_total", labelled(surface="web")
                ),
                pages=pages_of(
                    ChannelName(channel.name),
                    self.config.model.name,
                    partial(reply_to, jobs),
                    is_supervised=self.is_supervised,
                ),
            )
            for channel in self.config.enabled_channels
            if isinstance(channel, WebConfig)
        ]

    def own_tools(self, takes_files: Callable[[ChannelName], bool]) -> list[Tool]:
        terminal = self.config.tools.terminal
        return [
            TerminalTool(
                processes=self.store.processes,
                runners=self.runners,
                clock=self.clock,
                approval=terminal.approval,
                workdir=str(self.config.gateway.workdir),
                timeout_seconds=terminal.timeout_seconds,
                background_seconds=self.config.limits.background_seconds_max,
                environment=environment_of_commands(os.environ),
                store_end=self.ends().store,
                background_max=self.config.limits.background_per_session_max,
            ),
            ProcessTool(
                processes=self.store.processes,
                runners=self.runners,
                clock=self.clock,
                store_end=self.ends().store,
                until_written_to=partial(
                    until_written_to, self.store, self.wakeups, self.config.limits.poll_seconds
                ),
                booted_ms=self.worker.started_ms,
            ),
            *file_tools(
                workdir=self.config.gateway.workdir,
                home=self.config.home,
                sent_bytes_max=self.config.limits.sent_file_bytes_max,
                takes_files=takes_files,
            ),
            ASK,
            PAUSE,
            restart_tool(self.worker, self.store, self.drain, self.why_not_restart),
        ]

    def ends(self) -> ProcessEnds:
        return ends_of(self.config, self.store, self.runners, self.clock)

    def supervise(self) -> Supervise:
        limits = self.config.limits
        return Supervise(
            store=self.store,
            wakeups=self.wakeups,
            clock=self.clock,
            runners=self.runners,
            store_end=self.ends().store,
            poll_seconds=limits.poll_seconds,
            retention=Retention(
                keep_ms=limits.process_keep_seconds * 1000,
                kept_max=limits.processes_kept_max,
                sweep_seconds=limits.process_sweep_seconds,
            ),
        )

    def watch_logs(self) -> WatchLogs:
        return WatchLogs(
            store=self.store,
            wakeups=self.wakeups,
            clock=self.clock,
            runners=self.runners,
            limits=report_limits(self.config),
            matcher=matcher,
            redact=redactor_of(self.config),
            every_seconds=self.config.limits.watch_seconds,
            poll_seconds=self.config.limits.poll_seconds,
        )

    def intake(self) -> Intake:
        redact = redactor_of(self.config)

        async def output(process_id: ProcessId) -> str:
            return redact(await output_of(self.runners, process_id))

        return Intake(
            store=self.store,
            clock=self.clock,
            respond=respond,
            output_of=output,
            why_not_restart=self.why_not_restart,
        )

    def turn_runner(self, channels: Mapping[ChannelName, Channel], tools: Toolbox) -> TurnRunner:
        limits = self.config.limits
        result_chars_max = limits.step_bytes_max // 4
        return TurnRunner(
            store=self.store,
            asking=self.asking(channels),
            tools=tools,
            calls=CallRunner(
                store=self.store,
                tools=tools,
                result_chars_max=result_chars_max,
                redact=redactor_of(self.config),
                side_by_side_max=limits.calls_side_by_side_max,
            ),
            wakeups=self.wakeups,
            clock=self.clock,
            shipping=Shipping(channels=channels, home=self.config.home),
            log_size_of=self.runners.log_size,
            limits=TurnLimits(
                steps_max=limits.steps_per_turn_max, empty_replies_max=limits.empty_replies_max
            ),
            question_age_ms_max=limits.question_age_ms,
            poll_seconds=limits.poll_seconds,
            release_seconds=limits.release_seconds,
            drain=self.drain,
            progress=self.progress(channels),
            attachments=Attachments(
                store=self.store,
                channels=channels,
                workdir=self.config.gateway.workdir,
                seconds=limits.file_seconds,
            ),
        )

    def progress(self, channels: Mapping[ChannelName, Channel]) -> Progress:
        return Progress(
            store=self.store,
            clock=self.clock,
            drain=self.drain,
            channels=channels,
            every_seconds=self.config.gateway.progress_seconds,
            redact=redactor_of(self.config),
        )

    def asking(self, channels: Mapping[ChannelName, Channel]) -> ModelCaller:
        return ModelCaller(
            drafts=Drafts(channels=channels),
            store=self.store,
            model=MeasuredModel(
                model=self.model,
                meter=self.meter,
                clock=self.clock,
                name=self.config.model.name,
                standing=self.neighbours.model,
            ),
            clock=self.clock,
            system=system_prompt(self.config.model.system_prompt),
            context=context_limits(self.config),
            held_ms_max=self.config.limits.model_held_wait_ms_max,
            zone=zone_of(self.config),
        )

    def dispatch(self, channels: Mapping[ChannelName, Channel], tools: Toolbox) -> Dispatch:
        return Dispatch(
            store=self.store,
            wakeups=self.wakeups,
            runner=self.turn_runner(channels, tools),
            worker_id=self.worker.worker_id,
            slots=slots_of(self.config, self.store.processes, self.wakeups),
            open_turns_max=self.config.gateway.max_open_turns,
            poll_seconds=self.config.limits.poll_seconds,
            drain=self.drain,
        )

    def deliver(self, channels: Mapping[ChannelName, Channel]) -> Deliver:
        limits = self.config.limits
        return Deliver(
            store=self.store,
            wakeups=self.wakeups,
            clock=self.clock,
            channels=channels,
            worker_id=self.worker.worker_id,
            limits=DeliveryLimits(age_ms_max=limits.delivery_age_ms_max),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    gateway: Gateway
    health: GatewayHealth
    web: list[WebChannel]
    servers: McpServers
    plugins: PluginTools


def build(
    parts: Parts, on_stopping: Callable[[], None], on_draining: Callable[[float], None]
) -> Built:
    """The gateway, and what runs beside it. Raises Unusable."""
    # First, because the first start makes the token here, and nobody else may be shown it.
    make_tokens(parts.config)
    heartbeat, web = parts.heartbeat(), list[WebChannel]()
    reached: list[TelegramChannel | WebChannel] = [*parts.telegram_channels()]
    health = parts.health(heartbeat, reached)
    jobs = replace(
        control_context_of(parts.config, parts.store, parts.clock, is_running=True),
        leave=parts.drain.ask,
        why_not_restart=parts.why_not_restart,
        login_link=lambda: next((channel.login_link() for channel in web), None),
        channels=health.channels,
        neighbours=health.neighbours,
        web_address=lambda: next((channel.address for channel in web), None),
    )
    web += parts.web_channels(health, jobs)
    reached += web
    taking = {channel.name for channel in reached if channel.abilities.takes_files}
    own_tools = parts.own_tools(taking.__contains__)
    environment, taken = environment_of_commands(os.environ), [tool.spec.name for tool in own_tools]
    servers = open_servers(parts.config, environment, taken=taken)
    parts.neighbours.servers = servers.standing
    plugins = open_plugins(parts.config, environment, taken=taken)
    channels: dict[ChannelName, Channel] = {
        channel.name: MeasuredChannel(channel, parts.meter, parts.clock) for channel in reached
    }
    gateway = Gateway(
        store=parts.store,
        channels=list(channels.values()),
        intake=parts.intake(),
        dispatch=parts.dispatch(channels, Toolbox(own_tools, [servers, plugins])),
        deliver=parts.deliver(channels),
        rescue=parts.rescue(),
        supervise=parts.supervise(),
        watch_logs=parts.watch_logs(),
        heartbeat=heartbeat,
        drain=parts.drain,
        clock=parts.clock,
        wakeups=parts.wakeups,
        on_stopping=on_stopping,
        on_draining=on_draining,
        control=ControlSocket(home=parts.config.home, answer=partial(answer, jobs)),
    )
    return Built(gateway=gateway, health=health, web=web, servers=servers, plugins=plugins)
