"""Homes for the conformance suite: every test that takes `open_home` or `home` runs on every
backend."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from koboshi.domain.people import PairingLimits
from koboshi.domain.recovery import BootConfig
from tests.harness.named_keys import refuse_unnamed
from tests.store.homes import BACKENDS, Home, Limits, OpenHome, a_world


@pytest.fixture(autouse=True)
def _keys_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb that writes to a session names its key, in every test of this folder."""
    refuse_unnamed(monkeypatch)


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
