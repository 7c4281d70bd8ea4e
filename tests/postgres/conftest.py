"""What is PostgreSQL's own: the dialect, the connections and what happens when they break."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from koboshi.clock import SystemClock
from koboshi.stores.postgres.statements import statements
from koboshi.stores.postgres.wire import Wire
from tests.harness.backends import NewBackend
from tests.harness.homes import Home
from tests.harness.postgres import server_socket
from tests.harness.postgres_backend import DATABASES, Database, PostgresBackend
from tests.harness.proxy import Proxy
from tests.harness.store_fixtures import home, open_home

__all__ = ["home", "open_home"]


@pytest.fixture(scope="session")
def new_backend() -> NewBackend:
    return PostgresBackend


@pytest.fixture
def database() -> Iterator[Database]:
    """An empty database, for tests that open stores on it themselves."""
    taken = DATABASES.take()
    yield taken
    DATABASES.give_back(taken)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Stands between a store and the server of the tests."""
    # The name of a socket must be short, and the folder of a test is not.
    folder = Path(tempfile.mkdtemp(prefix="kp-", dir="/tmp"))
    made = Proxy(server_socket(), folder)
    yield made
    made.close()
    shutil.rmtree(folder)


@pytest.fixture
async def proxied(database: Database, proxy: Proxy, tmp_path: Path) -> AsyncIterator[Home]:
    """A home whose connections go through the proxy."""
    url = make_conninfo(database.url, host=str(proxy.folder))
    connect = partial(Wire.connect, url, statements(), SystemClock())
    home = Home(backend=PostgresBackend(tmp_path / "home", database=database, connect=connect))
    await home.boot()
    yield home
    proxy.accept()
    proxy.flow()
    await home.store.close()
