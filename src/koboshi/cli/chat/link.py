"""The chat client's connection: it comes back by itself, and says so once."""

import math
from collections.abc import Awaitable, Callable
from urllib.parse import quote

import httpx2
import msgspec
from anyio import CancelScope, Event, current_time, sleep

from koboshi.channels.web.chat_events import LINES, Line
from koboshi.channels.web.codec import Accepted, Failure, Post, Standing
from koboshi.cli.chat.proven import ProvenTransport, ProvingBackend
from koboshi.domain.approver import APPROVAL_NEEDS_PERSON

LOST = "connection lost, reconnecting…"
BACK = "back"
CONNECTED = "connected"
NOT_STORED = "the gateway has not stored this yet, trying again; `koboshi status` says why"

NO_GATEWAY = "what answers there is no koboshi gateway (status {status})"

EVENT_BYTES_MAX = 16_000_000
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

NOT_OURS = (
    "what listens at {url} has not proven to be the gateway of this home: it is another program, "
    "or has another token; nothing was sent to it"
)

See = Callable[[str, Line, int], None]
FindUrl = Callable[[], Awaitable[str | None]]
"""Asks the gateway itself where it listens; None while none runs."""
AnswerApproval = Callable[[str, Post], Awaitable[Accepted | str]]
"""Has an answer to an approval stored as that of a person at the gateway's own machine."""


class ChatOver(Exception):
    """The conversation cannot go on: say why, and exit with the code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class NotThere(Exception):
    """There is no gateway at the address, or it cannot serve us now."""


class ChatLink:
    """One chat of one gateway, over HTTP.

    `read_token` gives the token, or None while there is none; `start` is where to begin the first
    time: `recent` or `now`. A pause before each new try is taken from `pauses_s`, the last one for
    ever, or until no gateway was there for `absence_s_max`.
    """

    def __init__(
        self,
        *,
        url: str,
        chat: str,
        thread: str,
        start: str,
        read_token: Callable[[], str | None],
        say: Callable[[str], None],
        pauses_s: tuple[float, ...] = (0.1, 0.2, 0.5, 1.0),
        silence_s: float = 45.0,
        absence_s_max: float | None = None,
        find_url: FindUrl | None = None,
        answer_approval: AnswerApproval | None = None,
    ) -> None:
        self._url = url
        self._chat = chat
        self._find_url = find_url
        self._answer_approval = answer_approval
        self._thread = thread
        self._start = start
        self._read_token = read_token
        self._say = say
        self._pauses_s = pauses_s
        self._connecting = ProvingBackend(read_token, lambda: self._url.startswith("https:"))
        self._client = httpx2.AsyncClient(
            transport=ProvenTransport(self._connecting),
            trust_env=False,
            timeout=httpx2.Timeout(30.0, connect=5.0),
        )
        self._stream_timeout = httpx2.Timeout(silence_s, connect=5.0)
        self._place: int | None = None
        self._came_up = Event()
        self._has_been_up = False
        self._has_told = False
        self._has_met_stranger = False
        self._absence_s_max = absence_s_max
        self._patience: CancelScope | None = None

    async def __aenter__(self) -> "ChatLink":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.aclose()

    @property
    def url(self) -> str:
        return self._url

    @property
    def _base(self) -> str:
        return f"{self._url.rstrip('/')}/api/v1/sessions/{quote(self._chat, safe='')}"

    @property
    def is_up(self) -> bool:
        return self._came_up.is_set()

    async def follow(self, see: See) -> None:
        """Tell `see` of every event, each once, across all reconnections, until cancelled.

        Raises ChatOver when the gateway does not want us, or none has been there for too long.
        """
        tries, absent_since = 0, current_time()
        while True:
            with CancelScope(deadline=self._until(absent_since)) as patience:
                self._patience = patience
                try:
                    await self._follow_once(see)
                except (httpx2.TransportError, NotThere):
                    self._note_stranger()
                    tries += 1
            if self.is_up:
                tries, absent_since = 0, current_time()
            self._lose()
            if current_time() >= self._until(absent_since):
                raise ChatOver(self._absence(), 1)
            await sleep(self._pause_s(tries))

    def _until(self, absent_since: float) -> float:
        """When the wait for a gateway ends."""
        return math.inf if self._absence_s_max is None else absent_since + self._absence_s_max

    def _absence(self) -> str:
        return (
            f"no gateway answered {self._where} within {self._absence_s_max:g} s; start one with: "
            "koboshi run (is one running? koboshi status)"
        )

    def _note_stranger(self) -> None:
        """Something else listens there. Raises ChatOver where the person named the address."""
        if not self._connecting.has_met_stranger:
            return
        if self._find_url is None:
            raise ChatOver(NOT_OURS.format(url=self._url), 78)
        if not self._has_met_stranger:
            self._has_met_stranger = True
            self._say(NOT_OURS.format(url=self._url))

    async def _follow_once(self, see: See) -> None:
        if self._find_url is not None:
            found = await self._find_url()
            if found is None:
                raise NotThere
            self._url = found
        place = {} if self._place is None else {"Last-Event-ID": str(self._place)}
        async with self._client.stream(
            "GET",
            f"{self._base}/events",
            params={"thread": self._thread, "from": self._start},
            headers=self._headers() | place,
            timeout=self._stream_timeout,
        ) as response:
            if response.status_code != 200:
                await response.aread()
                raise _complaint(response)
            async for event in httpx2.EventSource(response, EVENT_BYTES_MAX):
                self._take(event, see)
                self._greet()

    def _take(self, event: httpx2.ServerSentEvent, see: See) -> None:
        """Pass the event on, then remember the place. Kinds that are not known are from a newer
        gateway, for newer clients."""
        try:
            place = int(event.id or 0)
            if event.data and event.event in LINES:
                line = msgspec.json.decode(event.data, type=LINES[event.event])
                see(event.event, line, place)
        except (ValueError, *UNREADABLE) as error:
            words = "the gateway says something that this client does not understand; update it"
            raise ChatOver(f"{words} ({error})", 78) from error
        self._place = place

    async def post(self, key: str, post: Post) -> Accepted | str:
        """Have a message stored, however long that takes: always the same key, so that it is
        stored once. Returns the words of the gateway if it refuses. Raises ChatOver."""
        tries = 0
        while True:
            await self._came_up.wait()
            try:
                response = await self._client.post(
                    f"{self._base}/messages",
                    content=msgspec.json.encode(post),
                    headers=self._headers() | {"Idempotency-Key": key},
                )
                if response.status_code == 202:
                    return _accepted_in(response)
                if _kind_of(response) == APPROVAL_NEEDS_PERSON and self._answer_approval:
                    return await self._answer_approval(key, post)
                problem = _complaint(response)
                if isinstance(problem, NotThere) or response.status_code == 401:
                    raise problem
                return problem.message
            except NotThere:
                tries += 1
                if tries == 1:
                    self._say(NOT_STORED)
            except httpx2.TransportError:
                # It is unknown whether it arrived; the key makes it safe to ask again.
                tries += 1
            await sleep(self._pause_s(tries))

    async def standing(self, message: str) -> Standing | None:
        """What has become of a message; None if that cannot be learned now."""
        try:
            response = await self._client.get(
                f"{self._base}/messages/{message}", headers=self._headers()
            )
        except (httpx2.TransportError, NotThere):
            return None
        if response.status_code != 200:
            return None
        try:
            return msgspec.json.decode(response.content, type=Standing)
        except UNREADABLE:
            return None

    def _headers(self) -> dict[str, str]:
        token = self._read_token()
        if token is None:
            raise NotThere
        return {"Authorization": f"Bearer {token}"}

    def _greet(self) -> None:
        if not self.is_up:
            if self._patience is not None:
                self._patience.deadline = math.inf
            self._came_up.set()
            if self._has_been_up:
                self._say(BACK)
            elif self._has_told:
                self._say(CONNECTED)
            self._has_been_up = True

    def _lose(self) -> None:
        if self.is_up:
            self._came_up = Event()
            self._say(LOST)
        elif not self._has_been_up and not self._has_told:
            self._has_told = True
            self._say(f"no gateway {self._where} yet; start one with: koboshi run")

    @property
    def _where(self) -> str:
        return f"at {self._url}" if self._url else "in this home"

    def _pause_s(self, tries: int) -> float:
        return self._pauses_s[min(max(tries - 1, 0), len(self._pauses_s) - 1)]


def _accepted_in(response: httpx2.Response) -> Accepted:
    """Raises ChatOver if it is nothing that we would say."""
    try:
        return msgspec.json.decode(response.content, type=Accepted)
    except UNREADABLE as error:
        raise ChatOver(NO_GATEWAY.format(status=response.status_code), 78) from error


def _kind_of(response: httpx2.Response) -> str:
    """What a refusal is called; empty if it is none of ours."""
    try:
        return msgspec.json.decode(response.content, type=Failure).error.type
    except UNREADABLE:
        return ""


def _complaint(response: httpx2.Response) -> ChatOver | NotThere:
    """What an answer means that is not the hoped-for one."""
    if response.status_code in (408, 429) or response.status_code >= 500:
        return NotThere()
    if response.status_code == 401:
        return ChatOver("the gateway does not accept this token; is this the right home?", 78)
    try:
        words = msgspec.json.decode(response.content, type=Failure).error.message
    except UNREADABLE:
        words = NO_GATEWAY.format(status=response.status_code)
    return ChatOver(words, 78)
