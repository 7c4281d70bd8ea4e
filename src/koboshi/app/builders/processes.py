"""What looks after background processes in a gateway."""

from koboshi.app.boot_config import redactor_of
from koboshi.app.builders.control import ends_of, report_limits
from koboshi.app.builders.shared import Shared
from koboshi.processes.supervise import ProcessRetention, Supervise
from koboshi.processes.watch import WatchLogs
from koboshi.tools.patterns import matcher


def supervise(shared: Shared) -> Supervise:
    limits = shared.config.limits
    return Supervise(
        store=shared.store,
        wakeups=shared.wakeups,
        clock=shared.clock,
        runners=shared.runners,
        store_end=ends_of(shared.config, shared.store, shared.runners, shared.clock).store,
        poll_seconds=limits.poll_seconds,
        retention=ProcessRetention(
            keep_ms=limits.process_keep_seconds * 1000,
            kept_max=limits.processes_kept_max,
            sweep_seconds=limits.process_sweep_seconds,
        ),
    )


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
        poll_seconds=config.limits.poll_seconds,
    )
