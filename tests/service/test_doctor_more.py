"""The further checks of `koboshi doctor`, over made-up facts and a real home."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.app.platforms.reaching import judged_clock
from koboshi.app.platforms.telegram import WebhookStanding, judged_webhook
from koboshi.cli.doctor.checks import Severity
from koboshi.cli.doctor.more_checks import CHECKS, MoreFacts, file_system_of
from koboshi.cli.options import CommandFailure
from koboshi.ports.room import Reserve
from tests.cli.process import gateway, koboshi
from tests.fakes.telegram.server import serving_in_thread
from tests.fakes.telegram.world import World

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
    reserve=Reserve(
        kept_bytes=8_000_000,
        wanted_bytes=8_000_000,
        free_bytes=90_000_000,
        made_from_bytes=32_000_000,
    ),
)
GIVEN_UP = Reserve(
    kept_bytes=0, wanted_bytes=8_000_000, free_bytes=9_000_000, made_from_bytes=32_000_000
)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("lived") / "home"
    with gateway(home) as one:
        one.stop()
    return home


@pytest.fixture
def home_of_old(lived: Path, tmp_path: Path) -> Path:
    """A home in which a gateway has run, and does not any more."""
    return Path(shutil.copytree(lived, tmp_path / "home"))


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
        ("reserve", Severity.WARNING, {"reserve": GIVEN_UP}),
        ("reserve", Severity.NOTE, {"reserve": replace(GIVEN_UP, free_bytes=33_000_000)}),
        ("backups", Severity.NOTE, {"backup_ms": None}),
        ("backups", Severity.WARNING, {"backup_ms": 70 * HOUR_MS}),
        ("outbox", Severity.WARNING, {"held": 2}),
        ("outbox", Severity.NOTE, {"dead": 1}),
        ("database", Severity.ERROR, {"trouble": CommandFailure(78, "home", "it is damaged")}),
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
        before = files_in(one.home)
        told = koboshi("doctor", "--json", home=one.home)
        after = files_in(one.home)

    checks = {found["check"]: found["severity"] for found in told.document["findings"]}
    assert {"file system", "disk speed", "backups", "outbox"} <= set(checks)
    assert checks["outbox"] == "ok"
    assert before == after


def files_in(home: Path) -> list[str]:
    """All but the witness, which the gateway's own heartbeat writes."""
    return sorted(each.name for each in home.iterdir() if not each.name.startswith("witness.json"))


def test_the_reserve_of_a_real_home_is_told_with_its_size(home_of_old: Path) -> None:
    """Issue 13, A2: red before, no one said whether there is one."""
    kept = reserve_finding(home_of_old)
    assert (kept["severity"], kept["words"]) == ("ok", "8.0 MB are kept back for a full disk")

    (home_of_old / "reserve").unlink()
    missing = reserve_finding(home_of_old)
    assert missing["severity"] == "note"
    assert not (home_of_old / "reserve").exists(), "a look makes nothing"


def reserve_finding(home: Path) -> dict[str, str]:
    told = koboshi("doctor", "--json", home=home)
    (found,) = [each for each in told.document["findings"] if each["check"] == "reserve"]
    return dict(found)


def test_without_a_gateway_the_outbox_is_looked_at_all_the_same(home_of_old: Path) -> None:
    told = koboshi("doctor", "--json", home=home_of_old)

    checks = {found["check"]: found["severity"] for found in told.document["findings"]}
    assert (checks["outbox"], checks["database"]) == ("ok", "ok")


def test_a_damaged_database_is_found_and_left_where_it_is(home_of_old: Path) -> None:
    database = home_of_old / "koboshi.db"
    damaged = b"no database" * 1000
    database.write_bytes(damaged)

    told = koboshi("doctor", "--json", home=home_of_old)

    (found,) = [each for each in told.document["findings"] if each["check"] == "database"]
    assert (told.code, found["severity"]) == (78, "error")
    assert "koboshi restore FILE" in found["remedy"]
    assert database.read_bytes() == damaged


def test_a_bot_and_the_model_are_called_when_that_is_asked_for(tmp_path: Path) -> None:
    with serving_in_thread() as fake:
        variables = {
            "KOBOSHI__CHANNELS__TELEGRAM__MAIN__API_BASE": fake.url,
            "KOBOSHI__CHANNELS__TELEGRAM__MAIN__WEBHOOK_URL": "http://127.0.0.1:9/hook",
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
    bot = [each for each in good.document["findings"] if each["check"] == "telegram:main"]
    assert "the bot is @" in bot[0]["words"]
    assert "our clock is " in bot[1]["words"]
    assert "http://127.0.0.1:9/hook was not reached from here" in bot[-1]["words"]
    assert all(each["remedy"] for each in bot if each["severity"] == "warning")
    assert found["model"]["severity"] == "ok"
    assert bad.code == 1
    wrong = {each["check"]: each for each in bad.document["findings"]}["telegram:main"]
    assert "does not take the token" in wrong["words"]


@pytest.mark.parametrize(
    "groups, hears, is_warned",
    [("all", False, True), ("all", True, False), ("mention", False, False)],
)
def test_a_bot_that_is_to_hear_groups_and_does_not_is_found(
    tmp_path: Path, groups: str, hears: bool, is_warned: bool
) -> None:
    """Issue 13, B14: privacy mode is on, as it is for every new bot."""
    world = World()
    world.account.can_read_all_group_messages = hears
    with serving_in_thread(world) as fake:
        told = koboshi(
            "doctor",
            "--online",
            "--json",
            home=tmp_path,
            KOBOSHI__CHANNELS__TELEGRAM__MAIN__API_BASE=fake.url,
            KOBOSHI__CHANNELS__TELEGRAM__MAIN__GROUPS=groups,
            TELEGRAM_BOT_TOKEN=fake.token,
        )

    bot = [each for each in told.document["findings"] if each["check"] == "telegram:main"]
    found = [each for each in bot if "only what is said to it" in each["words"]]
    assert [each["severity"] for each in found] == ["warning"] * is_warned
    assert all("/setprivacy" in each["remedy"] for each in found)


@pytest.mark.parametrize(
    "ahead_s, severity",
    [(None, Severity.NOTE), (2.0, Severity.OK), (-59.0, Severity.OK), (-61.0, Severity.WARNING)],
)
def test_our_clock_is_held_beside_the_platforms(ahead_s: float | None, severity: Severity) -> None:
    assert judged_clock(ahead_s).severity == severity


HOOK = "https://bot.example/hook"
CALLED = WebhookStanding(registered=HOOK, error="", answered=403)


@pytest.mark.parametrize(
    "standing, words",
    [
        (replace(CALLED, registered=""), "Telegram calls no address"),
        (replace(CALLED, error="Connection refused"), "could not call"),
        (replace(CALLED, answered=None, why="ConnectError"), "not reached from here: ConnectError"),
        (replace(CALLED, answered=502), "answered with 502"),
    ],
)
def test_a_webhook_that_is_not_called_is_found(standing: WebhookStanding, words: str) -> None:
    (found,) = judged_webhook(HOOK, standing)

    assert found.severity == "warning"
    assert words in found.words
    assert found.remedy


def test_a_webhook_that_is_called_is_right() -> None:
    assert [found.severity for found in judged_webhook(HOOK, CALLED)] == [Severity.OK]
