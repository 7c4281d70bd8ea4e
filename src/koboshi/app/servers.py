"""The MCP servers of the configuration, as a source of tools."""

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from anyio import Event

from koboshi.app.boundary import guard_of, server_enclosure
from koboshi.config import Config, Limits, McpConfig
from koboshi.tools.mcp import Address, McpServers, Program, ServerLimits, ServerSpec

REMEDY = (
    "It runs in a sandbox: name what it needs in `readable` or `writable` of [mcp.{name}], or "
    'write sandbox = "host" there'
)


def open_servers(
    config: Config, environment: Mapping[str, str], *, taken: Collection[str], has_boundary: bool
) -> McpServers:
    """The enabled servers; nothing is connected yet. Programs get `environment` and what their
    section gives them; `taken` are names of other tools. Without a boundary no program is started
    but those whose owner put them on the host; those that are called by address are left. Raises
    ToolUnusable."""
    servers = [
        server
        for server in config.enabled_mcp
        if has_boundary or server.url or server.sandbox == "host"
    ]
    specs = [_spec(server, config, environment) for server in servers]
    return McpServers(specs, _limits(config.limits), taken=taken)


async def keep_connected(servers: McpServers, before: Sequence[Event]) -> None:
    """Keep the servers connected, once all of that was before. Ends only by being cancelled."""
    for event in before:
        await event.wait()
    await servers.keep_connected()


def _spec(server: McpConfig, config: Config, environment: Mapping[str, str]) -> ServerSpec:
    return ServerSpec(
        name=server.name,
        endpoint=_address(server) if server.url else _program(server, config, environment),
        timeout_seconds=server.timeout_seconds,
        trusts_hints=server.trust_hints,
        approval=server.approval,
        only=server.tools,
    )


def _program(server: McpConfig, config: Config, environment: Mapping[str, str]) -> Program:
    """The program, inside its own boundary: a home of its own, and no folder of a session."""
    given = {name: secret.reveal() for name, secret in (*server.passed, *server.env)}
    program = Program(
        command=server.command,
        args=server.args,
        environment={**environment, **given},
        workdir=str(config.gateway.workdir),
    )
    enclosure, wrong = server_enclosure(config, server, program.environment)
    view = enclosure.view_of(f"mcp-{server.name}", owner=f"mcp-{server.name}")
    if wrong or view is None:
        return replace(program, blocked=wrong)
    try:
        own = f"mcp-{server.name}"
        started = enclosure.start(view, view.home, environment, session=own)
    except OSError as error:
        return replace(program, blocked=f"its home cannot be made: {error.strerror}")
    return replace(
        program,
        command=shutil.which(server.command, path=program.environment.get("PATH"))
        or server.command,
        environment={**started.environment, **given},
        workdir=view.home,
        confinement=started.confinement,
        ports=guard_of(config).ports,
        remedy=REMEDY.format(name=server.name),
    )


def _address(server: McpConfig) -> Address:
    headers = {name: secret.reveal() for name, secret in server.headers}
    if server.token is not None:
        headers["Authorization"] = f"Bearer {server.token.reveal()}"
    return Address(url=server.url, headers=headers)


def _limits(limits: Limits) -> ServerLimits:
    return ServerLimits(
        connect_s=limits.mcp_connect_seconds,
        reach_s=limits.mcp_reach_seconds,
        settle_s=limits.mcp_settle_seconds,
        retry_s_max=limits.mcp_retry_seconds_max,
        message_bytes_max=limits.mcp_message_bytes_max,
    )
