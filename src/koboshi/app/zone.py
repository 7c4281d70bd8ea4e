"""The zone that times are told in."""

from datetime import UTC, datetime, timedelta, tzinfo

from koboshi.config import Config


def zone_of(config: Config) -> tzinfo:
    """The zone that the model is told times in. A database of zones is only needed to name one."""
    name = config.gateway.zone
    if not name:
        return _MachineZone()
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


class _MachineZone(tzinfo):
    """The zone of this machine, as its C library knows it, with its changes over the year."""

    def fromutc(self, moment: datetime) -> datetime:
        local = moment.replace(tzinfo=UTC).astimezone()
        here = local.replace(tzinfo=self)
        # The hour that a change back to winter time repeats.
        return here if here.utcoffset() == local.utcoffset() else here.replace(fold=1)

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, _moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().tzname()
