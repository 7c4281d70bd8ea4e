"""What every verb stands on beside its transaction."""

from dataclasses import dataclass

from koboshi.domain.ids import ChannelName, WorkerId
from koboshi.domain.recovery import World
from koboshi.domain.watch import Notify, ReportLimits


@dataclass(slots=True, kw_only=True)
class Ground:
    world: World
    waiting_max: int
    """How many messages may wait in one session."""
    question_age_ms_max: int
    """How long a question of the gateway stays open."""
    context_steps_max: int
    """How many steps of earlier turns a claimed turn is given."""
    notify: Notify
    """What a person hears of the ends that no turn hears of."""
    report_limits: ReportLimits
    worker_id: WorkerId | None = None
    """This boot, once it has its row."""
    is_draining: bool = False
    """This boot takes up nothing new any more."""

    def serves(self, channel: str, person: str) -> bool:
        """Whether the configuration still has the channel and allows the person on it."""
        name = ChannelName(channel)
        return name in self.world.channels and self.world.is_allowed(name, person)
