"""Time zones by name, from the machine's database or from tzdata."""

from datetime import UTC, tzinfo


def zone_of_name(name: str) -> tzinfo:
    """The zone of that name; of the empty name UTC. Raises LookupError."""
    if name in ("", "UTC"):
        return UTC
    # Its module is loaded only for a named zone.
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise LookupError(f"there is no time zone {name!r}") from None
