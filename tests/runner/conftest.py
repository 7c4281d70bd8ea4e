"""Real runners and real commands in a folder of the test; nothing of them outlives it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from koboshi.domain.sandbox import Boundary
from tests.runner.insides import confining
from tests.runner.yard import Yard


@pytest.fixture
async def yard(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Yard]:
    """With a boundary as its parameter, all commands run inside it."""
    boundary = getattr(request, "param", Boundary.NONE)
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    confine = confining(boundary, workdir, tmp_path / "kept")
    yard = Yard(tmp_path / "processes", workdir=workdir, confine=confine)
    yield yard
    await yard.clear()
