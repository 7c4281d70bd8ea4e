"""Issue 15, V10: browsers that were let in are rows: listed, revoked, 30 days at most."""

import signal
from pathlib import Path

import apsw
import pytest

from koboshi.domain.browser import IDLE_MS, LIFE_MS
from tests.cli.process import gateway, koboshi, starting
from tests.hostile.browsing import Visitor, browser, program

STATUS = "/api/v1/status"
PHONE = "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36"


def test_they_are_listed_and_revoked_on_the_command_line(home: Path) -> None:
    with gateway(home) as one:
        desk, phone = browser(one), browser(one, PHONE)
        listed = koboshi("browsers", "list", home=home)
        revoked = koboshi("browsers", "revoke", "b1", home=home)

        assert "b1    Firefox on Linux" in listed.out
        assert "b2    Chrome on Android" in listed.out
        assert (revoked.code, revoked.out) == (0, "1 browser logged out\n")
        assert (desk.get(STATUS).status, phone.get(STATUS).status) == (401, 200)
        assert koboshi("browsers", "revoke", "b1", home=home).code == 1
        assert koboshi("browsers", "revoke", home=home).code == 1
        assert koboshi("browsers", "revoke", "--all", home=home).code == 0
        assert phone.get(STATUS).status == 401
        assert "no browser is let in" in koboshi("browsers", "list", home=home).out


def test_they_are_listed_and_revoked_on_the_page(home: Path) -> None:
    with gateway(home) as one:
        desk, phone = browser(one), browser(one, PHONE)
        (first, second) = desk.get("/api/v1/browsers").document["browsers"]

        assert (first["browser"], second["browser"]) == ("b2", "b1")
        assert first["expires_ms"] - first["made_ms"] == LIFE_MS
        assert desk.post("/api/v1/browsers/b2/revoke").status == 200
        assert (desk.get(STATUS).status, phone.get(STATUS).status) == (200, 401)
        assert desk.post("/api/v1/browsers/b9/revoke").status == 404


def test_logging_out_revokes(home: Path) -> None:
    with gateway(home) as one:
        desk = browser(one)
        assert desk.post("/api/v1/logout").status == 200
        assert desk.get(STATUS).status == 401
        assert program(one).get("/api/v1/browsers").document["browsers"] == []


def test_they_survive_a_kill_and_only_hashes_are_stored(home: Path) -> None:
    with gateway(home) as one:
        desk = browser(one)
        shown = [desk.headers["Cookie"].partition("=")[2], desk.headers["X-Koboshi-Proof"]]
        one.kill()
    held = b"".join(file.read_bytes() for file in home.glob("koboshi.db*"))
    with gateway(home) as again:
        assert Visitor(again, desk.headers).get(STATUS).status == 200
    assert all(secret.encode() not in held for secret in shown)


@pytest.mark.parametrize("verb", ["make", "revoke"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_at_each_durable_step_leaves_a_whole_list(
    home: Path, verb: str, moment: str
) -> None:
    """Before the commit nothing has happened, after it everything has."""
    desk: Visitor | None = None
    with gateway(home, KOBOSHI_CRASH_AT=f"browsers.{verb}:{moment}") as one:
        try:
            desk = browser(one)
            desk.post("/api/v1/logout")
        except (OSError, AssertionError):
            pass
        assert one.wait_end() == -signal.SIGKILL
    with gateway(home) as again:
        left = len(again.asked(ask="browsers")["browsers"])
        if verb == "revoke":
            assert desk is not None
            assert Visitor(again, desk.headers).get(STATUS).status == (
                200 if moment == "before" else 401
            )

    assert (
        left
        == {"make-before": 0, "make-after": 1, "revoke-before": 1, "revoke-after": 0}[
            f"{verb}-{moment}"
        ]
    )


@pytest.mark.parametrize("column,aged_ms", [("expires_ms", LIFE_MS), ("used_ms", IDLE_MS)])
def test_one_that_is_too_old_or_idle_is_out(home: Path, column: str, aged_ms: int) -> None:
    with gateway(home) as one:
        desk = browser(one)
        one.stop()
    connection = apsw.Connection(str(home / "koboshi.db"))
    connection.execute(f"UPDATE browsers SET made_ms = 0, {column} = {column} - ?", (aged_ms,))
    connection.close()
    with gateway(home) as again:
        assert Visitor(again, desk.headers).get(STATUS).status == 401
        assert again.asked(ask="browsers")["browsers"] == []


def test_a_restored_backup_lets_no_browser_in(home: Path) -> None:
    """What was revoked since the backup must not be good again."""
    with gateway(home) as one:
        desk = browser(one)
        made = koboshi("backup", "create", "--json", home=home)
        koboshi("browsers", "revoke", "--all", home=home)
        one.stop()
    restored = koboshi("restore", made.document["file"], home=home)
    assert restored.code == 0, restored.err
    with gateway(home) as again:
        assert Visitor(again, desk.headers).get(STATUS).status == 401


def test_without_a_gateway_they_are_listed_and_revoked_all_the_same(home: Path) -> None:
    with gateway(home) as one:
        desk = browser(one)
        one.stop()
    assert "Firefox on Linux" in koboshi("browsers", "list", home=home).out
    assert koboshi("browsers", "revoke", "b1", home=home).code == 0
    with starting(home) as again:
        again.wait_serving()
        assert Visitor(again, desk.headers).get(STATUS).status == 401
