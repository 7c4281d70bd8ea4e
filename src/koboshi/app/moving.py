"""Moving the rows of a home between its file and PostgreSQL."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from koboshi.app.stores import MISSING
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.domain.errors import StoreRefused
from koboshi.stores import faults
from koboshi.stores.faults import CrashPoint

if TYPE_CHECKING:
    from koboshi.stores.moving.move import MovedRows


def moved(
    config: Config, url: str, *, accepts_loss: bool, tell: Callable[[str, int], None]
) -> "MovedRows":
    """Move the rows to the server at `url`, or from the configured one to the file if it is empty.
    Raises HomeHeld, StoreRefused and StoreFailed."""
    try:
        from koboshi.stores.moving.move import Mover
    except ImportError as error:
        raise StoreRefused(MISSING) from error
    mover = Mover(
        home=config.home,
        url=url or config.store.url,
        clock=SystemClock(),
        crash_point=CrashPoint(os.environ.get(faults.VARIABLE, "")),
        accepts_loss=accepts_loss,
        tell=tell,
    )
    return mover.to_server() if url else mover.to_file()
