"""What every verb needs beside its transaction."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from secrets import token_hex

from koboshi.domain.backlog import BacklogLimits
from koboshi.domain.burial import NODE_WAIT_MS
from koboshi.domain.child import ChildLimits
from koboshi.domain.goal import GoalLimits
from koboshi.domain.ids import ChannelName, WorkerId
from koboshi.domain.memory import MemoryLimits
from koboshi.domain.people import PairingLimits
from koboshi.domain.recovery import BootConfig
from koboshi.domain.role import Role
from koboshi.domain.session import Listen
from koboshi.domain.watch import Notify, ReportLimits
from koboshi.kernel.decode import first_text
from koboshi.kernel.transaction import Reading


def new_send_id() -> str:
    """A new random part of send keys."""
    return token_hex(5)


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
    """Which ends of processes a person is told, if the agent does not tell them."""
    report_limits: ReportLimits
    pairing: PairingLimits
    new_code: Callable[[], str]
    """Makes the pairing code for a stranger."""
    new_send_id: Callable[[], str] = new_send_id
    """Makes the random part of send keys."""
    backlog: BacklogLimits = field(default_factory=BacklogLimits)
    """How many messages from before a boot one turn answers."""
    zone_named: Callable[[str], tzinfo] = lambda _name: UTC
    """The zone of that name; of the empty name that of the gateway. Raises LookupError."""
    zone_rules: str = ""
    """Which edition of the rules of zones that is."""
    goal_limits: GoalLimits = field(default_factory=GoalLimits)
    child_limits: ChildLimits = field(default_factory=ChildLimits)
    schedules_max: int = 20
    """How many schedules a member may have."""
    memory_limits: MemoryLimits = field(default_factory=MemoryLimits)
    home: str = ""
    """The random id of the home that this process owns."""
    node: str = ""
    """The machine, by the name that the operator gave it, or once this boot has its row."""
    fingerprint: str = ""
    """How this gateway is configured (`domain/fingerprint.py`)."""
    is_shared: bool = False
    """Whether gateways of other homes may work on the same database."""
    is_workdir_shared: bool = False
    """Whether all nodes have the same work folder."""
    node_wait_ms: int = NODE_WAIT_MS
    """How long what belongs to another node is left to it."""
    worker_id: WorkerId | None = None
    """This boot, once it has its row."""
    is_draining: bool = False
    """This boot claims no more turns."""

    def zone_or_own(self, name: str) -> tzinfo:
        """The zone of that name; that of the gateway, if the database of zones has lost it. A row
        that names it must not keep the others from being looked at."""
        try:
            return self.zone_named(name)
        except LookupError:
            return self.zone_named("")

    def role_of(self, tx: Reading, channel: ChannelName, person: str) -> Role | None:
        """What the person may decide; None for a person who may not use the gateway. The one place
        that says so: for a message that arrives, for a claim, for recovery and for an approval.

        An owner in the configuration costs no query. For any other person it is one row by its key,
        read in the transaction that acts on it, so no copy can be out of date.
        """
        is_allowed = self.world.is_allowed(channel, person)
        if is_allowed and self.world.is_owner(channel, person):
            return Role.OWNER
        paired = first_text(tx.row("person_role", channel=channel, person=person))
        if paired is not None:
            return Role(paired)
        return Role.MEMBER if is_allowed else None

    def allows(self, tx: Reading, channel: ChannelName, person: str) -> bool:
        """Whether the person may use the gateway."""
        return self.role_of(tx, channel, person) is not None

    def listen_on(self, channel: ChannelName) -> Listen:
        """Which messages of a group the agent hears, unless the session says otherwise."""
        return Listen(self.world.listen.get(channel, Listen.MENTION))

    def serves(self, tx: Reading, channel: str, person: str) -> bool:
        """Whether the configuration still has the channel, and the person is allowed on it."""
        name = ChannelName(channel)
        return name in self.world.channels and self.allows(tx, name, person)
