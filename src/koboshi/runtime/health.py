"""Whether this gateway lives, and whether it is ready to serve."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from anyio import Event

from koboshi.control.neighbours import Neighbour
from koboshi.domain.hearing import Hearing, hearing_words
from koboshi.ports.store import Store
from koboshi.runtime.heartbeat import Heartbeat

STUCK_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayHealth:
    store: Store
    heartbeat: Heartbeat
    has_recovered: Event
    stop_asked: Event
    channels: Callable[[], Mapping[str, str | None]] = dict
    """The channels that must be reachable, and why one is not."""
    hearings: Callable[[], Mapping[str, Hearing]] = dict
    """How well each of them hears its platform."""
    neighbours: Callable[[], tuple[Neighbour, ...]] = tuple
    """Optional services. The gateway serves without them: messages are accepted and kept."""

    def is_alive(self) -> bool:
        """The event loop answers (this runs on it), and the writer has committed lately, or waits
        for a reason that a restart would not fix."""
        return self.heartbeat.age_seconds() < STUCK_SECONDS or self.store.trouble is not None

    def readiness(self) -> tuple[tuple[str, bool, str], ...]:
        """Each check, whether it holds, and why not."""
        trouble = self.store.failure or self.store.trouble
        recovered = self.has_recovered.is_set()
        stopping = self.stop_asked.is_set()
        return (
            ("store", trouble is None, trouble or "writes are committed"),
            ("alive", self.is_alive(), "" if self.is_alive() else "no commit for a while"),
            ("recovery", recovered, "done" if recovered else "still looking at the last boot"),
            ("serving", not stopping, "stopping" if stopping else "serving"),
            *self._channels(),
        )

    def heard(self) -> dict[str, str]:
        """What there is to say of how well each channel hears."""
        now_ms = self.heartbeat.clock.now_ms()
        said = {name: hearing_words(each, now_ms) for name, each in self.hearings().items()}
        return {name: words for name, words in said.items() if words}

    def _channels(self) -> Iterator[tuple[str, bool, str]]:
        heard = self.heard()
        for name, why in self.channels().items():
            words = "; ".join(filter(None, ("connected", heard.get(name, ""))))
            yield name, why is None, why or words
