"""One seed: some people, a platform with its moods, and a gateway that dies again and again."""

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from koboshi.domain.recovery import Policy, RecoveryPolicy
from tests.harness.rows import Rows, read_rows
from tests.sim.checks import check_run
from tests.sim.life import End, Setting, live, live_beside
from tests.sim.platform import ABILITIES, SimPlatform, last_words, what_people_do
from tests.sim.power import History
from tests.sim.store import Promises
from tests.sim.tools import Effects

CRASHES_MAX = 4
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

    def told(self) -> str:
        """For whoever has to find out why."""
        return "\n".join(
            [
                f"seed {self.seed}: {self.violation or 'nothing is wrong'}",
                *self.history.lines,
                f"seed {self.seed}: {self.violation}",
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
        self.counts.update(run.history.counts)


def run_seed(seed: int, *, promises: Callable[[], Promises] = Promises) -> Run:
    """Everything that the seed says, and whether it ended well."""
    dice, history = random.Random(seed), History()
    with _folder() as home, _logging_to(history):
        setting = _setting(home, dice, history, promises())
        run = Run(seed=seed, history=history)
        try:
            rows = _live_and_die(setting)
            check_run(setting.platform, setting.effects, history, setting.remains, rows)
        except* AssertionError as wrong:
            run.violation = " | ".join(str(each) for each in leaves_of(wrong))
        except* Exception as error:
            history.tell(f"broken: {error!r}")
            run.violation = " | ".join(repr(each) for each in leaves_of(error))
    return run


def _setting(home: Path, dice: random.Random, history: History, promises: Promises) -> Setting:
    (recovery,) = dice.choices(list(RECOVERY), list(RECOVERY.values()))
    platform = SimPlatform(
        dice=dice,
        history=history,
        abilities=dice.choice(ABILITIES),
        updates=what_people_do(dice),
        # Who is set aside in a chat that has moved would never hear the last words in it.
        moves=recovery is not RecoveryPolicy.OFF,
    )
    history.count(f"recovery {recovery}")
    return Setting(
        home=home,
        dice=dice,
        history=history,
        platform=platform,
        effects=Effects(),
        policy=Policy(recovery=recovery, has_breaker=dice.random() < 0.7),
        busy=dice.choice(("queue", "queue", "steer", "interrupt")),
        promises=promises,
    )


def _live_and_die(setting: Setting) -> Rows:
    """What lies on the disk at last."""
    dice = setting.dice
    is_storm = dice.random() < 0.2
    for _ in range(dice.randint(3, 7) if is_storm else dice.randint(1, CRASHES_MAX)):
        end = _an_early_end(dice) if is_storm else _an_end(dice)
        if dice.random() < 0.05:
            live_beside(setting, end, _an_end(dice), dice.uniform(0.5, 15.0))
        else:
            live(setting, end)
        _time_passes(setting)
    setting.platform.is_calm = True
    if setting.policy.recovery is RecoveryPolicy.OFF:
        chats = {update.chat for update in setting.platform.updates}
        setting.platform.updates += last_words(chats, setting.now_s)
    live(setting, End())
    return read_rows(setting.home)


def _an_end(dice: random.Random) -> End:
    throw = dice.random()
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
    """Between two lives; sometimes a long time, and sometimes somebody sets the clock."""
    throw = setting.dice.random()
    setting.now_s += setting.dice.uniform(0.0, 20.0) if throw < 0.9 else 2 * 3_600.0
    if setting.dice.random() < 0.1:
        setting.wall_ms += setting.dice.choice((-90_000, -5_000, 5_000, 3_000_000))


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group, and in the groups in it."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves_of(inner)
    else:
        yield error


@contextmanager
def _folder() -> Iterator[Path]:
    """A home in memory, where there is such a place."""
    place = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    home = Path(tempfile.mkdtemp(prefix="koboshi-sim-", dir=place))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _logging_to(history: History) -> Iterator[None]:
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
