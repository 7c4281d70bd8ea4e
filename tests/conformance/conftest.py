"""What any store must hold: every test of this folder runs on every store that there is.

A new store is one class beside `tests/harness/backends.py` and one name in `both_stores.py`.
"""

import pytest

from tests.harness.backends import NewBackend
from tests.harness.both_stores import BACKENDS
from tests.harness.store_fixtures import hints_are_dropped, home, keys_are_named, open_home

__all__ = ["hints_are_dropped", "home", "keys_are_named", "open_home"]


@pytest.fixture(params=sorted(BACKENDS), scope="session")
def new_backend(request: pytest.FixtureRequest) -> NewBackend:
    """The store under test: makes the backend of a home in a folder of its own."""
    return BACKENDS[request.param]
