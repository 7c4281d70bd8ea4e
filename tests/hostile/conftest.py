"""Input from people, programs and pages that mean no good, or do not know better."""

from pathlib import Path

import pytest

from tests.harness.tally import WANTS_ALL

HERE = Path(__file__).parent
CAMPAIGN_S = 1_800


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if WANTS_ALL else []:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(CAMPAIGN_S))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"
