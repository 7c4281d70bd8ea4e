"""Real runners and real commands in a folder of the test; nothing of them outlives it."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from koboshi.boundary.enclosure import Enclosure, Exceptions
from koboshi.boundary.probe import probe
from koboshi.domain.sandbox import Boundary, Sandbox
from tests.runner.insides import CONFINED, confining
from tests.runner.scene import Scene
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


@pytest.fixture(params=CONFINED)
def scene(yard: Yard, tmp_path: Path, request: pytest.FixtureRequest) -> Scene:
    if reason := getattr(probe(), request.param):
        pytest.skip(f"{request.param}: {reason}")
    home = tmp_path / "gateway"
    home.mkdir()
    (home / "web-token").write_text("a secret of the gateway")
    enclosure = Enclosure(
        sandbox=Sandbox.WORKSPACE,
        boundary=Boundary(request.param),
        workdirs=(str(yard.workdir),),
        kept=str(home / "inside"),
        hidden=(str(home),),
        exceptions=Exceptions(readable=(sys.prefix, sys.base_prefix)),
    )
    return Scene(yard, enclosure, home)
