"""Disks, descriptors and power that fail. Each campaign is a process of its own."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.crash)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"
