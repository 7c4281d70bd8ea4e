"""One server of the configuration: kept connected, asked for its tools, called."""

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import structlog
from anyio import CancelScope, Event, current_time, fail_after, move_on_after, sleep, to_thread

from koboshi.ports.tool import Tool, ToolFailed
from koboshi.tools.mcp.endpoint import (
    NotTaken,
    Program,
    ServerLimits,
    ServerSpec,
    SessionRefused,
    Unanswered,
)
from koboshi.tools.mcp.hints import effect_of, need_of
from koboshi.tools.mcp.listing import ListedTool, Unlisted, listed_tool
from koboshi.tools.mcp.naming import names_of
from koboshi.tools.mcp.results import harmless
from koboshi.tools.mcp.tool import McpTool

if TYPE_CHECKING:
    from koboshi.tools.mcp.link import Link

log = structlog.get_logger()


class McpServer:
    """A server, and what it has shown of itself. Nothing here waits for it without a limit."""

    def __init__(
        self,
        spec: ServerSpec,
        limits: ServerLimits = ServerLimits(),  # noqa: B008  (frozen)
        *,
        servers: Collection[str] = (),
        taken: Collection[str] = (),
    ) -> None:
        self.name = spec.name
        self._spec = spec
        self._limits = limits
        self._servers = servers
        self._taken = taken
        self._link: Link | None = None
        self._tools: dict[str, McpTool] = {}
        self._raws: list[object] = []
        self._has_listed = False
        self._was_connected = False
        self._reason = "it is still being connected to"
        self._changed = Event()
        self._waiting = 0
        self._wanted = Event()
        self._settled = Event()

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """Its tools as it listed them last. They stay while it is away: a model that is told of
        other tools at every step is confused, and pays more."""
        return tuple(self._tools.values())

    @property
    def has_listed(self) -> bool:
        """Whether it has been there since the start."""
        return self._has_listed

    @property
    def is_connected(self) -> bool:
        return self._link is not None and not self._link.has_ended

    @property
    def reason(self) -> str:
        """Why it is not connected, in words."""
        return self._reason

    def find(self, name: str) -> McpTool | None:
        return self._tools.get(name)

    async def reach(self, name: str) -> Tool | None:
        """The tool of that name, when the server is there; None if it has none. Raises ToolFailed,
        after a while, if it is not."""
        await self._wait_connected()
        if not self.is_connected:
            words = f"the server {self.name} is not connected ({self._reason})"
            raise ToolFailed(f"it was not started: {words}")
        return self.find(name)

    async def _wait_connected(self) -> None:
        """Wait until it is there, not for ever."""
        self._waiting += 1
        self._wanted.set()
        try:
            with move_on_after(self._limits.reach_s):
                while not self.is_connected:
                    await self._changed.wait()
        finally:
            self._waiting -= 1

    async def settle(self) -> None:
        """Wait until it has come or has failed to once; after the first long wait, no longer."""
        if not self._settled.is_set():
            with move_on_after(self._limits.settle_s):
                await self._settled.wait()
            self._settled.set()

    async def keep_connected(self) -> None:
        """Connect, and again whenever the connection is lost. Ends only by being cancelled."""
        limits = self._limits
        wait_s = limits.retry_s_min
        while True:
            began, self._was_connected = current_time(), False
            reason = self._with_remedy(await self._connect_once())
            self._tell(reason, is_news=self._was_connected or reason != self._reason)
            self._reason = reason
            self._settled.set()
            if self._was_connected and current_time() - began >= limits.retry_s_max:
                wait_s = limits.retry_s_min
            await self._pause(wait_s)
            wait_s = min(2 * wait_s, limits.retry_s_max)

    def _with_remedy(self, reason: str) -> str:
        """A program that never answered may miss something inside its boundary."""
        match self._spec.endpoint:
            case Program(remedy=remedy) if remedy and not self._was_connected:
                return f"{reason}. {remedy}"
            case _:
                return reason

    async def _connect_once(self) -> str:
        """Be connected for as long as it goes. Returns why it goes no longer."""
        link: Link | None = None
        try:
            link = await to_thread.run_sync(self._new_link, abandon_on_cancel=True)
            return await self._live(link)
        except Exception as error:  # a library and a foreign program: anything may come
            cause = cause_of(error)
            if link is None or not isinstance(cause, link.EXPECTED):
                log.error("mcp_connection_broke", server=self.name, exc_info=True)
            return (link.reason if link else "") or words_of(cause)

    def _new_link(self) -> "Link":
        # In a thread: loading the library takes most of a second, and messages have to be accepted
        # meanwhile.
        from koboshi.tools.mcp.link import Link

        return Link(self._spec, self._limits)

    async def _live(self, link: "Link") -> str:
        seconds = self._limits.connect_s
        with CancelScope(deadline=current_time() + seconds) as scope:
            async with link.opened():
                self._publish(await link.list_tools())
                scope.deadline = math.inf
                self._announce(link)
                try:
                    while await link.wait_for_news():
                        with fail_after(seconds):
                            self._publish(await link.list_tools())
                        # A server that has news all the time is not asked all the time.
                        await sleep(self._limits.retry_s_min)
                finally:
                    self._link = None
            return link.reason
        return f"it did not answer within {seconds:g} seconds"

    async def call(self, tool: str, arguments: Mapping[str, object]) -> object:
        """The server's answer to a call. Raises NotTaken, Declined or Unanswered.

        A call that was turned away because the server does not know our session is sent once more,
        in a new session, if the server still describes the tool in the same words.
        """
        known = self._listed(tool)
        try:
            return await self._call_once(tool, arguments)
        except SessionRefused as refused:
            log.warning("mcp_session_refused", server=self.name, reason=str(refused))
            await self._wait_connected()
            if not self.is_connected or self._listed(tool) != known:
                raise
        return await self._call_once(tool, arguments)

    def _listed(self, tool: str) -> ListedTool | None:
        found = (each.listed for each in self._tools.values() if each.listed.name == tool)
        return next(found, None)

    async def _call_once(self, tool: str, arguments: Mapping[str, object]) -> object:
        link = self._link
        if link is None or link.has_ended:
            raise NotTaken(f"the server {self.name} is not connected ({self._reason})")
        seconds = self._spec.timeout_seconds
        with move_on_after(seconds):
            return await link.call(tool, arguments)
        raise Unanswered(f"the server did not answer within {seconds:g} seconds")

    def _publish(self, raws: list[object]) -> None:
        if self._has_listed and raws == self._raws:
            return
        self._raws = raws
        listed = self._usable(raws)
        names = names_of(self.name, listed, servers=self._servers, taken=self._taken)
        self._tools = {
            names[tool.name]: self._tool(names[tool.name], tool) for tool in listed.values()
        }
        self._has_listed = True
        missing = set(self._spec.only or ()) - listed.keys()
        if missing:
            log.warning("mcp_tools_missing", server=self.name, tools=sorted(missing))

    def _usable(self, raws: list[object]) -> dict[str, ListedTool]:
        listed: dict[str, ListedTool] = {}
        for raw in raws:
            try:
                tool = listed_tool(raw)
            except Unlisted as error:
                log.warning("mcp_tool_ignored", server=self.name, reason=str(error))
                continue
            if self._spec.only is None or tool.name in self._spec.only:
                listed.setdefault(tool.name, tool)
        return listed

    def _tool(self, name: str, listed: ListedTool) -> McpTool:
        spec, hints = self._spec, listed.hints
        return McpTool(
            name=name,
            server=self.name,
            listed=listed,
            effect=effect_of(hints, is_trusted=spec.trusts_hints),
            need=need_of(hints, spec.approval, is_trusted=spec.trusts_hints),
            send=self.call,
        )

    def _announce(self, link: "Link") -> None:
        self._link, self._was_connected = link, True
        self._settled.set()
        self._wake()
        log.info("mcp_connected", server=self.name, tools=len(self._tools))

    def _tell(self, reason: str, *, is_news: bool) -> None:
        say = log.warning if is_news else log.debug
        say("mcp_not_connected", server=self.name, reason=reason)

    async def _pause(self, seconds: float) -> None:
        """Wait before the next attempt; a call that waits for the server makes it shorter."""
        at_least = min(seconds, self._limits.retry_s_min)
        await sleep(at_least)
        if self._waiting:
            return
        self._wanted = Event()
        with move_on_after(seconds - at_least):
            await self._wanted.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = Event()


def cause_of(error: BaseException) -> BaseException:
    """The error that is in a group of groups, the first one if there are several."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def words_of(error: BaseException) -> str:
    """What went wrong, in one line."""
    # The lines that follow quote what a server sent.
    said = harmless(str(error).partition("\n")[0], 300)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
