"""`koboshi doctor --fix`: what is safe is fixed and told, everything else is left as it is."""

import os
from pathlib import Path

import pytest

from tests.cli.process import Ended, as_other_user, passable_folder
from tests.service.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def mended(told: Ended) -> list[tuple[str, str, str | None]]:
    return [(each["check"], each["did"], each["error"]) for each in told.document["mended"]]


def open_home(desk: Desk) -> None:
    desk.home.mkdir()
    desk.home.chmod(0o755)
    for name in ("environment", "web-token", "notes"):
        (desk.home / name).write_text("x" * 40)
        (desk.home / name).chmod(0o644)


def test_an_open_home_and_its_secrets_are_closed_and_nothing_else(desk: Desk) -> None:
    open_home(desk)

    told = desk.fix()

    assert told.code == 0, told.out
    assert [each for each in mended(told) if each[0] in ("home", "secrets")] == [
        ("home", f"chmod 700 {desk.home}", None),
        ("secrets", f"chmod 600 {desk.home}/environment", None),
        ("secrets", f"chmod 600 {desk.home}/web-token", None),
    ]
    modes = [desk.home, *(desk.home / name for name in ("environment", "web-token", "notes"))]
    assert [each.stat().st_mode & 0o777 for each in modes] == [0o700, 0o600, 0o600, 0o644]
    words = [each["words"] for each in told.document["findings"] if each["check"] == "home"]
    assert words == [f"{desk.home} is private"], "the findings tell how it is now"
    assert [each for each in mended(desk.fix()) if each[0] in ("home", "secrets")] == []


def test_without_the_option_nothing_is_changed_and_the_way_is_told(desk: Desk) -> None:
    open_home(desk)

    told = desk.run("doctor")

    assert desk.home.stat().st_mode & 0o777 == 0o755
    assert "`koboshi doctor --fix` fixes " in told.out
    assert desk.asked == []


def test_people_are_told_what_was_mended(desk: Desk) -> None:
    open_home(desk)

    told = desk.run("doctor", "--fix")

    assert f"mended   home: {desk.home} is open to others (mode 0755)" in told.out
    assert f"         -> chmod 700 {desk.home}\n" in told.out


@pytest.mark.parametrize("name", ["home", 'a b%h $HOME "quoted" back\\slash'])
def test_a_unit_of_an_earlier_koboshi_is_written_again(tmp_path: Path, name: str) -> None:
    """For the same home and the same search path, whatever they are here and now."""
    desk = Desk(tmp_path, home_name=name)
    right = desk.write_unit("OOMPolicy=continue\n")

    told = desk.run("doctor", "--fix", "--json", "--home", str(tmp_path / "other"), path="/bin")

    assert ("service", f"wrote {desk.unit} again, and systemctl --user daemon-reload", None) in (
        mended(told)
    )
    assert desk.unit.read_text() == right
    assert "systemctl --user daemon-reload" in desk.asked
    assert not [each for each in desk.asked if "restart" in each], "nothing is stopped for it"
    again = desk.fix()
    assert "service" not in [check for check, _, _ in mended(again)]


@pytest.mark.parametrize(
    "change, into, is_signed",
    [
        ("OOMPolicy=continue", "OOMPolicy=stop", False),
        ("ExecStart=:\\S+", "ExecStart=:/opt/elsewhere/bin/koboshi", True),
        ("run --home", "run --verbose --home", True),
    ],
    ids=["changed by hand", "of another installation", "started in another way"],
)
def test_a_unit_that_is_not_understood_is_left_alone(
    desk: Desk, change: str, into: str, is_signed: bool
) -> None:
    desk.write_unit(change, into, is_signed=is_signed)
    before = desk.unit.read_text()

    told = desk.fix()

    assert "service" not in [check for check, _, _ in mended(told)]
    assert desk.unit.read_text() == before


def test_what_systemd_has_not_read_yet_is_read(desk: Desk) -> None:
    desk.is_reload_due = True

    assert ("service", "systemctl --user daemon-reload", None) in mended(desk.fix())
    assert "systemctl --user daemon-reload" in desk.asked


def test_a_user_of_a_service_is_made_to_linger(desk: Desk) -> None:
    assert ("lingering", "loginctl enable-linger", None) in mended(desk.fix())
    assert "loginctl enable-linger" in desk.asked


def test_a_fix_that_fails_is_told_and_its_finding_stays(desk: Desk) -> None:
    desk.is_reload_due = desk.fails = True

    told = desk.fix()

    assert ("service", "systemctl --user daemon-reload", "exit code 1") in mended(told)
    assert "service" in [
        each["check"] for each in told.document["findings"] if each["severity"] == "warning"
    ]
    assert "failed   service: " in desk.run("doctor", "--fix").out


def test_the_home_of_another_user_is_not_touched() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to have another person")
    with passable_folder() as folder:
        home = folder / "home"
        home.mkdir()
        home.chmod(0o777)

        told = as_other_user("doctor", "--fix", "--json", home=home, HOME=str(folder))

        assert told.code == 78, told.err
        assert "home" not in [check for check, _, _ in mended(told)]
        assert home.stat().st_mode & 0o777 == 0o777


def test_what_needs_a_decision_has_a_remedy_and_no_fix(desk: Desk) -> None:
    desk.home.write_text("a file")

    told = desk.fix()

    (found,) = [each for each in told.document["findings"] if each["check"] == "home"]
    assert (found["severity"], found["fixable"]) == ("error", False)
    assert found["remedy"] == "give another home"
    assert desk.home.read_text() == "a file"
