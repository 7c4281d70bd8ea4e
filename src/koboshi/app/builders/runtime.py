"""The loops of a gateway, but for the work on turns."""

from collections.abc import Mapping, Sequence

from anyio import Event

from koboshi.app.boot_config import redactor_of
from koboshi.app.builders.shared import Shared
from koboshi.commands.run import respond
from koboshi.domain.ids import ChannelName, ProcessId
from koboshi.domain.outbox import DeliveryLimits
from koboshi.ports.channel import Channel
from koboshi.processes.ends import output_of
from koboshi.runtime.deliver import Deliver
from koboshi.runtime.dispatch import Dispatch
from koboshi.runtime.goals import GoalLoop
from koboshi.runtime.health import GatewayHealth
from koboshi.runtime.heartbeat import Heartbeat
from koboshi.runtime.intake import Intake
from koboshi.runtime.measured import MeasuredModel
from koboshi.runtime.memory import count_kills
from koboshi.runtime.rescue import Rescue
from koboshi.runtime.schedules import ScheduleLoop
from koboshi.runtime.slots import CommandSlots, Slots
from koboshi.runtime.turn import TurnRunner


def heartbeat(shared: Shared) -> Heartbeat:
    return Heartbeat(
        store=shared.store,
        clock=shared.clock,
        worker_id=shared.worker.worker_id,
        every_seconds=shared.config.limits.heartbeat_seconds,
        wakeups=shared.wakeups,
        restart_asked=Event(),
        count_kills=count_kills,
        last_beat=shared.clock.monotonic(),
    )


def health(shared: Shared, beating: Heartbeat, reached: Sequence[Channel]) -> GatewayHealth:
    """`reached` are the channels that have to be reached; more may be added."""
    return GatewayHealth(
        store=shared.store,
        heartbeat=beating,
        has_recovered=shared.has_recovered,
        stop_asked=shared.drain.asked,
        channels=lambda: {channel.name: channel.trouble for channel in reached},
        hearings=lambda: {channel.name: channel.hearing for channel in reached},
        neighbours=shared.neighbours.told,
    )


def intake(shared: Shared) -> Intake:
    redact = redactor_of(shared.config)

    async def output(process_id: ProcessId) -> str:
        return redact(await output_of(shared.runners, process_id))

    return Intake(
        store=shared.store,
        clock=shared.clock,
        respond=respond,
        output_of=output,
        why_not_restart=shared.why_not_restart,
    )


def dispatch(shared: Shared, runner: TurnRunner) -> Dispatch:
    gateway, poll_seconds = shared.config.gateway, shared.config.limits.poll_seconds
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
    )


def deliver(shared: Shared, channels: Mapping[ChannelName, Channel]) -> Deliver:
    limits = shared.config.limits
    return Deliver(
        store=shared.store,
        wakeups=shared.wakeups,
        clock=shared.clock,
        channels=channels,
        worker_id=shared.worker.worker_id,
        limits=DeliveryLimits(age_ms_max=limits.delivery_age_ms_max),
        in_flight_max=limits.deliveries_in_flight_max,
    )


def rescue(shared: Shared) -> Rescue:
    limits = shared.config.limits
    return Rescue(
        store=shared.store,
        worker_id=shared.worker.worker_id,
        at_once=limits.recoveries_at_once,
        every_seconds=limits.rescue_seconds,
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
        model=MeasuredModel(
            model=shared.model,
            meter=shared.meter,
            clock=shared.clock,
            name=shared.config.model.name,
            standing=shared.neighbours.model,
        ),
        wakeups=shared.wakeups,
        worker_id=shared.worker.worker_id,
        drain=shared.drain,
        poll_seconds=shared.config.limits.schedule_poll_seconds,
    )
