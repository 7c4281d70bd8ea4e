"""The time zones of people: what they told us, else what their platform told us."""

from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_text
from koboshi.kernel.transaction import Transaction

ZONE_CHARS_MAX = 60


def hear_zone(tx: Transaction, context: VerbContext, channel: str, person: str, zone: str) -> None:
    """Keep the zone that a platform names for a person. What the person says by themselves counts
    more, and one that we do not know is none."""
    if not zone or len(zone) > ZONE_CHARS_MAX:
        return
    who = {"channel": channel, "person": person}
    if first_text(tx.row("zone_of_person", **who)) == zone:
        return
    try:
        context.zone_named(zone)
    except LookupError:
        return
    tx.change("zone_heard", **who, zone=zone)
