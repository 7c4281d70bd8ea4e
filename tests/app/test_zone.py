"""The zone that times are told in."""

import time
import zoneinfo
from collections.abc import Iterator
from pathlib import Path

import pytest

from koboshi.app.zone import zone_of
from koboshi.config import GatewayConfig, load
from koboshi.config.problems import InvalidValue
from koboshi.config.values import keys_of
from koboshi.domain.notes import moment

REPEATED_MS = 1_792_890_000_000
"""Sun 2026-10-25 01:00 UTC: in Berlin it is 02:00 for the second time."""


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_without_the_key_it_is_the_zone_of_the_machine(tmp_path: Path) -> None:
    """Issue 13, B9: that needs no list of zones, and the repeated hour is told apart."""
    zone = zone_of(load(None, None, {"HOME": str(tmp_path), "PATH": ""}))

    assert moment(REPEATED_MS, zone) == "Sun 2026-10-25 02:00 UTC+01:00"
    assert moment(REPEATED_MS - 3_600_000, zone) == "Sun 2026-10-25 02:00 UTC+02:00"


def test_a_zone_is_known_by_its_name() -> None:
    """Issue 13, B9."""
    check = keys_of(GatewayConfig)["zone"].check

    assert check("Europe/Berlin") == "Europe/Berlin"
    assert check("") == ""
    for wrong in ("Europe/Berlni", "../../etc/passwd", "/etc/passwd", "Europe", "\0", "x" * 65, 3):
        with pytest.raises(InvalidValue):
            check(wrong)


def test_a_machine_without_zones_knows_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 13, B9."""
    monkeypatch.setattr(zoneinfo, "TZPATH", ())
    monkeypatch.setattr(zoneinfo, "available_timezones", set)

    def no_zone(name: str) -> None:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", no_zone)

    check = keys_of(GatewayConfig)["zone"].check
    assert check("UTC") == "UTC"
    with pytest.raises(InvalidValue, match="knows no time zones"):
        check("Europe/Berlin")
