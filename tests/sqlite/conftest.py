"""What is SQLite's own: the file, its writer, lock, backups and plans."""

import pytest

from tests.harness.backends import NewBackend, SqliteBackend
from tests.harness.store_fixtures import hints_are_dropped, home, keys_are_named, open_home

__all__ = ["hints_are_dropped", "home", "keys_are_named", "open_home"]


@pytest.fixture(scope="session")
def new_backend() -> NewBackend:
    return SqliteBackend
