"""How a gateway is run, as far as the configuration does not say it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from koboshi.app.update_start import GoingBack, OnTrial
from koboshi.channels.common.held_listeners import HeldListeners
from koboshi.runtime.host import Surroundings
from koboshi.runtime.notify import Notifier


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    lock_wait_seconds: float
    accepts_loss: bool = False
    holds_outbox: bool = False
    """Whether nothing owed by now is sent before the operator releases it."""
    announce: Callable[[str, Callable[[], str | None]], None] = lambda _address, _make_link: None
    """Told the address, and how to make a link that lets a browser in, once it serves."""
    on_stopping: Callable[[], None] = lambda: None
    """Called when the stop begins, to bound it from outside."""
    wrong_configuration: Callable[[], str] = str
    """Reads the configuration again, and says why a start on it would be refused; empty if it would
    not. It reads files, and is called in a thread."""
    notifier: Notifier = field(default_factory=Notifier)
    surroundings: Surroundings = field(default_factory=Surroundings)
    listeners: HeldListeners = field(default_factory=HeldListeners)
    """Sockets that the gateway before this one has left, and that the next one gets."""
    is_supervised: bool = False
    """Whether a parent of ours starts the gateway again whenever it dies."""
    update: OnTrial | GoingBack | None = None
    """What this start has to do with an update."""
