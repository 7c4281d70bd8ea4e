"""What looks after background processes in a gateway."""

from koboshi.app.boot_config import redactor_of
from koboshi.app.builders.control import ends_of, report_limits
from koboshi.app.builders.shared import Shared
from koboshi.processes.supervise import ProcessRetention, Supervise
from koboshi.processes.watch import WatchLogs
from koboshi.tools.patterns import matcher

TOLD_LEASES = 20
"""The person is told of a process whose node is away for so many leases: five minutes."""


def supervise(shared: Shared) -> Supervise:
    limits = shared.config.limits
    return Supervise(
        store=shared.store,
        wakeups=shared.wakeups,
        clock=shared.clock,
        runners=shared.runners,
        store_end=ends_of(shared.config, shared.store, shared.runners, shared.clock).store,
        poll_seconds=shared.poll_seconds,
        elsewhere=_elsewhere(shared),
        retention=ProcessRetention(
            keep_ms=limits.process_keep_seconds * 1000,
            kept_max=limits.processes_kept_max,
            sweep_seconds=limits.process_sweep_seconds,
        ),
    )


def _elsewhere(shared: Shared) -> tuple[int, int] | None:
    if not shared.store.is_shared:
        return None
    told_s = shared.config.store.lease_seconds * TOLD_LEASES
    return round(told_s * 1_000), shared.config.limits.process_lost_seconds * 1_000


def watch_logs(shared: Shared) -> WatchLogs:
    config = shared.config
    return WatchLogs(
        store=shared.store,
        wakeups=shared.wakeups,
        clock=shared.clock,
        runners=shared.runners,
        limits=report_limits(config),
        matcher=matcher,
        redact=redactor_of(config),
        every_seconds=config.limits.watch_seconds,
        poll_seconds=shared.poll_seconds,
    )
