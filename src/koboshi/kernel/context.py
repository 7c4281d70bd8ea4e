"""What every verb stands on beside its transaction."""

from collections.abc import Callable
from dataclasses import dataclass, field

from koboshi.domain.backlog import BacklogLimits
from koboshi.domain.ids import ChannelName, WorkerId
from koboshi.domain.people import PairingLimits
from koboshi.domain.recovery import BootConfig
from koboshi.domain.session import Listen
from koboshi.domain.watch import Notify, ReportLimits
from koboshi.kernel.transaction import Reading


@dataclass(slots=True, kw_only=True)
class VerbContext:
    world: BootConfig
    waiting_max: int
    """How many messages may wait in one session."""
    question_age_ms_max: int
    """How long a question of the gateway stays open."""
    context_steps_max: int
    """How many steps of earlier turns a claimed turn is given."""
    notify: Notify
    """What a person hears of the ends that the agent does not tell them."""
    report_limits: ReportLimits
    pairing: PairingLimits
    new_code: Callable[[], str]
    """Makes the code that a stranger gets."""
    backlog: BacklogLimits = field(default_factory=BacklogLimits)
    """How much of what was sent before a boot one turn answers."""
    home: str = ""
    """The random id of the home that this process owns."""
    node: str = ""
    """The machine, once this boot has its row."""
    worker_id: WorkerId | None = None
    """This boot, once it has its row."""
    is_draining: bool = False
    """This boot takes up nothing new any more."""

    def allows(self, tx: Reading, channel: ChannelName, person: str) -> bool:
        """Whether the person may use the gateway: the one place that decides it, for a message
        that arrives, for a claim and for recovery alike.

        Those whom the configuration allows cost nothing; for the others it is one row by its key,
        read in the transaction that acts on it, so that no copy can be out of date.
        """
        if self.world.is_allowed(channel, person):
            return True
        return tx.row("person_paired", channel=channel, person=person) is not None

    def listen_on(self, channel: ChannelName) -> Listen:
        """What of a group is for the agent, where the session does not say otherwise."""
        return Listen(self.world.listen.get(channel, Listen.MENTION))

    def serves(self, tx: Reading, channel: str, person: str) -> bool:
        """Whether the configuration still has the channel, and the person is allowed on it."""
        name = ChannelName(channel)
        return name in self.world.channels and self.allows(tx, name, person)
