"""Which store a configuration means, and opening it. Nothing of PostgreSQL is loaded unless the
configuration names it."""

from collections.abc import Callable, Mapping
from typing import Protocol

from koboshi.config import Config
from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.domain.recovery import BootConfig
from koboshi.domain.timing import Timing
from koboshi.ports.clock import Clock
from koboshi.ports.server import ServerFigures
from koboshi.ports.store import Store
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.faults import CrashPoint
from koboshi.stores.options import StoreOptions
from koboshi.stores.sqlite.store import open_store

MISSING = (
    "store.url names PostgreSQL, and its driver is not installed: pip install 'koboshi[postgres]'"
)


class GatewayStore(Store, Protocol):
    """A store with what a gateway tells of it."""

    warnings: tuple[str, ...]

    @property
    def commit_times(self) -> Timing: ...

    def listen(self) -> None: ...

    @property
    def refusals(self) -> Mapping[str, int]: ...

    @property
    def fenced(self) -> int: ...

    @property
    def figures(self) -> ServerFigures | None: ...

    @property
    def reserve_bytes(self) -> int: ...


def is_in_home(config: Config) -> bool:
    """Whether the store is the file in the home."""
    return not config.store.url


async def open_configured(
    config: Config,
    *,
    world: BootConfig,
    clock: Clock,
    wakeups: Wakeups,
    options: StoreOptions,
    on_failure: Callable[[StoreFailed], None] = lambda _: None,
    on_trouble: Callable[[str], None] = lambda _: None,
) -> GatewayStore:
    """Own the home and open its store. Raises HomeHeld, StoreRefused and StoreFailed."""
    if is_in_home(config):
        return await open_store(
            config.home,
            world=world,
            clock=clock,
            wakeups=wakeups,
            options=options,
            on_failure=on_failure,
            on_trouble=on_trouble,
        )
    try:
        from koboshi.stores.moving.backups import ServerBackups
        from koboshi.stores.postgres.store import open_postgres
    except ImportError as error:
        raise StoreRefused(MISSING) from error
    return await open_postgres(
        config.store.url,
        config.home,
        world=world,
        clock=clock,
        wakeups=wakeups,
        options=options,
        on_failure=on_failure,
        on_trouble=on_trouble,
        backups=ServerBackups(config.store.url, config.home, clock, CrashPoint(options.crash_at)),
    )
