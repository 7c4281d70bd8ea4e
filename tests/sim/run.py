"""One seed: some people, a platform with its moods, and a gateway that keeps dying."""

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from koboshi.domain.recovery import Policy, RecoveryPolicy
from tests.harness.postgres_backend import Database
from tests.harness.rows import Rows
from tests.sim.checks import check_run
from tests.sim.crowd import (
    BOT_CHANGES_S,
    FIRST_BOT,
    SECOND_BOT,
    last_words,
    what_people_do,
    what_the_operator_does,
)
from tests.sim.effects import Effects
from tests.sim.life import End, Setting, live, live_beside
from tests.sim.outside import no_one_waits_for_the_banned
from tests.sim.platform import ABILITIES, SimPlatform
from tests.sim.plots import Plot, plot_of
from tests.sim.power import History
from tests.sim.store import Promises
from tests.sim.violations import Violation
from tests.sim.weather import FAR_JUMPS_MS, JUMPS_MS, weather_of

CRASHES_MAX = 4
LAST_LIVES_MAX = 12
"""What kills its gateway is given up long before."""
LONG_ENOUGH_S = 400.0
"""For all that is not held up by a person."""
CALM_ENDS = (Plot.OUTAGE, Plot.CLOCK)
"""Plots in which a life mostly goes on until a person asks it to stop."""
COMMITS_MAX = 60
VERBS = (
    *("", "inbox.accept", "inbox.accept", "turns.claim", "turns.recover", "turns.ask"),
    *("turns.start_call", "turns.finish_call", "turns.finish_call"),
    *("turns.answer", "turns.answer", "turns.answer"),
    *("outbox.claim", "outbox.settle", "processes.begin", "processes.ended", "processes.report"),
)
"""Where a life may end at a commit; the more there is to go wrong, the more often."""
RECOVERY = {RecoveryPolicy.AUTO: 75, RecoveryPolicy.ASK: 15, RecoveryPolicy.OFF: 10}
"""How gateways are configured, of a hundred."""
SHARED_MEMORY = Path("/dev/shm")


@dataclass(slots=True, kw_only=True)
class Run:
    """What came of a seed."""

    seed: int
    history: History
    violation: str = ""
    awaited: dict[str, str] = field(default_factory=dict)
    """Promises that are known not to be kept yet, and what broke them."""

    def take(self, found: Sequence[Violation]) -> None:
        self.violation = " | ".join(each.words for each in found if not each.is_awaited)
        self.awaited = {each.number: each.words for each in found if each.is_awaited}

    def told(self) -> str:
        """For a developer who has to find out why."""
        return "\n".join(
            [
                f"seed {self.seed}: {self.violation or 'nothing is wrong'}",
                *self.history.lines,
                f"seed {self.seed}: {self.violation}",
                *(f"awaited: {number}: {words}" for number, words in self.awaited.items()),
                "to see it again: "
                f"KOBOSHI_SEED={self.seed} pytest tests/sim/test_simulation.py -k seeds",
            ]
        )


@dataclass(slots=True, kw_only=True)
class Totals:
    """What many seeds came to."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, run: Run) -> None:
        self.counts["seeds"] += 1
        self.counts["violations"] += bool(run.violation)
        self.counts.update(f"awaited {number}" for number in run.awaited)
        self.counts.update(run.history.counts)


def run_seed(
    seed: int, *, promises: Callable[[], Promises] = Promises, server: Database | None = None
) -> Run:
    """Everything that the seed says, and whether it ended well; on an empty database of a
    server, or on a file."""
    dice, history = random.Random(seed), History()
    with a_folder() as home, logging_to(history):
        setting = a_setting(home, dice, history, promises(), plot_of(seed))
        setting.server = server
        run = Run(seed=seed, history=history)
        try:
            rows = _live_and_die(setting)
            run.take(check_run(setting, rows))
        except* AssertionError as wrong:
            run.violation = " | ".join(str(each) for each in leaves_of(wrong))
        except* Exception as error:
            history.tell(f"broken: {error!r}")
            run.violation = " | ".join(repr(each) for each in leaves_of(error))
    return run


def a_setting(
    home: Path, dice: random.Random, history: History, promises: Promises, plot: Plot
) -> Setting:
    recovery = RecoveryPolicy.AUTO
    if plot in (Plot.COMMON, Plot.STEPS, Plot.ROUGH, Plot.CUTS):
        (recovery,) = dice.choices(list(RECOVERY), list(RECOVERY.values()))
    weather = weather_of(dice, plot)
    platform = SimPlatform(
        dice=dice,
        history=history,
        weather=weather,
        abilities=dice.choice(ABILITIES),
        updates=what_people_do(dice, plot),
        # Who is set aside in a chat that has moved would never hear the last words in it.
        account=FIRST_BOT if plot is Plot.BOT else "",
        moves=recovery is not RecoveryPolicy.OFF and plot is not Plot.PEOPLE,
    )
    history.count(f"plot {plot}")
    history.count(f"recovery {recovery}")
    return Setting(
        home=home,
        dice=dice,
        history=history,
        platform=platform,
        effects=Effects(),
        weather=weather,
        policy=Policy(recovery=recovery, has_breaker=dice.random() < 0.7),
        busy=dice.choice(("queue", "queue", "steer", "interrupt")),
        orders=what_the_operator_does(dice, plot),
        promises=promises,
    )


def _live_and_die(setting: Setting) -> Rows:
    """What lies on the disk at last."""
    dice = setting.dice
    is_storm = setting.weather.plot is Plot.COMMON and dice.random() < 0.2
    for _ in range(dice.randint(3, 7) if is_storm else dice.randint(1, CRASHES_MAX)):
        _list_people(setting)
        end = _an_early_end(dice) if is_storm else _an_end(dice, setting.weather.plot)
        if dice.random() < 0.05:
            other = _an_end(dice, setting.weather.plot)
            live_beside(setting, end, other, dice.uniform(0.5, 15.0))
        else:
            live(setting, end)
        _time_passes(setting)
    if setting.weather.plot is Plot.BOT:
        _change_the_bot(setting)
    setting.weather.is_calm = True
    if setting.weather.plot is Plot.PEOPLE:
        _live_without_some(setting)
    if setting.policy.recovery is RecoveryPolicy.OFF:
        places = {update.place for update in setting.platform.updates}
        setting.platform.updates += last_words(places, setting.now_s)
    _live_to_the_end(setting)
    return setting.rows()


def _change_the_bot(setting: Setting) -> None:
    """Another bot's token stands in the same section. What the first one was never told to forget
    is its own affair."""
    platform = setting.platform
    platform.account = SECOND_BOT
    platform.updates = [
        update
        for update in platform.updates
        if update.account == SECOND_BOT or update.key in platform.acknowledged
    ]
    setting.now_s = max(setting.now_s, BOT_CHANGES_S)
    setting.history.tell("another bot takes the place of the first")


def _list_people(setting: Setting) -> None:
    """Whom the configuration of the next life names."""
    if setting.weather.plot is Plot.PEOPLE:
        is_listed = setting.dice.random() < 0.6
        setting.circle.listed = {"ann", "cid"} if is_listed else {"ann"}


def _live_without_some(setting: Setting) -> None:
    """All who are allowed are served, also beside others; then every person is let in."""
    setting.orders.clear()
    live(setting, End(after_s=LONG_ENOUGH_S))
    no_one_waits_for_the_banned(setting, setting.rows())
    setting.circle.listed = {"ann", "bob", "cid"}


def _live_to_the_end(setting: Setting) -> None:
    for _ in range(LAST_LIVES_MAX):
        if live(setting, End()):
            return
    raise AssertionError(f"the gateway dies for ever: {dict(setting.effects.killed)}")


def _an_end(dice: random.Random, plot: Plot) -> End:
    if plot is Plot.AWAY:
        return End(after_s=dice.uniform(2.0, 10.0))
    if plot is Plot.BOT:
        return End(after_s=dice.uniform(5.0, 40.0))
    if plot is Plot.SIDE and dice.random() < 0.8:
        return End(after_s=250.0, is_kind=True)
    if plot in CALM_ENDS and dice.random() < 0.7:
        return End(after_s=dice.uniform(30.0, 120.0), is_kind=True)
    throw = dice.random() if plot is not Plot.STEPS else 1.0
    after_s = dice.uniform(0.01, 40.0)
    if throw < 0.1:
        return End(after_s=after_s, is_kind=True)
    if throw < 0.4:
        return End(after_s=after_s)
    verb, moment = dice.choice(VERBS), dice.choice(("before", "after"))
    count = dice.randint(1, 3) if verb else dice.randint(1, COMMITS_MAX)
    return End(after_s=60.0, crash_at=f"{verb}:{moment}:{count}")


def _an_early_end(dice: random.Random) -> End:
    """So soon that hardly anything gets done: what is tried again dies again."""
    claimed = End(after_s=60.0, crash_at=f"turns.claim:after:{dice.randint(2, 6)}")
    return dice.choice((End(after_s=dice.uniform(0.5, 5.0)), claimed))


def _time_passes(setting: Setting) -> None:
    """Between two lives; sometimes a long time, and sometimes a person sets the clock."""
    plot, dice = setting.weather.plot, setting.dice
    is_long = dice.random() < (0.7 if plot is Plot.AWAY else 0.1)
    setting.now_s += 2 * 3_600.0 if is_long else dice.uniform(0.0, 20.0)
    if dice.random() < (0.4 if plot is Plot.CLOCK else 0.1 if plot is not Plot.SIDE else 0.0):
        by_ms = dice.choice(FAR_JUMPS_MS if plot is Plot.CLOCK else JUMPS_MS)
        setting.wall_ms += by_ms
        setting.set_while_down.append(setting.now_s)
        setting.history.tell(f"meanwhile the clock is set by {by_ms / 1000:+.0f} s")
        setting.history.count("clock jumps")


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group, and in the groups in it."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves_of(inner)
    else:
        yield error


@contextmanager
def a_folder() -> Iterator[Path]:
    """A home in memory, where there is such a place."""
    place = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    home = Path(tempfile.mkdtemp(prefix="koboshi-sim-", dir=place))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def logging_to(history: History) -> Iterator[None]:
    """The gateway's own errors are part of the history; the rest of its log is not made."""

    def keep(_: object, name: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        history.tell(f"log {name}: {event}")
        history.errors.append(str(event["event"]))
        raise structlog.DropEvent

    structlog.configure(
        processors=[keep],
        wrapper_class=structlog.make_filtering_bound_logger(40),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.reset_defaults()
