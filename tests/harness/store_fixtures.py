"""What the tests of a store share. A folder's conftest.py imports these fixtures and adds
`new_backend`, which says on which store its homes are."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from koboshi.domain.people import PairingLimits
from koboshi.domain.recovery import BootConfig
from koboshi.kernel.sql import without_hints
from koboshi.stores.sqlite.transaction import QUERIES
from tests.harness.backends import Limits, NewBackend
from tests.harness.homes import Home, OpenHome, a_world
from tests.harness.named_keys import refuse_unnamed


@pytest.fixture(autouse=True)
def keys_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb that writes to a session names its key, in every test of the folder."""
    refuse_unnamed(monkeypatch)


@pytest.fixture(autouse=True, scope="session")
def hints_are_dropped() -> Iterator[None]:
    """KOBOSHI_TEST_WITHOUT_HINTS=1 runs the tests of the folder on queries without any `INDEXED
    BY`. They must pass as they do with it, but for those that look at plans."""
    if not os.environ.get("KOBOSHI_TEST_WITHOUT_HINTS"):
        yield
        return
    plain = {name: without_hints(query) for name, query in QUERIES.items()}
    with patch.dict(QUERIES, plain):
        yield


@pytest.fixture
async def open_home(new_backend: NewBackend, tmp_path: Path) -> AsyncIterator[OpenHome]:
    """Opens a home of its own at each call; all are closed at the end of the test."""
    homes: list[Home] = []

    async def open_one(
        world: BootConfig | None = None, pairing: PairingLimits | None = None, **limits: Any
    ) -> Home:
        home = Home(
            backend=new_backend(tmp_path / f"home-{len(homes)}"),
            world=world or a_world(),
            limits=Limits(pairing=pairing or PairingLimits(), **limits),
        )
        await home.boot()
        homes.append(home)
        return home

    yield open_one
    for home in homes:
        await home.store.close()
        home.backend.done()


@pytest.fixture
async def home(open_home: OpenHome) -> Home:
    return await open_home()
