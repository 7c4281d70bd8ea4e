"""Input from people, programs and pages that mean no good, or do not know better."""

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"
