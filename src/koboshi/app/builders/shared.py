"""What the objects of one gateway share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from anyio import Event

from koboshi.app.stores import GatewayStore
from koboshi.boundary.enclosure import Enclosure
from koboshi.channels.common.held_listeners import HeldListeners
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.control.neighbours import Neighbours
from koboshi.domain.shutdown import nothing_against_it
from koboshi.domain.worker import Worker
from koboshi.ports.model import Model
from koboshi.processes.runners import LocalRunners
from koboshi.runtime.drain import Drain
from koboshi.runtime.meter import Meter
from koboshi.runtime.wakeups import LocalWakeups


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    config: Config
    store: GatewayStore
    model: Model
    worker: Worker
    drain: Drain
    clock: SystemClock
    wakeups: LocalWakeups
    has_recovered: Event
    runners: LocalRunners
    enclosure: Enclosure | None
    """What stands around the agent's programs; None: nothing holds here, and it has none."""
    neighbours: Neighbours
    meter: Meter = field(default_factory=Meter)
    listeners: HeldListeners = field(default_factory=HeldListeners)
    is_supervised: bool = False
    """Whether a parent of ours starts the gateway again whenever it dies."""
    why_not_restart: Callable[[], Awaitable[str]] = nothing_against_it
