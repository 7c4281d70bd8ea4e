"""One life of a gateway in the simulation: the whole task tree, until it ends as it is meant to."""

import random
from asyncio import Runner, get_running_loop
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from anyio import TASK_STATUS_IGNORED, Event, create_task_group, sleep, sleep_forever
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint

from koboshi.control.socket import ControlSocket
from koboshi.domain.errors import StoreFailed
from koboshi.domain.ids import ChannelName
from koboshi.domain.outbox import DeliveryLimits
from koboshi.domain.recovery import BootConfig, Policy
from koboshi.domain.shutdown import Leave
from koboshi.kernel.transaction import Reading
from koboshi.runtime.gateway import Gateway
from koboshi.runtime.wakeups import LocalWakeups
from tests.harness.compose import Bounds, compose
from tests.harness.postgres_backend import Database
from tests.harness.rows import Rows, read_rows
from tests.sim.crowd import CHANNEL, OTHER, Circle, Order
from tests.sim.effects import Effects
from tests.sim.loop import BEGIN_MS, SeededLoop, SimClock
from tests.sim.model import SimModel
from tests.sim.platform import SimChannel, SimPlatform
from tests.sim.plots import Plot
from tests.sim.power import History, Power
from tests.sim.server import open_server_store
from tests.sim.store import QUESTION_AGE_MS, Opened, Promises, open_sim_store
from tests.sim.tools import SimRunners, sim_tools
from tests.sim.violations import Violation
from tests.sim.weather import Weather

Value = TypeVar("Value")

LOOK_SECONDS = 5.0
PATIENCE_SECONDS = 2 * 3_600.0 + 900.0
"""More than every question, back-off and pause of a run takes together."""
BOUNDS = Bounds(
    question_age_ms_max=QUESTION_AGE_MS,
    deliveries=DeliveryLimits(unsure_wait_ms_max=600_000),
    drain_seconds=3,
)
NARROW = replace(BOUNDS, turns_max=4, in_flight_max=2)
"""Where one that hangs, or never gives its place back, is soon felt by the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a life is to end: at a moment, at a commit, as a person asks, or only when all is said
    and done."""

    after_s: float = PATIENCE_SECONDS
    crash_at: str = ""
    is_kind: bool = False


@dataclass(slots=True, kw_only=True)
class Setting:
    """What stays when a gateway dies."""

    home: Path
    dice: random.Random
    history: History
    platform: SimPlatform
    effects: Effects
    weather: Weather
    policy: Policy
    busy: str
    circle: Circle = field(default_factory=Circle)
    orders: list[Order] = field(default_factory=list)
    """What the operator has still to do."""
    now_s: float = 0.0
    wall_ms: int = BEGIN_MS
    promises: Promises = field(default_factory=Promises)
    server: Database | None = None
    """Where the rows are; None: in a file of the home."""
    remains: list[Rows] = field(default_factory=list)
    """What was stored at the end of each life."""
    lives: list[tuple[float, float]] = field(default_factory=list)
    """From when to when each life went on."""
    clocks: list[SimClock] = field(default_factory=list)
    set_while_down: list[float] = field(default_factory=list)
    """When the clock on the wall was set between two lives."""
    kept_waiting: list[Violation] = field(default_factory=list)
    """Messages of people who are allowed, held up by a person who is not."""
    unrest: str = ""
    """What was still open when the last life had run out of patience."""

    def rows(self) -> Rows:
        """What is stored between two lives."""
        return read_rows(self.home) if self.server is None else self.server.rows()

    @property
    def channels(self) -> tuple[ChannelName, ...]:
        return (CHANNEL, OTHER) if self.weather.plot is Plot.SIDE else (CHANNEL,)

    def world(self) -> BootConfig:
        listed = frozenset(self.circle.listed)
        return BootConfig(
            policy=self.policy,
            channels=dict.fromkeys(self.channels, True),
            is_allowed=lambda _channel, person: person in listed,
            busy=self.busy,
        )

    def jump(self, by_ms: int) -> None:
        """Set the clock on the wall."""
        self.wall_ms += by_ms
        for clock in self.clocks:
            clock.wall_ms = self.wall_ms
        self.history.tell(f"the clock is set by {by_ms / 1000:+.0f} s")
        self.history.count("clock jumps")


class _NoControl(ControlSocket):
    """No one asks from outside: there are no sockets here."""

    async def keep_serving(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await sleep_forever()


def live(setting: Setting, end: End) -> bool:
    """One life, from its start to its end. The setting keeps what comes of it. Returns whether it
    ended because it was asked to."""
    power = _power(setting, end)
    _run_loop(setting, lambda loop: _live(setting, end, loop, power))
    return not power.is_off


def live_beside(setting: Setting, end: End, other: End, after_s: float) -> None:
    """One life, and after a while another one, since the first is cut off from everything but the
    store and is thought to be dead. Both believe to be the only one; what the first does to the
    store must change nothing for any caller."""

    async def both(loop: SeededLoop) -> float:
        ends: list[float] = []
        first = _power(setting, end)

        async def others() -> None:
            await sleep(after_s)
            first.is_cut_off = True
            setting.history.tell("it is cut off, and another worker takes its place")
            ends.append(await _live(setting, other, loop, _power(setting, other, is_second=True)))

        async with create_task_group() as lives:
            lives.start_soon(others)
            ends.append(await _live(setting, end, loop, first))
        return max(ends)

    setting.history.count("two workers")
    _run_loop(setting, both)


def _run_loop(setting: Setting, work: Callable[[SeededLoop], Coroutine[Any, Any, float]]) -> None:
    with Runner(loop_factory=partial(SeededLoop, setting.dice, setting.now_s)) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, SeededLoop)
        setting.history.now = loop.time
        with patch("anyio.to_thread.run_sync", _run_here):
            setting.now_s = runner.run(work(loop))


def _power(setting: Setting, end: End, *, is_second: bool = False) -> Power:
    return Power(
        history=setting.history, dice=setting.dice, crash_at=end.crash_at, is_second=is_second
    )


async def _live(setting: Setting, end: End, loop: SeededLoop, power: Power) -> float:
    """Returns when it ended."""
    begun_s = loop.time()
    clock, wakeups = SimClock(loop, setting.wall_ms), LocalWakeups()
    setting.clocks.append(clock)
    opening = open_sim_store
    if setting.server is not None:
        opening = partial(open_server_store, setting.server)
    opened = await opening(
        setting.home,
        world=setting.world(),
        clock=clock,
        wakeups=wakeups,
        power=power,
        promises=setting.promises,
        new_code=setting.circle.next_code,
        is_second=power.is_second,
    )
    ended = _Ended(loop)
    power.on_off.append(ended.now)
    try:
        await _serve(setting, end, clock, wakeups, power, opened, ended)
    except* StoreFailed:
        assert power.is_off, "the store failed while there was power"
    finally:
        ended.now()
        setting.remains.append(opened.readers.rows())
        await opened.store.close()
    assert ended.at_s is not None
    setting.lives.append((begun_s, ended.at_s))
    return ended.at_s


async def _serve(
    setting: Setting,
    end: End,
    clock: SimClock,
    wakeups: LocalWakeups,
    power: Power,
    opened: Opened,
    ended: "_Ended",
) -> None:
    if setting.platform.account:
        await opened.store.inbox.bind({CHANNEL: setting.platform.account})
    worker = await opened.store.workers.start("host", 1, "boot/1", "0")
    setting.history.tell(f"worker {worker.worker_id} starts; it is to end by {end}")
    runners = SimRunners(effects=setting.effects, power=power, clock=clock, weather=setting.weather)
    gateway = compose(
        setting.home,
        store=opened.store,
        worker_id=worker.worker_id,
        clock=clock,
        wakeups=wakeups,
        channels=[
            SimChannel(platform=setting.platform, power=power, clock=clock, name=name)
            for name in setting.channels
        ],
        model=SimModel(power=power, effects=setting.effects, weather=setting.weather, clock=clock),
        tools=sim_tools(runners, opened.store, setting.home),
        bounds=NARROW if setting.weather.plot is Plot.SIDE else BOUNDS,
        runners=runners,
        control=_NoControl(home=setting.home, answer=_no_answer),
    )
    async with create_task_group() as tasks:
        tasks.start_soon(_end_it, setting, end, gateway, power, opened)
        if not power.is_second:
            tasks.start_soon(_set_clocks, setting, clock)
            tasks.start_soon(_operate, setting, clock, opened)
        tasks.start_soon(_run, gateway, ended, tasks.cancel_scope.cancel)
        await ended.event.wait()
        if power.is_off:
            tasks.cancel_scope.cancel()


async def _run(gateway: Gateway, ended: "_Ended", then: Callable[[], object]) -> None:
    await gateway.run()
    ended.now()
    then()


async def _end_it(
    setting: Setting, end: End, gateway: Gateway, power: Power, opened: Opened
) -> None:
    """End the life at its time, or when everything has come to rest."""
    loop = get_running_loop()
    limit = loop.time() + end.after_s
    setting.unrest = ""
    is_at_rest = partial(_is_at_rest, home=opened.store.processes.home)
    while loop.time() < limit:
        await sleep(min(LOOK_SECONDS, max(limit - loop.time(), 0.0)))
        if not setting.platform.has_more and opened.readers.look_now(is_at_rest):
            break
    else:
        setting.unrest = _what_is_open(opened.readers.rows())
    is_last = end.after_s == PATIENCE_SECONDS
    if is_last or end.is_kind:
        setting.history.tell("a person asks the gateway to stop")
        gateway.drain.ask(Leave.STOP)
    else:
        power.go_off("at its time")


def _is_at_rest(tx: Reading, home: str) -> bool:
    """Nothing is worked on, nothing waits and nothing is owed."""
    is_busy = tx.rows("turns_alive_by_state") or tx.rows("deliveries_due_all")
    is_busy = is_busy or tx.rows("processes_not_ended", home=home)
    return not is_busy and not tx.rows("watchers_of_output", home=home)


def _what_is_open(rows: Rows) -> str:
    turns = [f"t{row['turn_id']} {row['state']}" for row in rows.turns if not row["closed_ms"]]
    owed = [f"d{row['delivery_id']}" for row in rows.outbox if not row["settled_ms"]]
    return ", ".join([*turns, *owed]) or "something that is unknown"


async def _set_clocks(setting: Setting, clock: SimClock) -> None:
    """What is due since the last life is done at once."""
    while setting.weather.jumps:
        at_s, by_ms = setting.weather.jumps[0]
        await sleep(max(0.0, at_s - clock.monotonic()))
        del setting.weather.jumps[0]
        setting.jump(by_ms)


async def _operate(setting: Setting, clock: SimClock, opened: Opened) -> None:
    """The operator lets people in and takes rights away."""
    people, circle = opened.store.people, setting.circle
    for person in ("bob", "cid"):
        circle.note(clock.monotonic(), person, await people.is_allowed(CHANNEL, person))
    while setting.orders:
        order = setting.orders[0]
        await sleep(max(0.0, order.at_s - clock.monotonic()))
        del setting.orders[0]
        if order.revoke:
            await people.revoke(CHANNEL, order.revoke)
            is_allowed = await people.is_allowed(CHANNEL, order.revoke)
            circle.note(clock.monotonic(), order.revoke, is_allowed)
            setting.history.tell(f"operator: {order.revoke} is revoked")
            setting.history.count("revocations")
            continue
        began_s = clock.monotonic()
        while circle.codes:
            code = circle.codes.pop(0)
            known = await people.approve(code)
            if known is not None:
                circle.note(began_s, known.person, is_allowed=True)
                setting.history.tell(f"operator: {known.person} is let in")


class _Ended:
    """The moment at which a life was over; what comes later is only clearing away."""

    def __init__(self, loop: SeededLoop) -> None:
        self._loop = loop
        self.at_s: float | None = None
        self.event = Event()

    def now(self) -> None:
        if self.at_s is None:
            self.at_s = self._loop.time()
        self.event.set()


async def _run_here(call: Callable[..., Value], *arguments: object, **_: object) -> Value:
    """In the place of a thread: the answer comes a moment later."""
    await checkpoint()
    return call(*arguments)


async def _no_answer(_: Any) -> dict[str, object]:
    return {}
