"""The tests of the runtime: real SQLite, a platform in memory, and time that does not pass."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.harness.virtual import VirtualLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], VirtualLoop]]:
    return {"virtual": VirtualLoop}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return home
