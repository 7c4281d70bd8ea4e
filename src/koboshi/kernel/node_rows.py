"""The gateways that work on a database, as an operator sees them."""

from koboshi.domain.fingerprint import Configured, first_alike, sections_apart
from koboshi.kernel.decode import number, text
from koboshi.kernel.transaction import Reading
from koboshi.ports.nodes import NodeView


def nodes_of(tx: Reading) -> tuple[NodeView, ...]:
    """All that have not ended, oldest first."""
    owned = [(text(channel), number(owner)) for channel, owner in tx.rows("account_owners")]
    rows = tx.rows("nodes_living")
    configured = [Configured(version=text(row[2]), fingerprint=text(row[6])) for row in rows]
    return tuple(
        NodeView(
            worker_id=number(worker_id),
            node=text(node),
            version=text(version),
            started_ms=number(started_ms),
            heartbeat_ms=number(heartbeat_ms),
            silent_ms=max(0, tx.now_ms - number(heartbeat_ms)),
            is_draining=bool(draining),
            turns=number(turns),
            accounts=tuple(channel for channel, owner in owned if owner == worker_id),
            processes=number(processes),
            differs_in=sections_apart(first_alike(configured, mine), mine),
        )
        for mine, (
            worker_id,
            node,
            version,
            started_ms,
            heartbeat_ms,
            draining,
            _,
            turns,
            processes,
        ) in zip(configured, rows, strict=True)
    )
