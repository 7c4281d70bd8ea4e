"""One connection to a server, spoken through the `mcp` library. Imported when a server is first
connected to: the library takes most of a second to load."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import ClassVar, assert_never

import httpx2
from anyio import Event, create_task_group, move_on_after, sleep
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
    PaginatedRequestParams,
    Tool,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from koboshi import __version__
from koboshi.tools.mcp.endpoint import (
    Address,
    Declined,
    NotTaken,
    Program,
    ServerLimits,
    ServerSpec,
    SessionRefused,
    Unanswered,
)
from koboshi.tools.mcp.http import POSTED, CallPosted, open_address
from koboshi.tools.mcp.listing import TOOLS_MAX
from koboshi.tools.mcp.results import harmless
from koboshi.tools.mcp.stdio import open_program

RELISTEN_SECONDS = 60.0
PROBE_SECONDS = 10.0
"""For the server to say whether it knows our session."""
_PAGES_MAX = 50
_ANSWER: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(
    CallToolResult | InputRequiredResult
)


class Link:
    """One connection to a server, from the attempt to its end. It is not opened twice."""

    EXPECTED: ClassVar = (MCPError, ValidationError, httpx2.HTTPError, httpx2.InvalidURL, OSError)
    """What a connection can end with without a fault of ours."""

    def __init__(self, spec: ServerSpec, limits: ServerLimits) -> None:
        self._spec = spec
        self._limits = limits
        self._client: Client | None = None
        self._posted = CallPosted()
        self._news = Event()
        self._ended = Event()
        self._reason = ""

    @property
    def has_ended(self) -> bool:
        """Whether the server can certainly not be heard any more."""
        return self._ended.is_set()

    @property
    def reason(self) -> str:
        """Why there is no connection, as far as that shows; else empty."""
        status = self._posted.status
        if not self._reason and status is not None and self._posted.was_turned_away:
            return f"the server answers with status {status}"
        return self._reason

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Connected, until the block is left. Raises whatever the library does."""
        match self._spec.endpoint:
            case Program() as program:
                transport = open_program(program, self._limits, self._spec.name, self._end)
            case Address() as address:
                transport = open_address(address, self._limits, self._doubt)
            case endpoint:
                assert_never(endpoint)
        client = Client(
            transport,
            client_info=Implementation(name="koboshi", version=__version__),
            message_handler=self._take,
            cache=None,
        )
        POSTED.set(self._posted)
        async with client, create_task_group() as tasks:
            self._client = client
            tasks.start_soon(self._keep_subscribed)
            yield
            tasks.cancel_scope.cancel()

    async def list_tools(self) -> list[object]:
        """The server's tools, as JSON has them; not more than `TOOLS_MAX`."""
        found: list[Tool] = []
        cursor: str | None = None
        for _ in range(_PAGES_MAX):
            # By the session: the client keeps an answer for as long as the server likes.
            page = await self._open.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) >= TOOLS_MAX:
                break
        return [tool.model_dump(by_alias=True, mode="json") for tool in found[:TOOLS_MAX]]

    async def call(self, tool: str, arguments: Mapping[str, object]) -> object:
        """The server's answer to one call, as JSON has it. It is sent once, whatever happens.

        Raises NotTaken, SessionRefused, Declined or Unanswered.
        """
        posted = CallPosted()
        token = POSTED.set(posted)
        try:
            request = CallToolRequest(
                params=CallToolRequestParams(name=tool, arguments=dict(arguments))
            )
            # Not by `call_tool`: it checks the answer against a schema of the server's choice, and
            # an answer that does not fit is an answer all the same.
            answer = await self._open.session.send_request(request, _ANSWER)
        except MCPError as error:
            verdict = self._verdict(error, posted)
            if posted.may_be_forgotten and not await self._is_known(posted):
                self._end(f"the server does not know this session any more ({posted.status})")
                # After a status that some send when they have begun, the session is made anew as
                # well, but the call stays of unknown outcome.
                if isinstance(verdict, NotTaken):
                    raise SessionRefused(str(verdict)) from None
            raise verdict from None
        except ValidationError:
            raise Unanswered("the server answered with something that cannot be read") from None
        finally:
            POSTED.reset(token)
        if isinstance(answer, InputRequiredResult):
            raise Declined("the server asks for input that cannot be given here")
        return answer.model_dump(by_alias=True, mode="json")

    async def wait_for_news(self) -> bool:
        """Whether the list of tools has changed; False once the connection has ended."""
        await self._news.wait()
        self._news = Event()
        return not self.has_ended

    @property
    def _open(self) -> Client:
        assert self._client is not None, "a link is given out once it is open"
        return self._client

    def _verdict(self, error: MCPError, posted: CallPosted) -> NotTaken | Declined | Unanswered:
        """What a failed call came to. The library gives errors of its own the same form as those of
        a server, so what is not certain counts as unknown."""
        match self._spec.endpoint:
            case Program():
                # Without the connection having ended, the code is one of the server's own.
                is_lost = error.code == CONNECTION_CLOSED and self.has_ended
                is_answer = not is_lost and error.code != REQUEST_TIMEOUT
            case Address():
                if posted.was_turned_away:
                    self._doubt()
                    if posted.was_never_sent:
                        return NotTaken("the server cannot be reached")
                    words = f"the server turned it away with status {posted.status}"
                    return NotTaken(f"{words}: {harmless(error.message)}")
                lost = (CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT)
                is_answer = posted.is_answer and error.code not in lost
            case endpoint:
                assert_never(endpoint)
        if is_answer:
            return Declined(error.message)
        return Unanswered("the connection to the server was lost while it worked on this")

    async def _is_known(self, posted: CallPosted) -> bool:
        """Whether the server still knows our session, after it turned a call away with `posted`.

        404 says it, by the protocol. Any other status may be about the call alone, and a session
        may hold what the person would miss, an open page for instance. So the server is asked for
        its tools: one that turns that away as well does not know us.
        """
        if posted.status == 404:
            return False
        probe = CallPosted()
        token = POSTED.set(probe)
        try:
            with move_on_after(PROBE_SECONDS), suppress(MCPError, ValidationError):
                await self._open.session.list_tools(params=PaginatedRequestParams())
        finally:
            POSTED.reset(token)
        return probe.status is not None and not probe.may_be_forgotten

    def _doubt(self) -> None:
        """Have the list read again: it shows whether the server is there, and knows us."""
        self._news.set()

    def _end(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._ended.set()
        self._news.set()

    async def _take(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._news.set()

    async def _keep_subscribed(self) -> None:
        """Hear of changes to the list, where that has to be asked for. Without it, the list is
        read at each connection."""
        client = self._open
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (
            tools and tools.list_changed
        ):
            return
        while True:
            with suppress(MCPError, SubscriptionLost, TimeoutError):
                async with client.listen(tools_list_changed=True) as changes:
                    # What changed before the server listens to us is not told again.
                    self._news.set()
                    async for _ in changes:
                        self._news.set()
            await sleep(RELISTEN_SECONDS)
