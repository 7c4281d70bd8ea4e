"""Tools of other distributions (entry points `koboshi.tools`), as one source of tools.

They are loaded in threads, after messages are accepted: a plug-in may be large, slow or broken, and
none of that may hold up the gateway or the other plug-ins. Where there is none, even the guard that
would stand around it is not imported.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

import structlog
from anyio import Event, move_on_after, to_thread

from koboshi.domain.phrases import excerpt
from koboshi.ports.tool import Tool, ToolFailed
from koboshi.tools.registry import is_name

if TYPE_CHECKING:
    from koboshi.ports.plugin import Plugin, ToolSetting
    from koboshi.tools.guarded import GuardedTool

TOOLS_MAX = 128
"""Of one plug-in."""

log = structlog.get_logger()


class PluginTools:
    """A `ports.tool.ToolSource` of what is installed.

    `only` are the names of the entry points to use: all if it is True, none if it is False. A tool
    whose name `is_taken`, or that an earlier plug-in has, is left out with a warning. In seconds:
    `load_s` for one plug-in, `settle_s` and `reach_s` for the model and for a call that wait for
    all of them, `call_s` for one call.
    """

    def __init__(
        self,
        find_plugins: "Callable[[], Sequence[Plugin]]",
        setting_of: "Callable[[str], ToolSetting]",
        *,
        only: bool | tuple[str, ...] = True,
        is_taken: Callable[[str], bool] = lambda _: False,
        load_s: float = 60,
        settle_s: float = 10,
        reach_s: float = 30,
        call_s: float = 1_800,
    ) -> None:
        self._find_plugins = find_plugins
        self._setting_of = setting_of
        self._only = only
        self._is_taken = is_taken
        self._load_s, self._settle_s = load_s, settle_s
        self._reach_s, self._call_s = reach_s, call_s
        self._tools: dict[str, GuardedTool] = {}
        self._loaded = Event()
        self._settled = Event()
        if not only:
            self._loaded.set()
            self._settled.set()

    async def load(self) -> None:
        """Load what is installed and wanted, one after the other."""
        if self._loaded.is_set():
            return
        try:
            for plugin in await to_thread.run_sync(self._wanted, abandon_on_cancel=True):
                await self._load_one(plugin)
        finally:
            self._loaded.set()
            self._settled.set()

    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._tools.values())

    def find(self, name: str) -> Tool | None:
        """The tool of that name; while there may still come one, what stands for it."""
        tool = self._tools.get(name)
        if tool is None and not self._loaded.is_set():
            from koboshi.tools.guarded import AbsentTool

            return AbsentTool(name=name)
        return tool

    async def reach(self, name: str) -> Tool | None:
        with move_on_after(self._reach_s):
            await self._loaded.wait()
        tool = self._tools.get(name)
        if tool is None and not self._loaded.is_set():
            raise ToolFailed("it was not started: its plug-in is still being loaded")
        return tool

    async def settle(self) -> None:
        if not self._settled.is_set():
            with move_on_after(self._settle_s):
                await self._loaded.wait()
            self._settled.set()

    def _wanted(self) -> "list[Plugin]":
        """In an order that does not depend on the machine. Runs in a thread."""
        try:
            found = sorted(self._find_plugins(), key=lambda each: (each.name, each.distribution))
        except (Exception, SystemExit):
            log.error(
                "plugins_not_found", exc_info=True, remedy="set plugins = false under [tools]"
            )
            return []
        if isinstance(self._only, bool):
            return found
        missing = sorted(set(self._only) - {plugin.name for plugin in found})
        if missing:
            remedy = "install what has them, or take them out of plugins under [tools]"
            log.warning("plugins_missing", entry_points=missing, remedy=remedy)
        return [plugin for plugin in found if plugin.name in self._only]

    async def _load_one(self, plugin: "Plugin") -> None:
        made: list[object] | None = None
        with move_on_after(self._load_s):
            try:
                made = await to_thread.run_sync(self._make, plugin, abandon_on_cancel=True)
            except (Exception, SystemExit) as error:
                words = excerpt(f"{type(error).__name__}: {error}", 500)
                _leave_out(plugin, f"it could not be loaded ({words})", has_trace=True)
                return
        if made is None:
            _leave_out(plugin, f"it was not loaded within {self._load_s:g} seconds")
            return
        added = [name for name in (self._add(plugin, each) for each in made) if name]
        log.info("plugin_loaded", **_who(plugin), tools=added)

    def _make(self, plugin: "Plugin") -> list[object]:
        """What the entry point gives: a tool, or a callable that makes one or several. Runs in a
        thread."""
        from koboshi.tools.guarded import is_tool

        made = plugin.load()
        if not is_tool(made):
            if not callable(made):
                raise TypeError("the entry point is neither a tool nor something that makes one")
            made = made(self._setting_of(plugin.name))
        if is_tool(made):
            return [made]
        if not isinstance(made, Iterable):
            raise TypeError(f"it made a {type(made).__name__}, not a tool")
        tools = list(made)
        if len(tools) > TOOLS_MAX:
            raise ValueError(f"it made {len(tools)} tools; at most {TOOLS_MAX} are taken")
        return tools

    def _add(self, plugin: "Plugin", made: object) -> str | None:
        """Take one tool in. Returns its name; None if it was left out."""
        from koboshi.tools.guarded import guarded, is_tool

        try:
            if not is_tool(made):
                raise ValueError(f"it made a {type(made).__name__}, not a tool")
            tool = guarded(cast(Tool, made), plugin.name, seconds_max=self._call_s)
        except (Exception, SystemExit) as error:
            _leave_out(plugin, excerpt(str(error), 500) or type(error).__name__)
            return None
        name = tool.spec.name
        if not is_name(name):
            _leave_out(
                plugin, f'"{excerpt(name)}" cannot be the name of a tool; use a-z, 0-9 and _'
            )
            return None
        if name in self._tools or self._is_taken(name):
            _leave_out(plugin, f'the name "{name}" is taken by another tool')
            return None
        self._tools[name] = tool
        return name


def _leave_out(plugin: "Plugin", reason: str, *, has_trace: bool = False) -> None:
    remedy = (
        f"repair or uninstall {plugin.distribution}, or set plugins under [tools] to false or to a "
        "list without it"
    )
    log.warning("plugin_left_out", **_who(plugin), reason=reason, remedy=remedy, exc_info=has_trace)


def _who(plugin: "Plugin") -> dict[str, str]:
    return {"distribution": plugin.distribution, "entry_point": plugin.name}
