"""A look at what is kept back for a full disk, without a gateway."""

from pathlib import Path

from koboshi.ports.room import Reserve
from koboshi.stores.sqlite.room import look_at_reserve


def reserve_in(home: Path) -> Reserve:
    return look_at_reserve(home)
