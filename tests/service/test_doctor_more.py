"""The further checks of `koboshi doctor`, over made-up facts and a real home."""

from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.cli.doctor_checks import Severity
from koboshi.cli.doctor_more import CHECKS, MoreFacts, file_system_of
from tests.cli.process import gateway, koboshi
from tests.fakes.telegram.server import serving_in_thread

HOUR_MS = 3_600_000
HEALTHY = MoreFacts(
    home=Path("/srv/koboshi"),
    now_ms=100 * HOUR_MS,
    file_system="ext4",
    sync_s=0.004,
    backup_ms=99 * HOUR_MS,
    has_database=True,
    held=0,
    dead=0,
)


def severities(more: MoreFacts) -> dict[str, Severity]:
    return {name: found.severity for name, check in CHECKS.items() for found in check(more)}


def test_a_machine_that_is_well_has_no_findings() -> None:
    assert set(severities(HEALTHY).values()) == {Severity.OK}


@pytest.mark.parametrize(
    "name, severity, changes",
    [
        ("file system", Severity.ERROR, {"file_system": "nfs4"}),
        ("file system", Severity.NOTE, {"file_system": ""}),
        ("disk speed", Severity.WARNING, {"sync_s": 0.5}),
        ("backups", Severity.NOTE, {"backup_ms": None}),
        ("backups", Severity.WARNING, {"backup_ms": 70 * HOUR_MS}),
        ("outbox", Severity.WARNING, {"held": 2}),
        ("outbox", Severity.NOTE, {"dead": 1}),
        ("secrets", Severity.WARNING, {"open_secrets": (Path("/srv/koboshi/web-token"),)}),
        ("program", Severity.WARNING, {"writable_code": Path("/opt/koboshi")}),
    ],
)
def test_what_is_wrong_is_found(name: str, severity: Severity, changes: dict[str, object]) -> None:
    assert severities(replace(HEALTHY, **changes))[name] is severity  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "place, kind", [("/srv/a/b", "nfs4"), ("/srv/with space/x", "9p"), ("/var", "ext4")]
)
def test_the_nearest_mount_above_counts(place: str, kind: str) -> None:
    mounts = "/dev/x / ext4 rw 0 0\ny /srv/a nfs4 rw 0 0\nz /srv/with\\040space 9p rw 0 0\n"

    assert file_system_of(Path(place), mounts) == kind


def test_a_real_home_is_looked_at_and_left_as_it_is(tmp_path: Path) -> None:
    with gateway(tmp_path / "home") as one:
        before = sorted(each.name for each in one.home.iterdir())
        told = koboshi("doctor", "--json", home=one.home)
        after = sorted(each.name for each in one.home.iterdir())

    checks = {found["check"]: found["severity"] for found in told.document["findings"]}
    assert {"file system", "disk speed", "backups", "outbox"} <= set(checks)
    assert checks["outbox"] == "ok"
    assert before == after


def test_a_bot_and_the_model_are_called_when_that_is_asked_for(tmp_path: Path) -> None:
    with serving_in_thread() as fake:
        variables = {
            "KOBOSHI__CHANNELS__TELEGRAM__MAIN__API_BASE": fake.url,
            "TELEGRAM_BOT_TOKEN": fake.token,
        }
        good = koboshi("doctor", "--online", "--json", home=tmp_path, **variables)
        bad = koboshi(
            "doctor",
            "--online",
            "--json",
            home=tmp_path,
            **variables | {"TELEGRAM_BOT_TOKEN": "1:x"},
        )

    found = {each["check"]: each for each in good.document["findings"]}
    assert "the bot is @" in found["telegram:main"]["words"]
    assert found["model"]["severity"] == "ok"
    assert bad.code == 1
    wrong = {each["check"]: each for each in bad.document["findings"]}["telegram:main"]
    assert "does not take the token" in wrong["words"]
