"""The loops of a gateway, but for the work on turns."""

from collections.abc import Mapping, Sequence
from functools import partial

from anyio import Event

from koboshi.app.boot_config import redactor_of
from koboshi.app.builders.shared import Shared
from koboshi.commands.run import respond
from koboshi.domain.burial import BEAT_PART, WAIT_PARTS
from koboshi.domain.ids import ChannelName, ProcessId
from koboshi.domain.outbox import DeliveryLimits
from koboshi.ports.channel import Channel
from koboshi.processes.ends import output_of
from koboshi.runtime.burying import Burying
from koboshi.runtime.deliver import POLL_EVERYTHING_SECONDS, Deliver
from koboshi.runtime.dispatch import Dispatch
from koboshi.runtime.goals import GoalLoop
from koboshi.runtime.health import GatewayHealth
from koboshi.runtime.heartbeat import Heartbeat
from koboshi.runtime.intake import Intake
from koboshi.runtime.memory import count_kills
from koboshi.runtime.meter import labelled
from koboshi.runtime.model_chain import FirstWell
from koboshi.runtime.owning import Owning
from koboshi.runtime.rescue import Rescue
from koboshi.runtime.schedules import ScheduleLoop
from koboshi.runtime.slots import CommandSlots, Slots
from koboshi.runtime.turn import TurnRunner

LOOK_SECONDS, LOOK_PART = 1.0, 1 / 10
"""Between two looks at the other nodes: so long, or a part of a short lease."""


def heartbeat(shared: Shared) -> Heartbeat:
    return Heartbeat(
        store=shared.store,
        clock=shared.clock,
        worker_id=shared.worker.worker_id,
        every_seconds=_beat_seconds(shared),
        wakeups=shared.wakeups,
        restart_asked=Event(),
        count_kills=count_kills,
        last_beat=shared.clock.monotonic(),
        trust=shared.trust,
    )


def _beat_seconds(shared: Shared) -> float:
    if shared.store.is_shared:
        return shared.config.store.lease_seconds * BEAT_PART
    return shared.config.limits.heartbeat_seconds


def burying(shared: Shared, beating: Heartbeat, rescuing: Rescue) -> Burying | None:
    """What looks after the other nodes; None where there can be none."""
    if not shared.store.is_shared:
        return None
    lease_seconds = shared.config.store.lease_seconds
    made = Burying(
        store=shared.store,
        clock=shared.clock,
        worker_id=shared.worker.worker_id,
        lease_seconds=lease_seconds,
        look_seconds=min(LOOK_SECONDS, lease_seconds * LOOK_PART),
        rescue=partial(rescuing.rescue, is_boot=False),
        on_buried=partial(shared.meter.count, "koboshi_burials_total", labelled()),
    )
    beating.on_beat = made.has_beaten
    return made


def owning(shared: Shared) -> Owning | None:
    """Who has which account; None where no other gateway can."""
    if not shared.store.is_shared:
        return None
    return Owning(
        store=shared.store,
        wakeups=shared.wakeups,
        clock=shared.clock,
        worker_id=shared.worker.worker_id,
        trust=shared.trust,
        drain=shared.drain,
        poll_seconds=shared.poll_seconds,
        down_seconds=shared.config.store.lease_seconds * WAIT_PARTS,
    )


def health(
    shared: Shared, beating: Heartbeat, reached: Sequence[Channel], owner: Owning | None
) -> GatewayHealth:
    """`reached` are the channels that have to be reached; more may be added."""
    return GatewayHealth(
        store=shared.store,
        heartbeat=beating,
        has_recovered=shared.has_recovered,
        stop_asked=shared.drain.asked,
        channels=lambda: {channel.name: _trouble(channel, owner) for channel in reached},
        hearings=lambda: {channel.name: channel.hearing for channel in reached},
        neighbours=shared.neighbours.told,
    )


def _trouble(channel: Channel, owner: Owning | None) -> str | None:
    """Why a channel is out of reach. One that another gateway has need not be reached here."""
    is_ours = owner is None or owner.owns(channel.name)
    return channel.trouble if is_ours else None


def intake(shared: Shared, owner: Owning | None, channels: Mapping[ChannelName, Channel]) -> Intake:
    redact = redactor_of(shared.config)

    async def output(process_id: ProcessId) -> str:
        return redact(await output_of(shared.runners, process_id))

    made = Intake(
        store=shared.store,
        clock=shared.clock,
        respond=respond,
        output_of=output,
        why_not_restart=shared.why_not_restart,
        owning=owner,
    )
    if owner is not None:
        owner.on_taken_elsewhere = made.opening.accept
        owner.exclusive.update(
            name for name, each in channels.items() if each.abilities.exclusive and each.account
        )
    return made


def dispatch(shared: Shared, runner: TurnRunner) -> Dispatch:
    gateway, poll_seconds = shared.config.gateway, shared.poll_seconds
    commands = CommandSlots(
        processes=shared.store.processes,
        wakeups=shared.wakeups,
        commands_max=gateway.max_commands,
        poll_seconds=poll_seconds,
    )
    return Dispatch(
        store=shared.store,
        wakeups=shared.wakeups,
        runner=runner,
        worker_id=shared.worker.worker_id,
        slots=Slots(slots_max=gateway.max_turns, wakeups=shared.wakeups, commands=commands),
        open_turns_max=gateway.max_open_turns,
        poll_seconds=poll_seconds,
        drain=shared.drain,
        trust=shared.trust,
    )


def deliver(
    shared: Shared, channels: Mapping[ChannelName, Channel], owner: Owning | None
) -> Deliver:
    limits, is_shared = shared.config.limits, shared.store.is_shared
    made = Deliver(
        store=shared.store,
        wakeups=shared.wakeups,
        clock=shared.clock,
        channels=channels,
        worker_id=shared.worker.worker_id,
        limits=DeliveryLimits(age_ms_max=limits.delivery_age_ms_max),
        in_flight_max=limits.deliveries_in_flight_max,
        trust=shared.trust,
        poll_seconds=shared.poll_seconds if is_shared else POLL_EVERYTHING_SECONDS,
        looks_at_all=is_shared,
        shelf=shared.shelf,
    )
    if owner is not None:
        made.owns, owner.sends_under_way = owner.owns, made.sends_on
    return made


def rescue(shared: Shared) -> Rescue:
    limits = shared.config.limits
    return Rescue(
        store=shared.store,
        worker_id=shared.worker.worker_id,
        at_once=limits.recoveries_at_once,
        every_seconds=shared.poll_seconds if shared.store.is_shared else limits.rescue_seconds,
        has_looked=shared.has_recovered,
    )


def schedules(shared: Shared) -> ScheduleLoop:
    return ScheduleLoop(
        store=shared.store,
        wakeups=shared.wakeups,
        drain=shared.drain,
        poll_seconds=shared.config.limits.schedule_poll_seconds,
    )


def goals(shared: Shared) -> GoalLoop:
    return GoalLoop(
        store=shared.store,
        model=FirstWell(chain=shared.chain),
        wakeups=shared.wakeups,
        worker_id=shared.worker.worker_id,
        drain=shared.drain,
        poll_seconds=shared.config.limits.schedule_poll_seconds,
    )
