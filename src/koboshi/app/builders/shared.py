"""What the objects of one gateway share."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from anyio import Event

from koboshi.app.billing import billing_of
from koboshi.app.boot_config import chain_links
from koboshi.app.stores import GatewayStore
from koboshi.boundary.enclosure import Enclosure
from koboshi.channels.common.held_listeners import HeldListeners
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.control.neighbours import Neighbours
from koboshi.domain.shutdown import nothing_against_it
from koboshi.domain.worker import Worker
from koboshi.ports.files import NO_SHELF, FileShelf
from koboshi.ports.model import Model
from koboshi.processes.parsers.locked import LockedParsers
from koboshi.processes.runners import LocalRunners
from koboshi.runtime.billing import Billing
from koboshi.runtime.drain import Drain
from koboshi.runtime.file_shelf import StoredShelf
from koboshi.runtime.measured import MeasuredModel
from koboshi.runtime.memory_files import MemoryFiles
from koboshi.runtime.meter import Meter, labelled
from koboshi.runtime.model_chain import ModelChain
from koboshi.runtime.trust import Trust
from koboshi.runtime.wakeups import LocalWakeups

SHARED_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    config: Config
    store: GatewayStore
    models: Mapping[str, Model]
    """By what they are called in the configuration."""
    worker: Worker
    drain: Drain
    clock: SystemClock
    wakeups: LocalWakeups
    has_recovered: Event
    runners: LocalRunners
    enclosure: Enclosure | None
    """What stands around the agent's programs; None: nothing holds here, and it has none."""
    neighbours: Neighbours
    parsers: LockedParsers
    memory_files: MemoryFiles
    trust: Trust = field(default_factory=Trust)
    meter: Meter = field(default_factory=Meter)
    listeners: HeldListeners = field(default_factory=HeldListeners)
    is_supervised: bool = False
    """Whether a parent of ours starts the gateway again whenever it dies."""
    why_not_restart: Callable[[], Awaitable[str]] = nothing_against_it

    @property
    def chain(self) -> ModelChain:
        """The models, with what each request tells of them."""
        config = self.config
        measured = {
            model.called: MeasuredModel(
                model=self.models[model.called],
                meter=self.meter,
                clock=self.clock,
                name=model.name,
                standing=self.neighbours.model,
            )
            for model in config.links
        }
        return ModelChain(
            store=self.store,
            links=chain_links(config),
            models=measured,
            billing=self.billing,
            on_benched=lambda model, trouble: self.meter.count(
                "koboshi_model_benches_total", labelled(model=model, trouble=trouble)
            ),
        )

    @property
    def billing(self) -> Billing | None:
        """What counts what is spent; None if there is no budget."""

        def refused(model: str) -> None:
            self.meter.count("koboshi_budget_refusals_total", labelled(model=model))

        return billing_of(self.config, self.store.budget, refused)

    @property
    def shelf(self) -> FileShelf:
        """What other gateways need of the files of this home, and the other way round."""
        if not self.store.is_shared:
            return NO_SHELF
        return StoredShelf(home=self.config.home, files=self.store.files)

    @property
    def poll_seconds(self) -> float:
        """The longest wait for a hint that may have been lost. Those of other nodes are lost more
        often."""
        return SHARED_POLL_SECONDS if self.store.is_shared else self.config.limits.poll_seconds
