"""Gateways with agents; nothing of them outlives the test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from koboshi.domain.ids import ProcessId
from koboshi.processes.runners import LocalRunners
from tests.agents.agency import Agency
from tests.harness.process import GatewayProcess


@asynccontextmanager
async def cleared(one: Agency) -> AsyncIterator[Agency]:
    """The gateway and its agents are ended with the block."""
    try:
        yield one
    finally:
        if one.gateway.is_running:
            one.gateway.kill()
        folder = one.home / "processes"
        runners = LocalRunners(folder)
        for place in sorted(folder.glob("[0-9]*")) if folder.exists() else ():
            await runners.end(ProcessId(int(place.name)), grace_s=0)


@pytest.fixture
async def agency(tmp_path: Path) -> AsyncIterator[Agency]:
    async with cleared(Agency(GatewayProcess(tmp_path / "home"))) as one:
        yield one
