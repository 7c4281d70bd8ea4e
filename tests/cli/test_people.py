"""`koboshi people`, as a real command: with a gateway, without one, and killed in between."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.cli.knocking import strangers_knock
from tests.cli.process import gateway, koboshi
from tests.harness.backends import nth_code
from tests.harness.rows import read_rows

WHO = ("telegram:main", "111")
WORDS = "my secret is a blue elephant"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a member, who said something, and a stranger."""
    asyncio.run(strangers_knock(tmp_path, "111", "222", text=WORDS))
    assert koboshi("pairing", "approve", nth_code(1), home=tmp_path).code == 0
    return tmp_path


def role_of(home: Path) -> str:
    (person,) = koboshi("people", "list", "--json", home=home).document["people"]
    return str(person["role"])


@pytest.mark.parametrize("has_gateway", [False, True])
def test_a_member_becomes_an_owner_and_a_member_again(home: Path, has_gateway: bool) -> None:
    def all_of_it() -> None:
        assert role_of(home) == "member"
        given = koboshi("people", "role", *WHO, "owner", home=home)
        assert (given.code, given.out) == (0, "telegram:main 111 is owner from now on\n")
        assert koboshi("people", "list", home=home).out.startswith("asks ")
        assert "owner    telegram:main 111" in koboshi("people", "list", home=home).out
        assert koboshi("people", "role", *WHO, "member", "--json", home=home).document["ok"]
        assert role_of(home) == "member"

    if not has_gateway:
        all_of_it()
        return
    with gateway(home) as one:
        one.wait_serving()
        all_of_it()


def test_only_a_person_who_was_let_in_gets_a_role(home: Path) -> None:
    stranger = koboshi("people", "role", "telegram:main", "222", "owner", "--json", home=home)
    wrong = koboshi("people", "role", *WHO, "king", home=home)

    assert (stranger.code, stranger.document["error"]["type"]) == (1, "not-found")
    assert wrong.code == 2
    assert "owner" in wrong.err
    assert role_of(home) == "member"


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_nothing_is_erased_unasked(home: Path, more: tuple[str, ...]) -> None:
    """Without a terminal there is no one to ask."""
    refused = koboshi("people", "erase", *WHO, *more, home=home)

    assert refused.code == 1
    assert "--yes" in refused.err + refused.out
    assert WORDS in str(read_rows(home).of("inbox"))


@pytest.mark.parametrize("has_gateway", [False, True])
def test_what_a_person_said_is_in_no_file_any_more_but_the_named_backups(
    home: Path, has_gateway: bool
) -> None:
    made = koboshi("backup", "create", "--json", home=home)
    assert made.code == 0, made.err
    assert koboshi("people", "erase", "telegram:main", "222", "--yes", home=home).code == 0
    if has_gateway:
        with gateway(home) as one:
            one.wait_serving()
            erased = koboshi("people", "erase", *WHO, "--yes", home=home)
    else:
        erased = koboshi("people", "erase", *WHO, "--yes", home=home)

    assert erased.code == 0, erased.err
    assert "erased 1 message of telegram:main 111" in erased.out
    assert "still holds the words: " in erased.out
    holding = [
        path for path in home.rglob("*") if path.is_file() and WORDS.encode() in path.read_bytes()
    ]
    assert holding, "the backup holds them, or the test shows nothing"
    assert all(str(path) in erased.out for path in holding), holding
    assert role_of(home) == "member", "the right to use it is another matter"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_erasure_that_is_killed_is_finished_by_the_next_command(home: Path, moment: str) -> None:
    killed = koboshi(
        "people", "erase", *WHO, "--yes", home=home, KOBOSHI_CRASH_AT=f"erasures.erase:{moment}"
    )
    assert killed.code == -signal.SIGKILL

    assert koboshi("people", "erase", *WHO, "--yes", home=home).code == 0
    assert koboshi("people", "erase", "telegram:main", "222", "--yes", home=home).code == 0
    holding = [path for path in home.rglob("koboshi.db*") if WORDS.encode() in path.read_bytes()]
    assert holding == []
