"""Updates from Telegram into the inbox. What was not stored is not acknowledged, and comes again.

Theory of operation. The platform keeps an update until it is acknowledged, and brings it again
until then. So every update is at each moment at the platform, in our inbox, or in both, and a crash
moves none of them: what is in both comes again and is a duplicate key.

* Long polling: asking for the updates from a number on is what acknowledges those before it. So
  the next question is asked after the commit that holds the last batch, and how far we are (the
  cursor) is part of that commit.
* Webhook: a call is answered after the commit that holds its update. Any other answer, or none,
  makes the platform call again.
* Nothing that waits at the platform is ever dropped, at a start or a change of the way in.
* An update that cannot be read is stored as it came and passed over, so that one update cannot
  stop those behind it.
* Numbers are good for some days. After a long silence the platform counts from somewhere else, so
  the cursor carries the time at which it was taken.
* `trouble` is None after an answer of the platform, and says why nothing comes in after a failure.
  Deliveries are not repeated while it is set.
"""

import hmac
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256

import msgspec
import structlog
from anyio import CapacityLimiter, create_task_group, current_time, sleep
from anyio.abc import TaskGroup

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.common.reachable import Reachable
from koboshi.channels.telegram.best_effort import BestEffort
from koboshi.channels.telegram.client import BotApi
from koboshi.channels.telegram.codec import (
    KINDS,
    Read,
    UpdateReader,
    batch_of,
    next_offset,
    pieces_of,
)
from koboshi.channels.telegram.options import TelegramOptions
from koboshi.channels.telegram.outcomes import TOO_MANY, UNAUTHORIZED, wait_ms_of
from koboshi.channels.telegram.types import BotAnswer, Parameters, User
from koboshi.channels.telegram.webhook import Webhook
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.hearing import Hearing
from koboshi.domain.inbox import EntryState
from koboshi.ports.channel import Accept, Receipt
from koboshi.ports.clock import Clock

log = structlog.get_logger()

POLL_SECONDS = 50
ANSWER_SECONDS = 15
"""Beyond the poll itself."""
BATCH_MAX = 100
NOTHING_NEW_SECONDS = 1.0
"""A platform that brings the same again and again is not asked without end."""
EMPTY_SECONDS = (0.05, 1.0)
"""The shortest time from one question to the next while nothing comes, at first and in the end. A
server that does not hold the question open would else be asked as fast as it can answer."""
CONFLICT = 409
CONFLICT_SECONDS = (2.0, 5.0, 15.0, 30.0, 60.0)
NUMBERS_GOOD_MS = 6 * 86_400_000
"""After a week without updates the platform counts from somewhere else."""
ASIDES_MAX = 8
SEEN = "👀"
"""Shown on a message that has to wait for its turn."""


class _Whole(msgspec.Struct, frozen=True):
    """An answer whose updates are not looked at yet: one that is broken must not break the rest."""

    ok: bool = False
    result: msgspec.Raw = msgspec.Raw(b"[]")
    error_code: int = 0
    description: str = ""
    parameters: Parameters | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """What was answered, and the updates in it, each as it came."""

    answer: BotAnswer
    updates: Sequence[bytes] = ()


_whole = msgspec.json.Decoder(_Whole)


class EmptyFloor:
    """How long to wait behind an answer without updates. Behind an answer that was held open for
    long enough there is no wait: what is written in that time would come late."""

    def __init__(self) -> None:
        self._seconds, self._seconds_max = EMPTY_SECONDS
        self._began = 0.0

    def begin(self) -> None:
        """A question is asked."""
        self._began = current_time()

    def rest_s(self) -> float:
        """The answer was empty."""
        rest = self._began + self._seconds - current_time()
        if rest <= 0:
            self._seconds = EMPTY_SECONDS[0]
            return 0.0
        self._seconds = min(2 * self._seconds, self._seconds_max)
        return rest


@dataclass(slots=True, kw_only=True)
class Receiving(Reachable):
    api: BotApi
    options: TelegramOptions
    clock: Clock
    passing: BestEffort
    heard_ms: int | None = None
    """When the platform last answered or called."""
    _asides: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(ASIDES_MAX))

    @property
    def hearing(self) -> Hearing:
        return Hearing(heard_ms=self.heard_ms)

    async def run(self, cursor: str | None, accept: Accept) -> None:
        """Receive until cancelled."""
        with self.connecting():
            await self._run(cursor, accept)

    async def _run(self, cursor: str | None, accept: Accept) -> None:
        reader = await self._introduce()
        await accept([])
        async with create_task_group() as tasks:
            if self.options.webhook_url:
                await self._be_told(accept, reader, tasks)
            else:
                await self._poll(cursor, accept, reader, tasks)

    async def _introduce(self) -> UpdateReader:
        """Who we are, and what we understand."""
        me = await self._require("getMe", {})
        reader = UpdateReader(
            channel=self.options.name,
            me=msgspec.convert(me, User),
            chars_max=self.options.message_chars_max,
        )
        if self.options.commands:
            commands = [
                {"command": name, "description": does} for name, does in self.options.commands
            ]
            with suppress(NotReached, NoAnswer):
                await self.api.call("setMyCommands", {"commands": commands})
        log.info("telegram_connected", channel=self.options.name, bot=reader.me.username)
        return reader

    async def _poll(
        self, cursor: str | None, accept: Accept, reader: UpdateReader, tasks: TaskGroup
    ) -> None:
        # Without `drop_pending_updates`: what waits there is what people wrote to us.
        await self._require("deleteWebhook", {})
        offset, since_ms = place_of(cursor)
        conflicts = 0
        floor = EmptyFloor()
        while True:
            floor.begin()
            if self.clock.now_ms() - since_ms > NUMBERS_GOOD_MS:
                offset = 0
            batch = await self._updates(offset)
            answer, updates = batch.answer, batch.updates
            if answer.error_code == CONFLICT:
                self.trouble = f"another program reads this bot: {answer.description}"
                log.warning("telegram_conflict", channel=self.options.name, why=answer.description)
                await sleep(CONFLICT_SECONDS[min(conflicts, len(CONFLICT_SECONDS) - 1)])
                conflicts += 1
                continue
            if answer.error_code == TOO_MANY:
                await sleep(wait_ms_of(answer) / 1000)
                continue
            self._check(answer, "getUpdates")
            self.trouble, conflicts = None, 0
            self.heard_ms = self.clock.now_ms()
            if not updates:
                await sleep(floor.rest_s())
            else:
                floor = EmptyFloor()
                reads = [reader.read(raw) for raw in updates]
                before = offset
                offset, since_ms = next_offset(reads, offset), self.clock.now_ms()
                receipts = await accept([read.inbound for read in reads], f"{offset}@{since_ms}")
                self.say_aside(reads, receipts, tasks)
                if offset <= before and all(receipt.is_duplicate for receipt in receipts):
                    await sleep(NOTHING_NEW_SECONDS)

    async def _be_told(self, accept: Accept, reader: UpdateReader, tasks: TaskGroup) -> None:
        """The platform calls us: each call is answered after its update is stored."""
        options = self.options

        async def store(raw: bytes) -> None:
            read = reader.read(raw)
            self.heard_ms = self.clock.now_ms()
            self.say_aside([read], await accept([read.inbound]), tasks)

        async def register() -> None:
            parameters: dict[str, object] = {
                "url": options.webhook_url,
                "secret_token": secret_of(options.token),
                "allowed_updates": KINDS,
            }
            await self._require("setWebhook", parameters)
            self.trouble = None

        hook = Webhook(
            host=options.webhook_host,
            port=options.webhook_port,
            secret=secret_of(options.token),
            store=store,
        )
        await hook.serve(register)

    async def _updates(self, offset: int) -> _Batch:
        # Whether we are heard is not known before the first answer, so that one is not waited for.
        parameters: dict[str, object] = {
            "timeout": 0 if self.trouble else POLL_SECONDS,
            "limit": BATCH_MAX,
            "allowed_updates": KINDS,
        }
        if offset:
            parameters["offset"] = offset
        seconds = POLL_SECONDS + ANSWER_SECONDS
        body = await self.api.call_raw("getUpdates", parameters, seconds=seconds)
        return _read(body)

    def say_aside(
        self, reads: Sequence[Read], receipts: Sequence[Receipt], tasks: TaskGroup
    ) -> None:
        """Show that buttons were seen and that messages wait, without waiting for it."""
        for read, receipt in zip(reads, receipts, strict=True):
            chat = read.inbound.route.chat
            if read.callback:
                pressed: dict[str, object] = {"callback_query_id": read.callback}
                tasks.start_soon(self._aside, "answerCallbackQuery", chat, pressed)
            elif receipt.state is EntryState.WAITING and not receipt.is_duplicate:
                seen: dict[str, object] = {
                    "chat_id": int(chat),
                    "message_id": int(read.inbound.words.anchor),
                    "reaction": [{"type": "emoji", "emoji": SEEN}],
                }
                tasks.start_soon(self._aside, "setMessageReaction", chat, seen)

    async def _aside(self, method: str, chat: str, parameters: dict[str, object]) -> None:
        async with self._asides:
            await self.passing.show(method, chat, parameters)

    async def _require(self, method: str, parameters: dict[str, object]) -> object:
        answer = await self.api.call(method, parameters, seconds=ANSWER_SECONDS)
        self._check(answer, method)
        return answer.result

    def _check(self, answer: BotAnswer, method: str) -> None:
        """Raises ChannelUnusable for a token that is no good, NoAnswer for anything else."""
        if answer.ok:
            return
        if answer.error_code in UNAUTHORIZED:
            raise ChannelUnusable(
                f"Telegram refuses the token of {self.options.name} ({answer.description}); "
                "BotFather has the right one"
            )
        raise NoAnswer(f"{method}: {answer.description}")


def secret_of(token: str) -> str:
    """What the platform shows us to prove that it is the platform: made from the token, so that
    there is not one more secret to keep."""
    return hmac.new(token.encode(), b"koboshi webhook", sha256).hexdigest()


def place_of(cursor: str | None) -> tuple[int, int]:
    """From which update on we ask, and when we last heard of one."""
    offset, _, at_ms = (cursor or "0@0").partition("@")
    return (int(offset), int(at_ms)) if offset.isdecimal() and at_ms.isdecimal() else (0, 0)


def _read(body: bytes) -> _Batch:
    """Raises NoAnswer for what cannot be read at all."""
    try:
        whole = _whole.decode(body)
        updates: Sequence[bytes] | None = batch_of(whole.result) if whole.ok else ()
    except (msgspec.DecodeError, RecursionError) as error:
        whole, updates = _Whole(ok=True), pieces_of(body)
        if updates is None:
            raise NoAnswer(f"the updates cannot be read: {error}") from None
        log.warning("updates_broken", updates=len(updates), why=str(error))
    assert updates is not None
    answer = BotAnswer(
        ok=whole.ok,
        error_code=whole.error_code,
        description=whole.description,
        parameters=whole.parameters,
    )
    return _Batch(answer=answer, updates=updates)
