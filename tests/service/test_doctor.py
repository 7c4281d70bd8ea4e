"""`koboshi doctor`: each check over made-up facts, and the command over a real home."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.cli.doctor.checks import (
    CHECKS,
    Facts,
    HomeFacts,
    LoadedUnit,
    Severity,
    examine,
    exit_code,
)
from koboshi.cli.doctor.facts import parse_properties
from tests.cli.process import Ended, gateway, starting, until
from tests.harness.open_files import has_open
from tests.service.desk import RECOMMENDED, doctor

NOW_MS = 1_763_240_400_000
GB = 1_000_000_000

HEALTHY = Facts(
    home=Path("/srv/koboshi"),
    uid=1000,
    now_ms=NOW_MS,
    installed_ms=NOW_MS - 1_000,
    sqlite=(3, 54, 1),
    files_max=65_536,
    home_facts=HomeFacts(mode=0o700, uid=1000, is_folder=True, is_writable=True),
    disk_free=50 * GB,
    disk_size=100 * GB,
    written_ms=NOW_MS - 5,
    lingers=True,
    holders=(77,),
    units=(LoadedUnit(is_user=True, properties=parse_properties(RECOMMENDED)),),
)


def unit(*, is_user: bool = False, **changes: str) -> tuple[LoadedUnit, ...]:
    properties = {**parse_properties(RECOMMENDED), **changes}
    return (LoadedUnit(is_user=is_user, properties=properties),)


def troubles(facts: Facts) -> list[tuple[str, str]]:
    """What is not right: the check and how severe it is."""
    found = examine(facts)
    bad = (Severity.WARNING, Severity.ERROR)
    return [(name, each.severity.value) for name, each in found if each.severity in bad]


def test_a_healthy_machine_has_nothing_to_complain_about() -> None:
    assert troubles(HEALTHY) == []
    assert exit_code(examine(HEALTHY)) == 0


HOME = HomeFacts(mode=0o700, uid=1000, is_folder=True, is_writable=True)


@pytest.mark.parametrize(
    "changes, trouble, code",
    [
        ({"config_error": "gateway.busi: unknown key"}, ("configuration", "error"), 78),
        ({"config_warnings": ("a token in the file",)}, ("configuration", "warning"), 0),
        ({"home_facts": replace(HOME, mode=0o755)}, ("home", "warning"), 0),
        ({"home_facts": replace(HOME, uid=0)}, ("home", "error"), 78),
        ({"open_secrets": (Path("/srv/koboshi/environment"),)}, ("secrets", "warning"), 0),
        ({"secrets_aside": (Path("/srv/quarantine/1/web-token"),)}, ("secrets", "warning"), 0),
        ({"home_facts": replace(HOME, is_folder=False)}, ("home", "error"), 78),
        ({"home_facts": replace(HOME, is_writable=False)}, ("home", "error"), 78),
        ({"home_facts": replace(HOME, trouble="permission denied")}, ("home", "error"), 78),
        ({"disk_free": GB // 2, "disk_size": GB}, ("disk", "warning"), 0),
        ({"disk_free": 40 * GB, "disk_size": 1_000 * GB}, ("disk", "warning"), 0),
        ({"disk_free": GB // 10}, ("disk", "error"), 1),
        ({"disk_free": None}, ("disk", "warning"), 0),
        ({"now_ms": NOW_MS - 2 * 86_400_000, "written_ms": None}, ("clock", "error"), 1),
        ({"written_ms": NOW_MS + 600_000}, ("clock", "warning"), 0),
        ({"sqlite": (3, 51, 2)}, ("sqlite", "error"), 1),
        ({"sqlite": (3, 40, 1)}, ("sqlite", "error"), 1),
        ({"files_max": 256}, ("open files", "warning"), 0),
        ({"holders": (77, 78)}, ("gateways", "warning"), 0),
        ({"silence": "the gateway does not answer"}, ("gateways", "error"), 1),
        ({"units": (*unit(is_user=True), *unit())}, ("gateways", "warning"), 0),
        ({"lingers": False}, ("lingering", "warning"), 0),
        ({"units": unit(KillMode="control-group")}, ("service", "warning"), 0),
        ({"units": unit(KillMode="mixed")}, ("service", "warning"), 0),
        ({"units": unit(Type="simple")}, ("service", "warning"), 0),
        ({"units": unit(OOMPolicy="stop")}, ("service", "warning"), 0),
        ({"units": unit(Delegate="no")}, ("service", "warning"), 0),
        ({"units": unit(Restart="no")}, ("service", "warning"), 0),
        ({"units": unit(WatchdogUSec="0")}, ("service", "warning"), 0),
        ({"units": unit(WatchdogUSec="infinity")}, ("service", "warning"), 0),
        ({"units": unit(TimeoutStopUSec="30s")}, ("service", "warning"), 0),
        ({"drain_seconds": 300.0}, ("service", "warning"), 0),
        ({"units": unit(NeedDaemonReload="yes")}, ("service", "warning"), 0),
    ],
)
def test_each_trouble_is_found_alone(
    changes: dict[str, object], trouble: tuple[str, str], code: int
) -> None:
    facts = replace(HEALTHY, **changes)  # type: ignore[arg-type]

    assert troubles(facts) == [trouble]
    assert all(
        found.remedy
        for _, found in examine(facts)
        if found.severity in (Severity.WARNING, Severity.ERROR)
    )
    assert exit_code(examine(facts)) == code


@pytest.mark.parametrize(
    "changes",
    [
        {"home_facts": None, "written_ms": None, "holders": ()},
        {"units": ()},
        {"units": (), "lingers": False},
        {"units": unit(), "lingers": False},
        {"units": unit(TimeoutStopUSec="infinity")},
        {"is_clock_kept": False},
        {"is_clock_kept": True},
        {"units": unit(Restart="always")},
        {"units": unit(WatchdogUSec="0", ActiveState="inactive")},
        {"units": (*unit(is_user=True), *unit(ActiveState="inactive"))},
    ],
)
def test_what_is_only_different_is_no_trouble(changes: dict[str, object]) -> None:
    assert troubles(replace(HEALTHY, **changes)) == []  # type: ignore[arg-type]


def test_root_may_own_the_home_of_another_and_is_warned_of_itself() -> None:
    facts = replace(HEALTHY, home_facts=replace(HOME, uid=1000), uid=0)

    assert troubles(facts) == [("user", "warning")]


def test_a_wrong_set_up_counts_before_other_errors() -> None:
    facts = replace(HEALTHY, config_error="no", disk_free=0)

    assert exit_code(examine(facts)) == 78


# ── the command ─────────────────────────────────────────────────────────────────────────────────


def of(told: Ended, check: str) -> list[dict[str, str]]:
    return [each for each in told.document["findings"] if each["check"] == check]


def test_every_check_speaks_about_a_fresh_machine(tmp_path: Path) -> None:
    told = doctor(tmp_path / "home", "--json")

    assert told.code == 0, told.out
    assert told.document["ok"] is True
    spoken = {each["check"] for each in told.document["findings"]}
    assert {*CHECKS} - {"lingering", "secrets"} <= spoken
    assert not (tmp_path / "home").exists(), "it changes nothing"


def test_it_tells_people_in_lines(tmp_path: Path) -> None:
    told = doctor(tmp_path / "home", KOBOSHI__GATEWAY__BUSY="nonsense")

    assert told.code == 78
    assert "error    configuration: " in told.out
    warnings = "1 warning" if os.geteuid() == 0 else "0 warnings"
    assert told.out.endswith(f"1 error, {warnings}\n")


def test_a_running_gateway_and_one_that_waits_are_seen(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with gateway(home) as first:
        alone = doctor(home, "--json")
        assert of(alone, "gateways")[0]["words"] == f"one runs (pid {first.pid})"

        with starting(home, "--lock-wait", "60") as second:
            lock = os.stat(home / "koboshi.lock")
            until(lambda: has_open(second.pid, lock), "the second waits for the lock")
            told = doctor(home, "--json")

    (found,) = of(told, "gateways")
    assert found["severity"] == "warning"
    assert str(first.pid) in found["words"]
    assert str(second.pid) in found["words"]
    assert alone.code == told.code == 0


def test_a_loaded_unit_is_compared_with_the_recommended_one(tmp_path: Path) -> None:
    old = RECOMMENDED.replace("process", "control-group").replace("notify", "simple")
    (tmp_path / "shown").write_text(old)

    told = doctor(
        tmp_path / "home",
        "--json",
        systemctl=f'test "$1" = --user && exit 1; cat {tmp_path / "shown"}',
    )

    words = [each["words"] for each in of(told, "service")]
    assert len(words) == 2
    assert any("KillMode=control-group in the system's unit" in each for each in words)
    assert "koboshi service install --force --system" in of(told, "service")[0]["remedy"]


@pytest.mark.parametrize("systemctl", ["exit 1", "echo nonsense", "echo LoadState=not-found"])
def test_a_systemctl_that_knows_no_unit_is_no_trouble(tmp_path: Path, systemctl: str) -> None:
    told = doctor(tmp_path / "home", "--json", systemctl=systemctl)

    assert [each["severity"] for each in of(told, "service")] == ["note"]


def test_a_home_that_is_a_file_is_an_error_of_the_set_up(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("mine")

    told = doctor(tmp_path / "home", "--json")

    assert told.code == 78
    assert [each["severity"] for each in of(told, "home")] == ["error"]
