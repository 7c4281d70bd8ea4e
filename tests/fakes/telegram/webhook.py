"""Updates pushed to the bot: one after the other, each again until it is acknowledged."""

import asyncio
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.fakes.telegram.errors import bad_request
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.state import JSON
from tests.fakes.telegram.updates import Waiting
from tests.fakes.telegram.world import World

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
ANSWER_S_MAX = 60.0
_SECRET = re.compile(r"[A-Za-z0-9_-]{0,256}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """One attempt to hand over an update. Status 0: no answer came."""

    update_id: int
    status: int


@dataclass(slots=True, kw_only=True)
class Hook:
    url: str
    secret: str
    max_connections: int
    last_error: str = ""
    last_error_at: int = 0


@dataclass(slots=True)
class Webhook:
    """The webhook of the bot, if it has set one."""

    world: World
    first_wait_s: float = 0.02
    wait_s_max: float = 1.0
    hook: Hook | None = None
    pushes: list[Push] = field(default_factory=list)
    has_news: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    def set(self, params: Params) -> bool:
        url = params.text("url")
        if not url:
            return self.delete(params)
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            bad_request("bad webhook: An HTTPS URL must be provided for webhook")
        secret = params.text("secret_token")
        if not _SECRET.fullmatch(secret):
            bad_request("secret token contains unallowed characters")
        allow(self.world, params)
        self._drop_if_asked(params)
        self.stop()
        self.hook = Hook(
            url=url, secret=secret, max_connections=params.integer("max_connections", 40)
        )
        # Not a task group: it lives until another request takes the webhook away.
        self._task = asyncio.get_running_loop().create_task(self._push_all(self.hook))
        return True

    def delete(self, params: Params) -> bool:
        self._drop_if_asked(params)
        self.stop()
        self.hook = None
        return True

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def as_json(self) -> JSON:
        hook = self.hook
        found: JSON = {
            "url": hook.url if hook else "",
            "has_custom_certificate": False,
            "pending_update_count": len(self.world.updates),
        }
        if hook is not None:
            found["max_connections"] = hook.max_connections
            found["ip_address"] = "127.0.0.1"
            if hook.last_error:
                found["last_error_date"] = hook.last_error_at
                found["last_error_message"] = hook.last_error
        if self.world.updates.allowed:
            found["allowed_updates"] = list(self.world.updates.allowed)
        return found

    def _drop_if_asked(self, params: Params) -> None:
        if params.boolean("drop_pending_updates"):
            self.world.updates.drop_all()

    async def _push_all(self, hook: Hook) -> None:
        wait_s = self.first_wait_s
        while True:
            waiting = self.world.updates.first()
            if waiting is None:
                self.has_news.clear()
                await self.has_news.wait()
                continue
            status = await _push(hook, waiting)
            self.pushes.append(Push(update_id=waiting.update_id, status=status))
            if 200 <= status < 300:
                self.world.updates.settle(waiting)
                wait_s = self.first_wait_s
                continue
            hook.last_error_at = self.world.now
            hook.last_error = (
                f"Wrong response from the webhook: {status}" if status else "Connection refused"
            )
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, self.wait_s_max)


def allow(world: World, params: Params) -> None:
    """What the bot wants to be told from now on; it stays as it was if nothing is said."""
    allowed = params.nested("allowed_updates", "allowed_updates")
    if allowed is not None:
        world.updates.allowed = tuple(allowed)


async def _push(hook: Hook, waiting: Waiting) -> int:
    """The status that the bot answered with; 0 if it did not. Nothing leaves the loopback."""
    parts = urlsplit(hook.url)
    if parts.scheme != "http" or parts.hostname not in LOOPBACK:
        return 0
    secret = f"X-Telegram-Bot-Api-Secret-Token: {hook.secret}\r\n" if hook.secret else ""
    head = (
        f"POST {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\n{secret}"
        f"Content-Type: application/json\r\nContent-Length: {len(waiting.body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
            try:
                writer.write(head.encode("latin-1") + waiting.body)
                return int((await reader.readline()).split(b" ")[1])
            finally:
                writer.close()
    except (OSError, IndexError, ValueError):
        return 0
