"""The slots of a gateway, as its configuration bounds them."""

from koboshi.config import Config
from koboshi.ports.store import Processes
from koboshi.ports.wakeups import Wakeups
from koboshi.runtime.slots import CommandSlots, Slots


def slots_of(config: Config, processes: Processes, wakeups: Wakeups) -> Slots:
    commands = CommandSlots(
        processes=processes,
        wakeups=wakeups,
        commands_max=config.gateway.max_commands,
        poll_seconds=config.limits.poll_seconds,
    )
    return Slots(slots_max=config.gateway.max_turns, wakeups=wakeups, commands=commands)
