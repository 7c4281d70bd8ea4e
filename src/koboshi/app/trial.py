"""The start of a version that is on trial, and of the one that takes its place again.

A version on trial opens the store, brings it to its schema and builds the whole gateway, and only
then says that it is ready. Until then it has no worker, so it claims nothing. No channel is open,
so it receives and sends nothing. That is why the copy from before the change of the schema can be
put back: no acknowledged word is missing in it. Once it is ready no copy is ever put back.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

import structlog
from anyio import to_thread
from msgspec.structs import replace

from koboshi.app.start_check import StartRefused, usable_models
from koboshi.app.stores import is_in_home
from koboshi.app.update_start import GoingBack, OnTrial
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.config.sections import StoreConfig
from koboshi.domain.ids import WorkerId
from koboshi.domain.worker import Worker
from koboshi.stores import faults
from koboshi.stores.faults import CrashPoint
from koboshi.stores.sqlite.undoing import undo_migration

log = structlog.get_logger()

REHEARSED = Worker(
    worker_id=WorkerId(0),
    host="",
    pid=0,
    birth="",
    version="",
    started_ms=0,
    heartbeat_ms=0,
    is_draining=False,
    ended_ms=None,
    ended_how=None,
)
"""Stands for the worker while the gateway is built to see whether it can be."""


async def go_back(config: Config, going: GoingBack, lock_wait_seconds: float) -> None:
    """Put the database back, if the other version has changed its schema. On PostgreSQL changes
    only add, so nothing is put back there. Raises HomeHeld and StoreRefused."""
    kept: Path | None = None
    if is_in_home(config):
        kept = await undo_migration(
            config.home, clock=SystemClock(), lock_wait_seconds=lock_wait_seconds
        )
    await to_thread.run_sync(going.finish)
    where = None if kept is None else str(kept)
    log.warning("update_went_back", version=going.version, database_kept=where)


def rehearsed_config(config: Config, folder: Path) -> Config:
    """The configuration of a rehearsal on the copy of a database: no channel, no MCP server, no
    agent, and a folder of its own."""
    return replace(
        config,
        home=folder,
        gateway=replace(config.gateway, workdir=folder / "work", agent=""),
        model=replace(config.model, name="scripted", section=""),
        chain=(),
        store=StoreConfig(),
        channels=(),
        mcp=(),
        agents=(),
    )


def refusals(config: Config) -> tuple[str, ...]:
    """What a start would refuse about the libraries and the boundary; a key that only the service
    knows is no reason."""
    try:
        usable_models(config)
    except StartRefused as refused:
        return refused.others
    return ()


Build: TypeAlias = Callable[[Worker], object]


def crash_point(environ: Mapping[str, str]) -> CrashPoint:
    """Where a test has this process die."""
    return CrashPoint(environ.get(faults.VARIABLE, ""))


async def confirm_when_built(build: Build, trial: OnTrial) -> None:
    """Build the gateway once to see whether it can be built, then say that it is ready. Raises
    what the building raises."""
    build(REHEARSED)
    await to_thread.run_sync(partial(trial.confirm))
    log.info("update_confirmed")
