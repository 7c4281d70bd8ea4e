"""The MCP servers of the configuration, as a source of tools."""

from collections.abc import Collection, Mapping, Sequence

from anyio import Event

from koboshi.config import Config, Limits, McpConfig
from koboshi.tools.mcp import Address, McpServers, Program, ServerLimits, ServerSpec


def open_servers(
    config: Config, environment: Mapping[str, str], *, taken: Collection[str]
) -> McpServers:
    """The enabled servers; nothing is connected yet. Programs get `environment` and what their
    section gives them; `taken` are names of other tools. Raises ToolUnusable."""
    specs = [_spec(server, config, environment) for server in config.enabled_mcp]
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
    given = {name: secret.reveal() for name, secret in (*server.passed, *server.env)}
    return Program(
        command=server.command,
        args=server.args,
        environment={**environment, **given},
        workdir=str(config.gateway.workdir),
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
