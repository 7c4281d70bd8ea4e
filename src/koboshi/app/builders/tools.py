"""The tools that a gateway brings along."""

import os
from collections.abc import Callable
from functools import partial

from koboshi.app.boot_config import environment_of_commands
from koboshi.app.builders.control import ends_of
from koboshi.app.builders.shared import Shared
from koboshi.control.context import until_written_to
from koboshi.domain.ids import ChannelName, WorkerId
from koboshi.domain.shutdown import Leave
from koboshi.ports.tool import Tool
from koboshi.tools.ask import ASK
from koboshi.tools.files.tools import file_tools
from koboshi.tools.pause import PAUSE
from koboshi.tools.process import ProcessTool
from koboshi.tools.restart import RestartTool
from koboshi.tools.terminal import TerminalTool


def own_tools(shared: Shared, takes_files: Callable[[ChannelName], bool]) -> list[Tool]:
    config = shared.config
    return [
        _terminal(shared),
        _process(shared),
        *file_tools(
            workdir=config.gateway.workdir,
            home=config.home,
            sent_bytes_max=config.limits.sent_file_bytes_max,
            takes_files=takes_files,
        ),
        ASK,
        PAUSE,
        _restart(shared),
    ]


def _terminal(shared: Shared) -> TerminalTool:
    terminal, limits = shared.config.tools.terminal, shared.config.limits
    return TerminalTool(
        processes=shared.store.processes,
        runners=shared.runners,
        clock=shared.clock,
        approval=terminal.approval,
        workdir=str(shared.config.gateway.workdir),
        timeout_seconds=terminal.timeout_seconds,
        background_seconds=limits.background_seconds_max,
        environment=environment_of_commands(os.environ),
        store_end=ends_of(shared.config, shared.store, shared.runners, shared.clock).store,
        background_max=limits.background_per_session_max,
    )


def _process(shared: Shared) -> ProcessTool:
    return ProcessTool(
        processes=shared.store.processes,
        runners=shared.runners,
        clock=shared.clock,
        store_end=ends_of(shared.config, shared.store, shared.runners, shared.clock).store,
        until_written_to=partial(
            until_written_to, shared.store, shared.wakeups, shared.config.limits.poll_seconds
        ),
        booted_ms=shared.worker.started_ms,
    )


def _restart(shared: Shared) -> RestartTool:
    """The tool by which the agent starts its own gateway again."""

    async def request(worker_id: WorkerId, by: str) -> None:
        """Nothing is claimed from here on, the agent's own turn least of all."""
        await shared.store.workers.request_restart(worker_id, by)
        shared.drain.ask(Leave.RESTART)

    return RestartTool(
        worker=shared.worker,
        request=request,
        restarted_by=shared.store.workers.restarted_by,
        why_not=shared.why_not_restart,
    )
