"""What any store must hold: every test of this folder runs on every store that there is.

A new store is one class in `tests/harness/backends.py` and one name in its `BACKENDS`.
"""

import pytest

from tests.harness.backends import BACKENDS, NewBackend
from tests.harness.store_fixtures import hints_are_dropped, home, keys_are_named, open_home

__all__ = ["hints_are_dropped", "home", "keys_are_named", "open_home"]


@pytest.fixture(params=sorted(BACKENDS), scope="session")
def new_backend(request: pytest.FixtureRequest) -> NewBackend:
    """The store under test: makes the backend of a home in a folder of its own."""
    return BACKENDS[request.param]
