"""How a store is opened, whichever it is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import tzinfo

from koboshi.domain.backlog import BacklogLimits
from koboshi.domain.burial import LEASE_SECONDS, WAIT_PARTS
from koboshi.domain.child import ChildLimits
from koboshi.domain.goal import GoalLimits
from koboshi.domain.memory import MemoryLimits
from koboshi.domain.people import PairingLimits
from koboshi.domain.recovery import BootConfig
from koboshi.domain.watch import Notify, ReportLimits
from koboshi.kernel.context import VerbContext, new_send_id
from koboshi.kernel.pairing import fresh_code
from koboshi.stores.zones import zone_of_name


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """How a store is opened; the defaults are those of a gateway."""

    lock_wait_seconds: float = 30.0
    who: str = "a koboshi gateway"
    accepts_loss: bool = False
    may_replace: bool = True
    """Whether a damaged file may be set aside for a backup, and owed deliveries held where the
    database went back; who only looks changes nothing."""
    keeps_reserve: bool = False
    """Whether room is kept back for a full disk; who owns the home for a moment needs none."""
    hold_asked_by: str = ""
    """Who asked that everything owed is held, once for each; empty without a request."""
    batch_max: int = 512
    crash_at: str = ""
    waiting_max: int = 1_000
    question_age_ms_max: int = 24 * 3_600_000
    context_steps_max: int = 1_000
    notify: Notify = Notify.ALL
    report_limits: ReportLimits = field(default_factory=ReportLimits)
    backlog: BacklogLimits = field(default_factory=BacklogLimits)
    pairing: PairingLimits = field(default_factory=PairingLimits)
    new_code: Callable[[], str] = fresh_code
    new_send_id: Callable[[], str] = new_send_id
    zone_named: Callable[[str], tzinfo] = zone_of_name
    zone_rules: str = ""
    goal_limits: GoalLimits = field(default_factory=GoalLimits)
    child_limits: ChildLimits = field(default_factory=ChildLimits)
    schedules_max: int = 20
    memory_limits: MemoryLimits = field(default_factory=MemoryLimits)
    node: str = ""
    """The name of this machine among the gateways of one database; empty: that of the host, and not
    checked."""
    fingerprint: str = ""
    """How this gateway is configured, for the other nodes."""
    is_workdir_shared: bool = False
    lease_seconds: float = LEASE_SECONDS
    """How long a gateway that gives no sign of life is believed to live."""


def context_of(
    world: BootConfig, options: StoreOptions, own_id: str, *, is_shared: bool = False
) -> VerbContext:
    """What the verbs of a store need, in the home with this id."""
    return VerbContext(
        home=own_id,
        node=options.node,
        fingerprint=options.fingerprint,
        is_shared=is_shared,
        is_workdir_shared=options.is_workdir_shared,
        node_wait_ms=round(options.lease_seconds * WAIT_PARTS * 1_000),
        world=world,
        waiting_max=options.waiting_max,
        question_age_ms_max=options.question_age_ms_max,
        context_steps_max=options.context_steps_max,
        notify=options.notify,
        report_limits=options.report_limits,
        backlog=options.backlog,
        pairing=options.pairing,
        new_code=options.new_code,
        new_send_id=options.new_send_id,
        zone_named=options.zone_named,
        zone_rules=options.zone_rules,
        goal_limits=options.goal_limits,
        child_limits=options.child_limits,
        schedules_max=options.schedules_max,
        memory_limits=options.memory_limits,
    )
