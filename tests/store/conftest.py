"""Homes for the conformance suite: every test that takes `open_home` or `home` runs on every
backend."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest

from koboshi.domain.people import PairingLimits
from koboshi.domain.recovery import BootConfig
from koboshi.kernel.sql import without_hints
from koboshi.kernel.transaction import QUERIES
from tests.harness.named_keys import refuse_unnamed
from tests.store.homes import BACKENDS, Home, Limits, OpenHome, a_world


@pytest.fixture(autouse=True)
def _keys_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb that writes to a session names its key, in every test of this folder."""
    refuse_unnamed(monkeypatch)


@pytest.fixture(autouse=True, scope="session")
def _hints_are_dropped() -> Iterator[None]:
    """KOBOSHI_TEST_WITHOUT_HINTS=1 runs the tests of this folder on queries without any `INDEXED
    BY`. They must pass as they do with it, but for those that look at plans."""
    if not os.environ.get("KOBOSHI_TEST_WITHOUT_HINTS"):
        yield
        return
    plain = {name: without_hints(query) for name, query in QUERIES.items()}
    with patch.dict(cast("dict[str, str]", QUERIES), plain):
        yield


@pytest.fixture(params=sorted(BACKENDS))
async def open_home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenHome]:
    """Opens a home of its own at each call; all are closed at the end of the test."""
    homes: list[Home] = []

    async def open_one(
        world: BootConfig | None = None, pairing: PairingLimits | None = None, **limits: Any
    ) -> Home:
        home = Home(
            backend=BACKENDS[request.param](tmp_path / f"home-{len(homes)}"),
            world=world or a_world(),
            limits=Limits(pairing=pairing or PairingLimits(), **limits),
        )
        await home.boot()
        homes.append(home)
        return home

    yield open_one
    for home in homes:
        await home.store.close()


@pytest.fixture
async def home(open_home: OpenHome) -> Home:
    return await open_home()
