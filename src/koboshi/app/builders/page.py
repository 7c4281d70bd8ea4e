"""The page that the web channel serves, and the bounds of that channel."""

import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

from koboshi import __version__
from koboshi.app.builders.shared import SHARED_POLL_SECONDS
from koboshi.channels.web.limits import WebLimits
from koboshi.channels.web.names import Names
from koboshi.channels.web.pages import Pages
from koboshi.commands.menu import command_lines
from koboshi.config import Config, WebConfig, describe
from koboshi.control.neighbours import ToolLine
from koboshi.dashboard.app import Ask, Dashboard
from koboshi.dashboard.describe import SHAPES, paths
from koboshi.dashboard.files import FOLDER, PAGE_PATHS
from koboshi.dashboard.operations import KILL_PATH
from koboshi.domain.ids import ChannelName

LAG_SECONDS = 10.0
"""No transaction of a gateway takes longer."""


def web_limits(config: Config, *, is_shared: bool = False) -> WebLimits:
    limits = config.limits
    return WebLimits(
        body_bytes_max=limits.request_bytes_max,
        message_chars_max=limits.message_chars_max,
        route_chars_max=limits.route_chars_max,
        body_s=limits.http_read_seconds,
        file_bytes_max=limits.file_bytes_max,
        file_s=limits.file_seconds,
        poll_s=SHARED_POLL_SECONDS if is_shared else limits.poll_seconds,
        lag_s=LAG_SECONDS if is_shared else None,
        look_s=limits.poll_seconds if is_shared else None,
    )


def names_of(channel: WebConfig) -> Names:
    return Names(host=channel.host, public_url=channel.public_url)


def pages_of(
    config: Config,
    channel: ChannelName,
    ask: Ask,
    *,
    tools: Callable[[], tuple[ToolLine, ...]],
    is_supervised: bool,
) -> Pages:
    """`ask` answers what the command line can ask. Only where a parent would start the gateway
    again may a visitor kill it."""
    dashboard = Dashboard(
        channel=channel,
        version=__version__,
        model=config.gateway.agent or config.model.name,
        ask=ask,
        commands=command_lines(),
        file_bytes_max=config.limits.file_bytes_max,
        settings=partial(describe, config),
        tools=tools,
        kill=_kill_this_process if is_supervised else None,
    )
    return Pages(
        routes=dashboard.routes(),
        open_paths=PAGE_PATHS,
        open_folder=FOLDER,
        paths=partial(_paths, is_supervised=is_supervised),
        shapes=SHAPES,
    )


def _paths(*, is_supervised: bool) -> dict[str, Any]:
    return {path: told for path, told in paths().items() if is_supervised or path != KILL_PATH}


def _kill_this_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
