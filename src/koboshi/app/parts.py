"""The objects of one gateway, built from its configuration."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from anyio import Event

from koboshi.agent.prompt import system_prompt
from koboshi.app.plugins import open_plugins
from koboshi.app.servers import open_servers
from koboshi.app.world import web_token
from koboshi.channels.web.channel import WebChannel
from koboshi.channels.web.limits import WebLimits
from koboshi.commands.run import respond
from koboshi.config import Config, WebConfig, secrets_of
from koboshi.domain.action import TurnLimits
from koboshi.domain.ids import ChannelName
from koboshi.domain.outbox import DeliveryLimits
from koboshi.domain.recovery import World
from koboshi.domain.worker import Worker
from koboshi.logs import redactor
from koboshi.ports.channel import Channel
from koboshi.ports.model import Model
from koboshi.ports.tool import Tool
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
from koboshi.stores.sqlite.store import SqliteStore
from koboshi.tools.ask import ASK
from koboshi.tools.files.tools import file_tools
from koboshi.tools.mcp import McpServers
from koboshi.tools.pause import PAUSE
from koboshi.tools.plugins import PluginTools
from koboshi.tools.process import ProcessTool
from koboshi.tools.registry import Toolbox
from koboshi.tools.terminal import TerminalTool, store_end

PROCESSES_NAME = "processes"

KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR")
"""What commands inherit of our environment: nothing that may hold a key, or bend a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the objects of one gateway share."""

    config: Config
    store: SqliteStore
    model: Model
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

    def own_tools(self) -> list[Tool]:
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
            ),
            ProcessTool(processes=self.store.processes, runners=self.runners, clock=self.clock),
            *file_tools(workdir=self.config.gateway.workdir, home=self.config.home),
            ASK,
            PAUSE,
        ]

    def supervise(self) -> Supervise:
        return Supervise(
            store=self.store,
            wakeups=self.wakeups,
            runners=self.runners,
            store_end=partial(store_end, self.store.processes, self.clock),
            poll_seconds=self.config.limits.poll_seconds,
        )

    def turn_runner(self, channels: Mapping[ChannelName, Channel], tools: Toolbox) -> TurnRunner:
        limits = self.config.limits
        result_chars_max = limits.step_bytes_max // 4
        return TurnRunner(
            store=self.store,
            model=self.model,
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
            model_wait_ms_max=limits.model_wait_ms_max,
            question_age_ms_max=limits.question_age_ms,
            poll_seconds=limits.poll_seconds,
            release_seconds=limits.release_seconds,
        )

    def dispatch(self, channels: Mapping[ChannelName, Channel], tools: Toolbox) -> Dispatch:
        return Dispatch(
            store=self.store,
            wakeups=self.wakeups,
            runner=self.turn_runner(channels, tools),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    gateway: Gateway
    web: list[WebChannel]
    servers: McpServers
    plugins: PluginTools


def build(parts: Parts, on_stopping: Callable[[], None]) -> Built:
    """The gateway, and what runs beside it. Raises Unusable."""
    own_tools = parts.own_tools()
    environment, taken = environment_of_commands(os.environ), [tool.spec.name for tool in own_tools]
    servers = open_servers(parts.config, environment, taken=taken)
    plugins = open_plugins(parts.config, environment, taken=taken)
    store, is_allowed = parts.store, parts.world.is_allowed
    heartbeat = parts.heartbeat()
    web = parts.web_channels(heartbeat)
    channels: dict[ChannelName, Channel] = {channel.name: channel for channel in web}
    gateway = Gateway(
        store=store,
        channels=list(channels.values()),
        intake=Intake(store=store, clock=parts.clock, is_allowed=is_allowed, respond=respond),
        dispatch=parts.dispatch(channels, Toolbox(own_tools, [servers, plugins])),
        deliver=parts.deliver(channels),
        rescue=parts.rescue(),
        supervise=parts.supervise(),
        heartbeat=heartbeat,
        on_stopping=on_stopping,
        control=ControlSocket(
            home=parts.config.home,
            answer=lambda request: answer(store, request, is_running=True),
        ),
    )
    return Built(gateway=gateway, web=web, servers=servers, plugins=plugins)


def _text_max(channel: Channel | None) -> int:
    """How long a part may be; for a channel that is not configured, what every platform takes."""
    return 4_000 if channel is None else channel.abilities.text_max


def environment_of_commands(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of every command."""
    kept = {name: environ[name] for name in KEPT_VARIABLES if name in environ}
    kept |= {name: value for name, value in environ.items() if name.startswith("LC_")}
    return kept | {"TERM": "dumb", "PYTHONUNBUFFERED": "1", "PAGER": "cat"}
