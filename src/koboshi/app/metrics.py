"""The metrics of one gateway."""

from pathlib import Path

from koboshi.clock import SystemClock
from koboshi.domain.worker import Worker
from koboshi.runtime.health import GatewayHealth
from koboshi.runtime.meter import Meter
from koboshi.runtime.metrics import Metrics
from koboshi.stores.sqlite.store import SqliteStore


def metrics_of(
    store: SqliteStore,
    clock: SystemClock,
    worker: Worker,
    home: Path,
    health: GatewayHealth,
    meter: Meter,
) -> Metrics:
    return Metrics(
        store=store,
        clock=clock,
        health=health,
        worker=worker,
        home=home,
        writes=store,
        meter=meter,
    )
