"""The metrics of one gateway."""

from typing import TYPE_CHECKING

from koboshi.runtime.health import GatewayHealth
from koboshi.runtime.metrics import Metrics

if TYPE_CHECKING:
    from koboshi.app.parts import Parts


def metrics_of(parts: "Parts", health: GatewayHealth) -> Metrics:
    return Metrics(
        store=parts.store,
        clock=parts.clock,
        health=health,
        worker=parts.worker,
        home=parts.config.home,
        commits=lambda: parts.store.commits,
    )
