"""The first result of each channel at the start; without a usable channel the gateway ends."""

from dataclasses import dataclass, field

from anyio import Event

from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.ids import ChannelName


@dataclass(slots=True, kw_only=True)
class Opening:
    channels: int = 1
    """How many are tried."""
    is_known: Event = field(default_factory=Event)
    """One of them has shown its result."""
    is_accepting: Event = field(default_factory=Event)
    """One of them accepts messages, or will as soon as its platform can be reached."""
    _refusals: dict[ChannelName, str] = field(default_factory=dict)

    def accept(self) -> None:
        """A channel accepts messages, or fails only for a passing reason."""
        self.is_known.set()
        self.is_accepting.set()

    def refuse(self, name: ChannelName, error: ChannelUnusable) -> None:
        """A channel cannot work as it is configured. Raises ChannelUnusable with the reasons of all
        channels where none is left: a restart would not help, and a person has to know."""
        self._refusals[name] = str(error)
        if len(self._refusals) >= self.channels:
            raise ChannelUnusable("; ".join(self._refusals.values())) from error
        self.is_known.set()
