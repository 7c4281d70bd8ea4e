"""The zone that times are told in."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from pathlib import Path

from koboshi.config import Config
from koboshi.stores.zones import zone_of_name

_RULES = Path("/usr/share/zoneinfo/tzdata.zi")
"""Where most machines say which edition of the rules they have."""


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


def zones_of(config: Config) -> Callable[[str], tzinfo]:
    """The zone of a name; of the empty name that of the gateway. Raises LookupError."""
    own = zone_of(config)

    @cache
    def named(name: str) -> tzinfo:
        return zone_of_name(name) if name else own

    return named


def zone_rules(config: Config) -> str:
    """By which rules of zones times are reckoned. Another text means: reckon them again."""
    try:
        with _RULES.open(encoding="ascii") as file:
            edition = file.readline(100).strip()
    except (OSError, ValueError):
        edition = ""
    if not edition:
        # Most machines say it themselves, and looking for a package loads readers of mail and ZIP.
        from importlib.metadata import version

        edition = version("tzdata")
    return f"{edition} {config.gateway.zone or 'machine'}"
