"""Pieces of the kernel by themselves. Where one needs a database, it is SQLite."""

import pytest

from tests.harness.backends import NewBackend, SqliteBackend
from tests.harness.store_fixtures import hints_are_dropped, home, keys_are_named, open_home

__all__ = ["hints_are_dropped", "home", "keys_are_named", "open_home"]


@pytest.fixture(scope="session")
def new_backend() -> NewBackend:
    return SqliteBackend
