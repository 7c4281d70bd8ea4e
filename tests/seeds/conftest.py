"""The reported symptoms, one file per source document. Time is virtual, except where a real process
is killed."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.harness.virtual import VirtualLoop
from tests.runtime.gateway import Setting


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.get_closest_marker("crash") is not None:
        return {"real": asyncio.SelectorEventLoop}
    return {"virtual": VirtualLoop}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return home


@pytest.fixture
def setting(home: Path) -> Setting:
    return Setting(home=home)
