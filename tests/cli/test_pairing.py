"""`koboshi pairing`, as a real command: with a gateway, without one, and killed in between."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.cli.knocking import strangers_knock
from tests.cli.process import gateway, koboshi
from tests.harness.backends import nth_code
from tests.harness.rows import read_rows


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which two strangers were given codes."""
    asyncio.run(strangers_knock(tmp_path, "111", "222"))
    return tmp_path


def people(home: Path) -> list[str]:
    listed = koboshi("pairing", "list", "--json", home=home)
    assert listed.code == 0, listed.err
    return [person["person"] for person in listed.document["people"]]


def test_what_a_stranger_calls_themselves_does_nothing_to_the_console(home: Path) -> None:
    listed = koboshi("pairing", "list", home=home)

    assert listed.code == 0
    assert len(listed.out.splitlines()) == 2
    assert listed.out.replace("\n", "").isprintable()
    assert "telegram:main 111, who calls themselves" in listed.out
    assert "\\u202eeve\\x1b[31m\\n" in listed.out


def test_codes_are_not_shown(home: Path) -> None:
    for more in ((), ("--json",)):
        said = koboshi("pairing", "list", *more, home=home).out
        assert nth_code(1) not in said
        assert "code_hash" not in said


def test_a_code_is_approved_without_a_gateway(home: Path) -> None:
    approved = koboshi("pairing", "approve", nth_code(1).lower(), "--json", home=home)

    assert approved.document["person"] == "111"
    assert people(home) == ["111"]
    told = [row["text"] for row in read_rows(home).of("outbox") if row["cause"] == "paired:1"]
    assert len(told) == 1


@pytest.mark.parametrize("role", ["owner", "member"])
def test_a_person_is_let_in_as_what_the_owner_says(home: Path, role: str) -> None:
    approved = koboshi("pairing", "approve", nth_code(1), "--role", role, "--json", home=home)

    assert approved.document["role"] == role


def test_all_of_it_works_through_a_gateway(home: Path) -> None:
    with gateway(home) as running:
        running.wait_serving()
        approved = koboshi("pairing", "approve", nth_code(1), home=home)
        again = koboshi("pairing", "approve", nth_code(1), home=home)
        denied = koboshi("pairing", "deny", nth_code(2), home=home)
        listed = koboshi("pairing", "list", home=home).out
        revoked = koboshi("pairing", "revoke", "telegram:main", "111", home=home)
        twice = koboshi("pairing", "revoke", "telegram:main", "111", "--json", home=home)

    assert (approved.code, again.code, denied.code, revoked.code) == (0, 1, 0, 0)
    assert "may use this gateway now" in approved.out
    assert "unknown code" in again.err
    assert "gets no code for" in denied.out
    assert "member   telegram:main 111" in listed
    assert "may not use this gateway any more" in revoked.out
    assert twice.code == 1
    assert twice.document["error"]["type"] == "not-found"
    assert people(home) == []


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("verb", ["approve", "deny", "revoke"])
def test_a_command_that_is_killed_has_done_all_of_it_or_nothing(
    home: Path, verb: str, moment: str
) -> None:
    """S158: and it can be given again."""
    said = ["approve", nth_code(1)]
    if verb == "revoke":
        assert koboshi("pairing", *said, home=home).code == 0
        said = ["revoke", "telegram:main", "111"]
    said = ["deny", nth_code(1)] if verb == "deny" else said

    killed = koboshi("pairing", *said, home=home, KOBOSHI_CRASH_AT=f"people.{verb}:{moment}")

    assert killed.code == -signal.SIGKILL
    assert koboshi("pairing", *said, home=home).code == (0 if moment == "before" else 1)
    assert people(home) == (["111"] if verb == "approve" else [])
    rows = read_rows(home)
    told = [row for row in rows.of("outbox") if str(row["cause"]).startswith("paired:")]
    assert len(told) == (0 if verb == "deny" else 1)
