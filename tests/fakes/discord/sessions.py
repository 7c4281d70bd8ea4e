"""Sessions of the gateway: numbered events, kept for a while for a client that comes back."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fakes.discord.state import JSON
from tests.fakes.discord.world import Shape

RESUME_S = 180.0
"""How long a session waits for its client: the documentation says "a few minutes"."""
EVENTS_MAX = 20_000


@dataclass(slots=True, eq=False)
class GatewaySession:
    session_id: str
    intents: int
    seq: int = 0
    events: list[tuple[int, str, JSON]] = field(default_factory=list)
    send: Callable[[JSON], None] | None = None
    """To the connection that it is on now; None if there is none."""
    left_at: float | None = None
    is_over: bool = False

    def add(self, name: str, content: JSON) -> None:
        self.seq += 1
        self.events.append((self.seq, name, content))
        del self.events[:-EVENTS_MAX]
        if self.send is not None:
            self.send(as_event(self.seq, name, content))

    def missed(self, since: int) -> list[tuple[int, str, JSON]] | None:
        """The events behind `since`; None if they are not all kept."""
        found = [each for each in self.events if each[0] > since]
        return found if len(found) == self.seq - since else None


@dataclass(slots=True)
class Sessions:
    clock: Callable[[], float]
    resume_s: float = RESUME_S
    all: dict[str, GatewaySession] = field(default_factory=dict)
    identified: int = 0
    resumed: int = 0
    refused: int = 0
    """How many came back to a session that was over."""
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def begin(self, intents: int) -> GatewaySession:
        self.identified += 1
        made = GatewaySession(f"session{next(self._numbers):08x}", intents)
        self.all[made.session_id] = made
        return made

    def dispatch(self, name: str, shape: Shape) -> None:
        """Tell every session that its intents allow to hear it."""
        for session in list(self.all.values()):
            if self.is_good(session):
                content = shape(session.intents)
                if content is not None:
                    session.add(name, content)

    def is_good(self, session: GatewaySession) -> bool:
        if session.is_over:
            return False
        return session.left_at is None or self.clock() - session.left_at <= self.resume_s

    def found(self, session_id: object) -> GatewaySession | None:
        session = self.all.get(session_id) if isinstance(session_id, str) else None
        return session if session is not None and self.is_good(session) else None

    def expire(self) -> None:
        """No session can be resumed any more."""
        for session in self.all.values():
            session.is_over = True


def as_event(seq: int, name: str, content: JSON) -> JSON:
    return {"op": 0, "s": seq, "t": name, "d": content}
