"""Moving in: staged, committed, placed."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from koboshi.app.moving_in.found import NotMovable, OtherHome
from koboshi.app.moving_in.hermes import read_hermes
from koboshi.app.moving_in.openclaw import read_openclaw
from koboshi.app.moving_in.placing import CONFIG, STAGED, finish_moves, forget
from koboshi.app.moving_in.staging import Baggage, stage
from koboshi.app.owned import owned_store
from koboshi.config import Config, ConfigError, load
from koboshi.domain.incoming import MovedIn
from koboshi.stores import faults
from koboshi.stores.faults import CrashPoint

READERS: Mapping[str, tuple[str, Callable[[Path], OtherHome]]] = {
    "hermes": ("~/.hermes", read_hermes),
    "openclaw": ("~/.openclaw", read_openclaw),
}
"""Where each is by default, and what reads it."""


async def move_in(config: Config, baggage: Baggage) -> MovedIn:
    """Move it in with this process as the owner of the home: all of it, or nothing. Raises
    HomeHeld, NotMovable and what the store raises."""
    reach = CrashPoint(os.environ.get(faults.VARIABLE, "")).reach
    home, incoming = config.home, baggage.incoming
    async with owned_store(config, who="koboshi migrate") as store:
        await finish_moves(home, store, reach)
        stage(home, baggage)
        reach("migrate.staged", "after")
        try:
            _check_config(config, home / STAGED / incoming.digest / CONFIG)
        except NotMovable:
            forget(home, ())
            raise
        moved = await store.imports.commit(incoming)
        await finish_moves(home, store, reach)
    return moved


def _check_config(config: Config, file: Path) -> None:
    """Raises NotMovable if what moves in makes no configuration of ours."""
    try:
        load(config.home, file, os.environ, needs_secrets=False)
    except ConfigError as error:
        raise NotMovable(f"what was found makes no configuration of ours: {error}") from error
