"""Platforms of other distributions: entry points `koboshi.channels`.

An entry point is called with a `ChannelSetting` and gives a `Channel`. What it raises makes its
channel down, with the reason, and no other one.
"""

import json
from collections.abc import AsyncIterator

from koboshi.app.platforms.platform import ChannelSetup, KnownPlatform, PlatformFinding, ProbeFailed
from koboshi.app.plugins import find_plugins
from koboshi.channels.common.absent import AbsentChannel
from koboshi.config import PlatformConfig
from koboshi.config.platforms import ENTRY_POINTS
from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Channel
from koboshi.ports.plugin import ChannelSetting, Plugin


def foreign_channel(config: PlatformConfig, setup: ChannelSetup) -> Channel:
    """The channel of a plug-in, or one that is down and says why."""
    name = ChannelName(config.name)
    try:
        make = _plugin_of(config).load()
        if not callable(make):
            raise ProbeFailed(f"the entry point {config.platform} cannot be called")
        made: Channel = make(_setting_of(config, setup))
        if made.name != name:
            raise ProbeFailed(f"the plug-in made a channel {made.name!r}, not {name!r}")
    except ProbeFailed as error:
        return AbsentChannel(name=name, reason=str(error))
    except (Exception, SystemExit) as error:  # foreign code; the others go on
        reason = f"the plug-in for {config.platform} failed: {type(error).__name__}: {error}"
        return AbsentChannel(name=name, reason=reason)
    return made


async def try_foreign(config: PlatformConfig) -> str:
    """Which distribution it is of. Raises ProbeFailed if there is none or more than one."""
    return f"the platform is of {_plugin_of(config).distribution}; it is tried by koboshi run"


async def examine_foreign(config: PlatformConfig) -> AsyncIterator[PlatformFinding]:
    yield PlatformFinding(severity="note", words=await try_foreign(config))


PLATFORM = KnownPlatform(build=foreign_channel, probe=try_foreign, examine=examine_foreign)


def _plugin_of(config: PlatformConfig) -> Plugin:
    named = [plugin for plugin in find_plugins(ENTRY_POINTS) if plugin.name == config.platform]
    if not named:
        raise ProbeFailed(f"no installed package brings the platform {config.platform}")
    if len(named) > 1:
        listed = ", ".join(sorted(plugin.distribution for plugin in named))
        words = f"more than one package brings {config.platform}: {listed}; uninstall the others"
        raise ProbeFailed(words)
    return named[0]


def _setting_of(config: PlatformConfig, setup: ChannelSetup) -> ChannelSetting:
    table = config.free_table
    return ChannelSetting(
        name=ChannelName(config.name),
        token=None if config.token is None else config.token.reveal(),
        settings={} if table is None else json.loads(table.reveal()),
        ambiguous=config.ambiguous,
        rate_per_second=config.rate_per_second,
        home=setup.home,
        message_chars_max=setup.limits.message_chars_max,
        file_bytes_max=setup.limits.file_bytes_max,
        commands=setup.commands,
        clock=setup.clock,
        on_back=setup.on_back,
        watermarks=setup.watermarks_of(config.name),
    )
