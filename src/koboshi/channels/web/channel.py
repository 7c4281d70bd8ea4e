"""The web channel: people reach us by HTTP, and follow what happens in the journal.

The journal is this platform's own log. So what is stored is delivered, and there is no send whose
outcome could be unknown.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from socket import socket

import structlog
from anyio import Event, create_task_group, move_on_after, sleep, sleep_forever, to_thread
from anyio.abc import TaskGroup

from koboshi.channels.common.held_listeners import HeldListeners
from koboshi.channels.common.listening import CannotListen, listen, web_place
from koboshi.channels.common.serving import EmbeddedServer, one_of
from koboshi.channels.web.api import Api, no_metrics
from koboshi.channels.web.codec import Accepted, Post, Unacceptable
from koboshi.channels.web.follow import Followers
from koboshi.channels.web.health import Health
from koboshi.channels.web.limits import WebLimits
from koboshi.channels.web.login import Logins
from koboshi.channels.web.names import Names
from koboshi.channels.web.pages import NO_PAGES, Pages
from koboshi.channels.web.uploading import Uploading
from koboshi.channels.web.uploads import Uploads
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import UPLOADED, Attachment
from koboshi.domain.hearing import NOT_LISTENING, Hearing
from koboshi.domain.ids import ChannelName, TurnId
from koboshi.domain.outbox import Delivery, Near, SendOutcome, Sent
from koboshi.domain.route import Route
from koboshi.domain.splitting import split_text
from koboshi.ports.browsers import Browsers
from koboshi.ports.channel import Abilities, Accept, Inbound, Receipt
from koboshi.ports.clock import Clock
from koboshi.ports.files import NO_SHELF, FileShelf
from koboshi.ports.views import Views
from koboshi.ports.wakeups import OUTBOX, Wakeups

log = structlog.get_logger()

SWEEP_SECONDS = 3_600.0


class WebChannel:
    def __init__(
        self,
        *,
        name: ChannelName,
        names: Names,
        port: int,
        token: str,
        browsers: Browsers,
        views: Views,
        wakeups: Wakeups,
        health: Health,
        clock: Clock,
        limits: WebLimits = WebLimits(),  # noqa: B008  (frozen)
        metrics: Callable[[], Awaitable[str]] = no_metrics,
        on_refused: Callable[[], None] = lambda: None,
        pages: Pages = NO_PAGES,
        home: Path | None = None,
        listeners: HeldListeners | None = None,
        is_shared: bool = False,
        shelf: FileShelf = NO_SHELF,
    ) -> None:
        if not token:
            raise ValueError(f'channel "{name}" needs a token')
        self._name = name
        self._names = names
        self._port = port
        self._logins = Logins(
            token=token, clock=clock, names=names, browsers=browsers, shares_codes=is_shared
        )
        self._pages = pages
        self._home = home
        self._uploads = _uploads_of(home, limits, shelf)
        self._listeners = listeners
        self._shelf = shelf
        self._views = views
        self._wakeups = wakeups
        self._health = health
        self._clock = clock
        self._limits = limits
        self._metrics = metrics
        self._on_refused = on_refused
        self._followers = Followers(limits.followers_max)
        self._bound_port: int | None = None
        self._server: EmbeddedServer | None = None
        self._serving: Api | None = None
        self._is_listening = Event()
        self._absence = "not listening"

    @property
    def name(self) -> ChannelName:
        return self._name

    @property
    def account(self) -> str:
        return ""

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            threads=True,
            typing=True,
            drafts=True,
            idempotent_send=True,
            finds_sent=True,
            interactive=True,
            # As many as the longest stored answer has: a page shows any length.
            parts_max=64,
            # People fetch them from here.
            takes_files=self._home is not None,
        )

    @property
    def bound_port(self) -> int | None:
        """The port it listens on; None while it does not."""
        return self._bound_port

    @property
    def trouble(self) -> str | None:
        """Why the channel cannot be reached now; None if it can."""
        if self._server is None:
            return self._absence
        return self._server.trouble

    @property
    def hearing(self) -> Hearing:
        return NOT_LISTENING

    @property
    def address(self) -> str | None:
        """Where it answers on this machine; None while it does not."""
        if self._bound_port is None:
            return None
        return f"http://{self._names.local_host}:{self._bound_port}"

    def login_link(self) -> str | None:
        """An address that lets one browser in, once; None while nothing would answer there."""
        if self.address is None:
            return None
        address = self._names.public_url.rstrip("/") or self.address
        return f"{address}/login#{self._logins.make_code()}"

    async def share_codes(self) -> None:
        """Have the codes of links that were made stored, where other gateways may redeem them."""
        await self._logins.share()

    async def shared_link(self) -> str | None:
        """The same, good at any gateway of the store before it is told."""
        link = self.login_link()
        await self._logins.share()
        return link

    async def say(self, chat: str, key: str, post: Post) -> Accepted:
        """Have a message stored that a person wrote at the terminal. Raises Unacceptable."""
        if self._serving is None:
            raise Unacceptable(503, "not-listening", f"{self._name}: {self._absence}")
        return await self._serving.say(chat, key, post)

    async def listening(self) -> int:
        """Wait until it serves. Returns the port."""
        while self._bound_port is None:
            await self._is_listening.wait()
        return self._bound_port

    async def receive(self, cursor: str | None, accept: Accept) -> None:  # noqa: ARG002
        """Serve until cancelled. There is no cursor: clients post, and repeat with the same key
        what was not acknowledged.

        Raises CannotListen where the address cannot be had, and whatever `accept` raised.
        """
        with await self._listen() as listener:
            try:
                await self._serve(listener, accept)
            except ExceptionGroup as group:
                raise one_of(group) from None
            finally:
                self._bound_port = self._server = self._serving = None
                if self._is_listening.is_set():
                    self._is_listening = Event()

    def split(self, text: str) -> tuple[str, ...]:
        return split_text(text, self._limits.text_max)

    async def pace(self, route: Route) -> None:
        """At once: the web sends no notifications, so it needs no pause."""

    async def send(self, delivery: Delivery) -> SendOutcome:
        """Delivered, because it is stored: followers see the line that this outcome writes."""
        return Sent(platform_id=delivery.send_key)

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:  # noqa: ARG002
        return Sent(platform_id=delivery.send_key)

    async def typing(self, route: Route) -> None:
        self._followers.show_typing(route, self._clock.now_ms())

    async def edit(self, route: Route, platform_id: str, text: str) -> None:
        """Nothing: what the journal has told stays told."""

    async def draft(self, route: Route, turn_id: TurnId, text: str) -> None:
        self._followers.show_draft(route, turn_id, text, self._clock.now_ms())

    async def fetch(self, attachment: Attachment, path: Path) -> None:
        if self._uploads is None:
            raise FileNotHad("this gateway takes no files")
        await self._uploads.fetch(attachment.reference)
        await to_thread.run_sync(self._uploads.bring, attachment, path)

    async def _listen(self) -> socket:
        is_public = bool(self._names.public_url)
        place = web_place(self._name, self._names.host, self._port, is_public=is_public)
        try:
            listener = await listen(place, self._listeners)
        except CannotListen as error:
            self._absence = str(error)
            raise
        self._absence = "not listening"
        return listener

    async def _serve(self, listener: socket, accept: Accept) -> None:
        followers = self._followers = Followers(self._limits.followers_max)
        async with create_task_group() as tasks:
            store = partial(self._store, accept=accept, tasks=tasks)
            serving = self._serving = self._api(followers, store)
            server = self._server = EmbeddedServer(
                serving.app(),
                connections_max=self._limits.connections_max,
                goodbye_s=self._limits.goodbye_s,
                patience=self._limits.patience,
            )
            try:
                tasks.start_soon(server.run_until_told, listener)
                look = partial(followers.stir, self._views, self._name, self._wakeups)
                tasks.start_soon(look, self._limits.poll_s, self._limits.lag_s)
                tasks.start_soon(self._keep_sweeping)
                await server.is_serving.wait()
                self._bound_port = listener.getsockname()[1]
                self._is_listening.set()
                self._wakeups.hint(OUTBOX)
                await sleep_forever()
            finally:
                followers.dismiss()
                server.should_exit = True

    async def _keep_sweeping(self) -> None:
        """Remove uploads that no message took, now and every hour, until cancelled."""
        while self._uploads is not None:
            try:
                await self._uploads.sweep(self._clock.now_ms() * 1_000_000)
            except OSError as error:
                log.warning("sweep_failed", folder=UPLOADED, error=str(error))
            await sleep(SWEEP_SECONDS)

    def _api(self, followers: Followers, store: Callable[[Inbound], Awaitable[Receipt]]) -> Api:
        return Api(
            channel=self._name,
            names=self._names,
            logins=self._logins,
            pages=self._pages,
            views=self._views,
            health=self._health,
            clock=self._clock,
            limits=self._limits,
            followers=followers,
            store=store,
            metrics=self._metrics,
            on_refused=self._on_refused,
            home=self._home,
            shelf=self._shelf,
            uploading=self._uploading(),
        )

    def _uploading(self) -> Uploading | None:
        if self._uploads is None:
            return None
        return Uploading(uploads=self._uploads, channel=self._name, limits=self._limits)

    async def _store(self, inbound: Inbound, *, accept: Accept, tasks: TaskGroup) -> Receipt:
        """Have one message committed. Raises Unacceptable where that is not known in time.

        The commit is a task of the channel, not of the request: it goes on when the client has
        gone or the time is up, and an error in it ends the channel, not a connection.
        """
        receipts: list[Receipt] = []
        is_over = Event()

        async def commit() -> None:
            try:
                receipts.extend(await accept([inbound]))
            finally:
                is_over.set()

        tasks.start_soon(commit)
        with move_on_after(self._limits.store_s):
            await is_over.wait()
        if not receipts:
            message = (
                "it is not known whether this message is stored; "
                "send it again with the same Idempotency-Key"
            )
            raise Unacceptable(503, "not-known", message, retry_after_s=1)
        return receipts[0]


def _uploads_of(home: Path | None, limits: WebLimits, shelf: FileShelf) -> Uploads | None:
    """Without a home there is no room for files."""
    if home is None:
        return None
    return Uploads(home=home, bytes_max=limits.file_bytes_max, shelf=shelf)
