"""What other distributions add to this gateway, by entry points.

Looking for them takes some fifty milliseconds, a tenth of a start: it is done only where it is
needed, and only after messages are accepted.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from anyio import Event

from koboshi.config import Config
from koboshi.tools.mcp.naming import owner_of
from koboshi.tools.plugins import PluginTools

if TYPE_CHECKING:
    from koboshi.ports.plugin import Plugin, ToolSetting

TOOLS = "koboshi.tools"
MODELS = "koboshi.models"


def find_plugins(group: str) -> "tuple[Plugin, ...]":
    """The installed entry points of the group; nothing of them is imported."""
    from importlib.metadata import EntryPoint, entry_points

    from koboshi.ports.plugin import Plugin

    def plugin_of(entry_point: EntryPoint) -> Plugin:
        dist = entry_point.dist
        words = "a distribution without a name" if dist is None else f"{dist.name} {dist.version}"
        return Plugin(name=entry_point.name, distribution=words, load=entry_point.load)

    return tuple(plugin_of(entry_point) for entry_point in entry_points(group=group))


def open_plugins(
    config: Config, environment: Mapping[str, str], *, taken: Sequence[str]
) -> PluginTools:
    """The tools of other distributions; none is loaded yet. `taken` are names of our own tools."""
    servers = [server.name for server in config.enabled_mcp]
    limits = config.limits
    return PluginTools(
        lambda: find_plugins(TOOLS),
        _settings_of(config, environment),
        only=config.tools.plugins,
        is_taken=lambda name: name in taken or owner_of(name, servers) is not None,
        load_s=limits.plugin_load_seconds,
        settle_s=limits.plugin_settle_seconds,
        reach_s=limits.plugin_reach_seconds,
        call_s=limits.plugin_call_seconds,
    )


async def load_plugins(plugins: PluginTools, before: Sequence[Event]) -> None:
    """Load them, once all of that was before."""
    for event in before:
        await event.wait()
    await plugins.load()


def _settings_of(config: Config, environment: Mapping[str, str]) -> "Callable[[str], ToolSetting]":
    tables = dict(config.tools.settings)

    def setting_of(name: str) -> "ToolSetting":
        from koboshi.ports.plugin import ToolSetting

        table = tables.get(name)
        return ToolSetting(
            workdir=str(config.gateway.workdir),
            environment=dict(environment),
            settings={} if table is None else json.loads(table.reveal()),
        )

    return setting_of
