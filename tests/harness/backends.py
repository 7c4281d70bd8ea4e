"""The stores that the conformance suite runs on.

The suite speaks to `ports.store` only. What differs between stores (where the data is, how a worker
dies, how rows are read past the store) is a `Backend`. A second store is one more class here and
one more name in `tests/harness/both_stores.py`.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeAlias

import apsw

from koboshi.domain.child import ChildLimits
from koboshi.domain.errors import StoreFailed
from koboshi.domain.people import CODE_CHARS, PairingLimits
from koboshi.domain.recovery import BootConfig
from koboshi.domain.watch import Notify, ReportLimits
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.sqlite.file import DATABASE_NAME
from koboshi.stores.sqlite.store import SqliteStore, StoreOptions, open_store
from tests.harness.fake_time import DAY_MS
from tests.harness.rows import Rows, glance

IMPATIENT = StoreOptions(lock_wait_seconds=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    waiting_max: int = 1_000
    question_age_ms_max: int = DAY_MS
    context_steps_max: int = 400
    notify: Notify = Notify.ALL
    reports: ReportLimits = ReportLimits()  # noqa: RUF009  (frozen)
    pairing: PairingLimits = field(default_factory=PairingLimits)
    children: ChildLimits = ChildLimits()  # noqa: RUF009  (frozen)


class Backend(Protocol):
    async def open(
        self,
        world: BootConfig,
        clock: Clock,
        wakeups: Wakeups,
        limits: Limits,
        on_failure: Callable[[StoreFailed], None],
    ) -> Store: ...

    async def kill(self, store: Store) -> None:
        """End the store as a SIGKILL would: what is not durable by now is gone."""
        ...

    def rows(self) -> Rows:
        """Every row of the home as it is stored now, past the store."""
        ...

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        """Carry out statements of plain SQL on the home's database, behind the back of the store.
        Returns the rows of the last one."""
        ...

    def done(self) -> None:
        """The test is over, and its stores are closed."""
        ...


def options_of(base: StoreOptions, limits: Limits, new_code: Callable[[], str]) -> StoreOptions:
    return replace(
        base,
        waiting_max=limits.waiting_max,
        question_age_ms_max=limits.question_age_ms_max,
        context_steps_max=limits.context_steps_max,
        notify=limits.notify,
        report_limits=limits.reports,
        pairing=limits.pairing,
        child_limits=limits.children,
        new_code=new_code,
    )


class Codes:
    """The pairing codes of a home, one after the other."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self) -> str:
        self._count += 1
        return nth_code(self._count)


class SqliteBackend:
    """The first life is in `folder`, each later one in a folder beside it."""

    def __init__(self, folder: Path, options: StoreOptions = IMPATIENT) -> None:
        self._folder = folder
        self._options = options
        self._lives = 1
        self._codes = Codes()
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def path(self) -> Path:
        if self._lives == 1:
            return self._folder
        return self._folder.with_name(f"{self._folder.name}-life-{self._lives}")

    async def open(
        self,
        world: BootConfig,
        clock: Clock,
        wakeups: Wakeups,
        limits: Limits,
        on_failure: Callable[[StoreFailed], None],
    ) -> SqliteStore:
        return await open_store(
            self.path,
            world=world,
            clock=clock,
            wakeups=wakeups,
            options=options_of(self._options, limits, self._codes),
            on_failure=on_failure,
        )

    async def kill(self, store: Store) -> None:
        """The next life begins with the files as they are now, log and all: neither the last
        checkpoint nor anything else that a clean close does is in them."""
        before = self.path
        self._lives += 1
        self.path.mkdir()
        for name in ("koboshi.db", "koboshi.db-wal"):
            if (before / name).exists():
                shutil.copyfile(before / name, self.path / name)
        await store.close()

    def rows(self) -> Rows:
        return glance(self.path)

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        return run_sql(self.path, statements)

    def done(self) -> None:
        """The files go with the folder of the test."""


def run_sql(home: Path, statements: Sequence[str]) -> list[tuple[object, ...]]:
    """Carry out statements on a SQLite file that a store may have open; the rows of the last."""
    connection = apsw.Connection(str(home / DATABASE_NAME))
    connection.set_busy_timeout(5_000)
    connection.execute("PRAGMA foreign_keys = ON")
    try:
        found = [connection.execute(each).fetchall() for each in statements]
    finally:
        connection.close()
    return [tuple(row) for row in found[-1]]


def nth_code(number: int) -> str:
    """The code that the n-th stranger of a home gets; the same at every run."""
    return f"{number}".translate(str.maketrans("01", "XY")).rjust(CODE_CHARS, "A")


NewBackend: TypeAlias = Callable[[Path], Backend]
