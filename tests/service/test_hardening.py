"""The settings that take rights away: what systemd says of them, and that each is explained."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from koboshi.cli.service.hardening import LEFT_OUT, hardening
from koboshi.cli.service.unit_text import Service, systemd_unit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "running-as-a-service.md"
HIGHEST_EXPOSURE = 3.5
WITH_OFFLINE = 250
"""The systemd whose `systemd-analyze security` reads a file."""


def shipped() -> str:
    """The unit of a machine where Koboshi lies outside people's homes."""
    return systemd_unit(
        Service(
            command=("/opt/koboshi/bin/koboshi",),
            interpreter=Path("/usr/bin/python3.11"),
            home=Path("/var/lib/koboshi/.koboshi"),
            config_file=None,
            workdir=Path("/var/lib/koboshi"),
            drain_seconds=45,
            is_system=True,
            user="koboshi",
        )
    )


def systemd_version() -> int:
    if shutil.which("systemd-analyze") is None:
        return 0
    told = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True)
    found = re.match(r"systemd ([0-9]+)", told.stdout)
    return int(found[1]) if found else 0


def test_systemd_finds_little_exposure(tmp_path: Path) -> None:
    """Issue 15, item 7: `systemd-analyze security` of the shipped system unit is at most 3.5."""
    if systemd_version() < WITH_OFFLINE:
        pytest.skip("no systemd-analyze that reads a file")
    file = tmp_path / "koboshi.service"
    file.write_text(shipped())

    told = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(file)],
        capture_output=True,
        text=True,
    )

    found = re.search(r"exposure level for koboshi.service: ([0-9.]+)", told.stdout)
    assert found, told.stdout + told.stderr
    assert float(found[1]) <= HIGHEST_EXPOSURE, told.stdout


def test_every_setting_has_its_reason_in_the_docs() -> None:
    page = PAGE.read_text()
    taken = [line.partition("=")[0] for line in hardening(is_system=True) if line[0] != "#"]
    left_out = re.findall(r"\b[A-Z][A-Za-z]+[a-z][A-Z]\w+", " ".join(LEFT_OUT))

    assert len(left_out) > 8
    assert [name for name in (*taken, *left_out) if f"`{name}" not in page] == []


def test_a_users_unit_says_what_it_can() -> None:
    of_user, of_system = (hardening(is_system=each) for each in (False, True))

    assert {line.partition("=")[0] for line in of_user} < {
        line.partition("=")[0] for line in of_system
    }
    assert not [line for line in of_user if line.startswith(("Protect", "Private", "Capability"))]
