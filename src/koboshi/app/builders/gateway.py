"""The gateway, put together of what the builders of the folders make."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from koboshi.app.boot_config import environment_of_commands
from koboshi.app.builders import processes, runtime
from koboshi.app.builders.agents import agent_life
from koboshi.app.builders.channels import platform_channels, say_in_chat, web_channels
from koboshi.app.builders.control import control_context_of
from koboshi.app.builders.shared import Shared
from koboshi.app.builders.tools import Fixed, own_tools
from koboshi.app.builders.turns import turn_runner
from koboshi.app.plugins import open_plugins
from koboshi.app.servers import open_servers
from koboshi.app.tokens import make_tokens
from koboshi.channels.web.channel import WebChannel
from koboshi.control.context import ControlContext
from koboshi.control.handle import answer
from koboshi.control.neighbours import ToolLine
from koboshi.control.socket import ControlSocket
from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Channel
from koboshi.ports.tool import Tool
from koboshi.runtime.gateway import Gateway
from koboshi.runtime.health import GatewayHealth
from koboshi.runtime.measured import MeasuredChannel
from koboshi.tools.mcp import McpServers
from koboshi.tools.mcp.naming import owner_of
from koboshi.tools.plugins import PluginTools
from koboshi.tools.registry import Toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    gateway: Gateway
    health: GatewayHealth
    web: list[WebChannel]
    servers: McpServers
    plugins: PluginTools


def build(
    shared: Shared, on_stopping: Callable[[], None], on_draining: Callable[[float], None]
) -> Built:
    """The gateway, and what runs beside it. Raises Unusable."""
    # First, because the first start makes the token here, and no other part may show it.
    make_tokens(shared.config)
    beating, web = runtime.heartbeat(shared), list[WebChannel]()
    reached = platform_channels(shared)
    owner = runtime.owning(shared)
    health = runtime.health(shared, beating, reached, owner)
    control = _control(shared, health, web)
    web += web_channels(shared, health, control)
    reached += web
    taking = {channel.name for channel in reached if channel.abilities.takes_files}
    make_own = partial(own_tools, shared, taking.__contains__, Fixed.of(shared))
    own = make_own()
    environment, taken = environment_of_commands(os.environ), [tool.spec.name for tool in own]
    servers = _servers(shared, environment, taken)
    plugins = open_plugins(shared.config, environment, taken=taken)
    shared.neighbours.tools = partial(_tool_lines, own, servers, plugins)
    channels: dict[ChannelName, Channel] = {
        channel.name: MeasuredChannel(channel, shared.meter, shared.clock) for channel in reached
    }
    runner = turn_runner(shared, channels, Toolbox(own, [servers, plugins], make_own))
    rescuing, intake = runtime.rescue(shared), runtime.intake(shared, owner, channels)
    gateway = Gateway(
        store=shared.store,
        channels=list(channels.values()),
        intake=intake,
        dispatch=runtime.dispatch(shared, runner),
        deliver=runtime.deliver(shared, channels, owner),
        rescue=rescuing,
        burying=runtime.burying(shared, beating, rescuing),
        trust=shared.trust,
        supervise=processes.supervise(shared),
        watch_logs=processes.watch_logs(shared),
        heartbeat=beating,
        schedules=runtime.schedules(shared),
        goals=runtime.goals(shared),
        agents=agent_life(shared, runner.foreign),
        drain=shared.drain,
        clock=shared.clock,
        wakeups=shared.wakeups,
        on_stopping=on_stopping,
        on_draining=on_draining,
        control=ControlSocket(home=shared.config.home, answer=partial(answer, control)),
    )
    return Built(gateway=gateway, health=health, web=web, servers=servers, plugins=plugins)


async def _login_link(web: list[WebChannel]) -> str | None:
    return await web[0].shared_link() if web else None


def _servers(shared: Shared, environment: dict[str, str], taken: list[str]) -> McpServers:
    has_boundary = shared.enclosure is not None
    servers = open_servers(shared.config, environment, taken=taken, has_boundary=has_boundary)
    shared.neighbours.servers = servers.standing
    return servers


def _tool_lines(
    own: Sequence[Tool], servers: McpServers, plugins: PluginTools
) -> tuple[ToolLine, ...]:
    """The tools that the agent has now, and where each comes from."""
    names = servers.standing()
    found = [
        *((tool.spec, "built in") for tool in own),
        *((tool.spec, f"mcp:{owner_of(tool.spec.name, names)}") for tool in servers.tools()),
        *((tool.spec, "plug-in") for tool in plugins.tools()),
    ]
    return tuple((spec.name, source, spec.description) for spec, source in found)


def _control(shared: Shared, health: GatewayHealth, web: list[WebChannel]) -> ControlContext:
    """What an operator can ask and do; `web` may still get its channels."""
    return replace(
        control_context_of(shared.config, shared.store, shared.clock, is_running=True),
        leave=shared.drain.ask,
        why_not_restart=shared.why_not_restart,
        login_link=partial(_login_link, web),
        channels=health.channels,
        heard=health.heard,
        neighbours=health.neighbours,
        web_address=lambda: next((channel.address for channel in web), None),
        say=partial(say_in_chat, web),
    )
