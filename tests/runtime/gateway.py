"""A gateway in this process that can be stopped, lose its power, and be started again."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from anyio import Event, create_task_group, sleep

from koboshi.domain import phrases
from koboshi.domain.budget import BudgetLimits
from koboshi.domain.errors import StoreFailed
from koboshi.domain.ids import ChannelName
from koboshi.domain.outage import Patience
from koboshi.domain.recovery import BootConfig as Configured
from koboshi.domain.recovery import Policy
from koboshi.domain.shutdown import Leave
from koboshi.models.scripted import ScriptedModel
from koboshi.ports.channel import Receipt
from koboshi.ports.model import Model
from koboshi.ports.store import Store
from koboshi.runtime.gateway import Gateway
from koboshi.runtime.model_chain import ModelChain
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores.sqlite.store import SqliteStore, open_store
from tests.harness.compose import Bounds, compose
from tests.harness.platform import CHANNEL, FakeChannel, Platform
from tests.harness.polling import until, until_asked
from tests.harness.rows import Rows, read_rows
from tests.harness.toolbox import World
from tests.harness.virtual import BEGIN_MS, TrackedStore, VirtualClock, counted_threads

PATIENCE_S = 900.0
"""Virtual seconds: more than every back-off of a test takes together."""


@dataclass(slots=True, kw_only=True)
class Setting:
    """What stays when the gateway dies: its home, the platform and the world; and how the next
    one is configured."""

    home: Path
    platform: Platform = field(default_factory=Platform)
    world: World = field(default_factory=World)
    model: Model | Callable[[Store], ModelChain] = field(default_factory=ScriptedModel)
    bounds: Bounds = field(default_factory=Bounds)
    policy: Policy = field(default_factory=Policy)
    busy: str = "queue"
    is_interactive: bool = True
    is_known: bool = True
    """Whether the channel is in the configuration."""
    other_platforms: dict[ChannelName, Platform] = field(default_factory=dict)
    """Platforms of further channels."""
    is_allowed: Callable[[ChannelName, str], bool] = lambda _channel, _person: True
    patience: Patience = field(default_factory=Patience)
    models: tuple[str, ...] = ()
    budget: BudgetLimits = field(default_factory=BudgetLimits)
    wall_ms: int = BEGIN_MS
    keys: int = 0

    def time_passes(self, *, minutes: int) -> None:
        """Between two lives, on the clock on the wall."""
        self.wall_ms += minutes * 60_000

    def add_platform(self, name: ChannelName) -> Platform:
        """One more channel, with a platform of its own."""
        return self.other_platforms.setdefault(name, Platform())

    def configured(self) -> Configured:
        channels = {CHANNEL: self.is_interactive} if self.is_known else {}
        channels |= dict.fromkeys(self.other_platforms, True)
        return Configured(
            policy=self.policy,
            channels=channels,
            is_allowed=self.is_allowed,
            busy=self.busy,
            slots=self.bounds.slots,
            patience=self.patience,
            models=self.models,
            budget=self.budget,
        )

    def rows(self) -> Rows:
        """What lies on the disk. Only when no gateway runs."""
        return read_rows(self.home)


@dataclass(slots=True, kw_only=True)
class Life:
    """One life of a gateway."""

    setting: Setting
    clock: VirtualClock
    tracked: TrackedStore
    gateway: Gateway
    channel: FakeChannel
    others: dict[ChannelName, FakeChannel] = field(default_factory=dict)
    """The channels of further platforms."""
    is_over: Event = field(default_factory=Event)

    async def says(
        self,
        chat: str,
        text: str,
        *,
        key: str = "",
        thread: str = "",
        sender: str = "ann",
        is_private: bool = False,
    ) -> Receipt:
        """A person writes; with a key of its own, if none is given. Returns once it is stored."""
        return await self.channel.bring(
            chat,
            text,
            key or self._new_key(),
            thread=thread,
            sender=sender,
            is_private=is_private,
        )

    async def presses(self, chat: str, choice: str, *, key: str = "") -> Receipt:
        """A person presses a button below the newest question of the chat."""
        platform = self.setting.platform
        asked = [each for each in platform.shown if each.route.chat == chat and each.question]
        number = asked[-1].question
        return await self.channel.bring(
            chat, "", key or self._new_key(), question=number, choice=choice
        )

    async def shows(self, chat: str, *texts: str) -> None:
        """Wait until a person sees these words in the chat, in this order, and nothing else; that
        it is being restarted is not counted."""
        platform = self.setting.platform

        def seen() -> list[str]:
            return [text for text in platform.texts(chat) if text != phrases.restarting()]

        await until(
            lambda: len(seen()) >= len(texts) or self.is_over.is_set(),
            f"{chat} shows {texts}",
            within_s=PATIENCE_S,
            otherwise=lambda: f"it shows {platform.texts(chat)}",
        )
        assert seen() == list(texts)

    async def until(self, look: Callable[[], object], what: str) -> None:
        await until(lambda: look() or None, what, within_s=PATIENCE_S)

    async def rests(self) -> None:
        """Wait until nothing is worked on, nothing waits and nothing is owed."""

        async def is_at_rest() -> bool:
            status = await self.tracked.views.status()
            return not (status.turns or status.inbox_waiting or status.outbox_unsettled)

        await until_asked(is_at_rest, "the gateway comes to rest", within_s=PATIENCE_S)

    async def passes(self, seconds: float) -> None:
        """Let (virtual) time pass."""
        await sleep(seconds)

    async def works_on(self, *, minutes: int) -> None:
        """A long time goes by, up to the next heartbeat."""
        self.clock.let_pass(minutes * 60_000)
        self.setting.time_passes(minutes=minutes)
        await self.passes(6)

    def _new_key(self) -> str:
        self.setting.keys += 1
        return f"k{self.setting.keys}"

    def stop(self) -> None:
        """Ask it to stop."""
        self.gateway.drain.ask(Leave.STOP)

    def lose_power(self) -> None:
        """From now on nothing that it does reaches the disk; then it ends."""
        self.tracked.is_dead = True
        self.gateway.drain.ask(Leave.STOP)


@asynccontextmanager
async def living(setting: Setting) -> AsyncIterator[Life]:
    """A life of a gateway for the length of the block; then it loses its power, unless it was
    stopped before."""
    clock, wakeups = VirtualClock(setting.wall_ms), LocalWakeups()
    store = await open_store(setting.home, world=setting.configured(), clock=clock, wakeups=wakeups)
    try:
        life = await _begin(setting, clock, wakeups, store)
        with counted_threads():
            async with create_task_group() as tasks:
                tasks.start_soon(_run, life)
                yield life
                if not life.gateway.drain.asked.is_set():
                    life.lose_power()
    finally:
        await store.close()


async def _begin(
    setting: Setting, clock: VirtualClock, wakeups: LocalWakeups, store: SqliteStore
) -> Life:
    tracked = TrackedStore(store)
    worker = await tracked.workers.start("test", 1, "birth", "0")
    channel = FakeChannel(setting.platform)
    others = {
        name: FakeChannel(platform, name) for name, platform in setting.other_platforms.items()
    }
    gateway = compose(
        setting.home,
        store=tracked.as_store(),
        worker_id=worker.worker_id,
        clock=clock,
        wakeups=wakeups,
        channels=[channel, *others.values()],
        model=_model(setting, tracked.as_store()),
        tools=setting.world.tools(),
        bounds=setting.bounds,
    )
    return Life(
        setting=setting,
        clock=clock,
        tracked=tracked,
        gateway=gateway,
        channel=channel,
        others=others,
    )


def _model(setting: Setting, store: Store) -> Model | ModelChain:
    made = setting.model
    return made if hasattr(made, "respond") else made(store)


async def _run(life: Life) -> None:
    """Run until it is stopped. A gateway without power fails, as it must; any other failure is
    the test's."""
    try:
        await life.gateway.run()
    except* StoreFailed:
        assert life.tracked.is_dead
    finally:
        life.is_over.set()
