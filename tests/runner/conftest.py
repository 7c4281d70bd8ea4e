"""Real runners and real commands in a folder of the test; nothing of them outlives it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.runner.yard import Yard


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    yard = Yard(tmp_path / "processes", workdir=tmp_path)
    yield yard
    await yard.clear()
