"""Two and three real gateways on one PostgreSQL."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.harness.homes import Home
from tests.harness.postgres import Cluster, NoPostgres, a_cluster, refuse_or_skip
from tests.harness.postgres_backend import DATABASES, Database, PostgresBackend


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """A database with its tables, and with the trigger that refuses writes without their keys."""
    taken = DATABASES.take()
    home = Home(backend=PostgresBackend(tmp_path / "first", database=taken))
    await home.open()
    await home.store.close()
    yield taken
    DATABASES.give_back(taken)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server that may be killed and restarted: it is not the one of other tests."""
    try:
        made = a_cluster()
    except NoPostgres as error:
        refuse_or_skip(str(error))
    yield made
    made.remove()
