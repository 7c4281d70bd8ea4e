"""`koboshi backup` and `koboshi restore`, as real commands: with a gateway, without, and killed."""

import fcntl
import shutil
import signal
from pathlib import Path

import pytest

from koboshi.stores.faults import VARIABLE
from tests.cli.process import gateway, koboshi, starting, until
from tests.harness.rows import read_rows

KILLED = -signal.SIGKILL
BACKUP_POINTS = ["backup.check:before", "backup.check:after", "backup.name:before"]
RESTORE_POINTS = [
    f"restore.{step}:{moment}"
    for step in ("prepare", "set_aside", "place")
    for moment in ("before", "after")
]


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a backup that knows one chat and owes it an answer, and two chats since."""
    home = tmp_path_factory.mktemp("past") / "home"
    with gateway(home) as one:
        one.wait_state(one.say("ann", "echo one"), "done")
    made = koboshi("backup", "create", "--json", home=home)
    assert made.code == 0, made.err
    with gateway(home) as one:
        one.wait_state(one.say("bob", "echo two"), "done")
        one.stop()
    return home


@pytest.fixture
def home(past: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(past, tmp_path / "home"))


def chats(home: Path) -> list[object]:
    return [row["chat"] for row in read_rows(home).of("sessions")]


def the_backup(home: Path) -> str:
    (found,) = (home / "backups").glob("*.db")
    return str(found)


def test_a_running_gateway_makes_it_and_goes_on(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.db"
    with gateway(home) as one:
        made = koboshi("backup", "create", "--to", str(file), home=home)
        message = one.say("ann", "echo still there")
        one.wait_state(message, "done")

    assert made.code == 0, made.err
    assert f"made      {file}" in made.out
    checked = koboshi("backup", "verify", str(file), "--json")
    assert checked.document["rows"]["sessions"] == 2


def test_without_a_gateway_the_command_makes_it(home: Path) -> None:
    made = koboshi("backup", "create", "--json", home=home)
    listed = koboshi("backup", "list", "--json", home=home)

    assert made.document["rows"]["sessions"] == 2
    assert next(each["file"] for each in listed.document["backups"]) == made.document["file"]
    assert len(listed.document["backups"]) == 2


def test_a_list_of_none_says_what_to_do(tmp_path: Path) -> None:
    listed = koboshi("backup", "list", home=tmp_path)

    assert listed.code == 0
    assert "koboshi backup create" in listed.out


def test_a_file_that_is_none_is_told_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no database")
    for file, why in (("a.db", "damaged, or no database"), ("b.db", "is not a file")):
        told = koboshi("backup", "verify", str(tmp_path / file))
        assert told.code == 78
        assert why in told.err
        assert "Traceback" not in told.err

    refused = koboshi("restore", str(tmp_path / "b.db"), home=tmp_path / "folder" / "new")
    assert refused.code == 78
    assert f"{tmp_path / 'b.db'} is not a file" in refused.err
    assert not (tmp_path / "folder").exists(), "a home was made for nothing"


def test_a_backup_that_is_there_already_is_not_replaced(home: Path) -> None:
    told = koboshi("backup", "create", "--to", the_backup(home), "--json", home=home)

    assert told.code == 1
    assert "is there already" in told.document["error"]["message"]


@pytest.mark.crash
@pytest.mark.parametrize("point", BACKUP_POINTS)
def test_a_backup_that_was_killed_is_none(home: Path, point: str) -> None:
    """What has a name is whole; what is left over goes with the next one."""
    before = the_backup(home)
    killed = koboshi("backup", "create", home=home, **{VARIABLE: point})

    assert killed.code == KILLED
    assert the_backup(home) == before
    assert koboshi("backup", "create", home=home).code == 0
    assert not list((home / "backups").glob("*.part"))


@pytest.mark.crash
def test_a_backup_that_was_killed_behind_its_name_is_whole(home: Path) -> None:
    before = the_backup(home)
    assert koboshi("backup", "create", home=home, **{VARIABLE: "backup.name:after"}).code == KILLED

    (made,) = [each for each in (home / "backups").glob("*.db") if str(each) != before]
    assert koboshi("backup", "verify", str(made)).code == 0


@pytest.mark.crash
def test_a_gateway_that_is_killed_over_a_backup_leaves_no_half_one(home: Path) -> None:
    before = the_backup(home)
    with gateway(home, **{VARIABLE: "backup.check:before"}) as one:
        told = koboshi("backup", "create", home=home)
        assert one.wait_end() == KILLED

    # The command makes one itself if the home is free by the time it has noticed.
    if told.code:
        assert told.code == 1
        assert "before the backup was made" in told.err
        assert the_backup(home) == before
    found = [str(each) for each in (home / "backups").glob("*.db")]
    assert before in found
    assert len(found) == 1 + (told.code == 0)
    assert all(koboshi("backup", "verify", each).code == 0 for each in found)


def test_a_restore_says_what_it_did(home: Path) -> None:
    done = koboshi("restore", the_backup(home), home=home)

    assert done.code == 0, done.err
    assert chats(home) == ["ann"]
    (kept,) = (home / "quarantine").iterdir()
    assert f"kept      {kept}" in done.out
    assert "held      0 deliveries" in done.out
    with gateway(home) as one:
        one.wait_state(one.say("cat", "echo three"), "done")


def test_a_restore_waits_for_no_process(home: Path) -> None:
    with gateway(home):
        told = koboshi("restore", the_backup(home), home=home)

    assert told.code == 78
    assert "held by a koboshi gateway" in told.err
    assert chats(home) == ["ann", "bob"]


def test_a_restore_makes_a_home_on_a_new_machine(home: Path, tmp_path: Path) -> None:
    done = koboshi("restore", the_backup(home), "--json", home=tmp_path / "new")

    assert done.code == 0, done.err
    assert done.document["kept"] is None
    assert chats(tmp_path / "new") == ["ann"]


@pytest.mark.crash
@pytest.mark.parametrize("point", RESTORE_POINTS)
def test_a_restore_that_was_killed_is_whole_or_did_not_happen(home: Path, point: str) -> None:
    """Never an empty home, never a mixture; and it can simply be asked for again."""
    killed = koboshi("restore", the_backup(home), home=home, **{VARIABLE: point})
    assert killed.code == KILLED

    with gateway(home) as one:
        one.wait_state(one.say("cat", "echo three"), "done")
        one.stop()
    has_moved = point.startswith(("restore.place", "restore.set_aside:after"))
    assert chats(home) == (["ann", "cat"] if has_moved else ["ann", "bob", "cat"])
    assert not list(home.glob("*.restoring*"))
    assert not list(home.glob("*.preparing*"))
    again = koboshi("restore", the_backup(home), home=home)
    assert again.code == 0, again.err
    assert chats(home) == ["ann"]


@pytest.mark.crash
def test_a_restore_after_one_that_was_killed_goes_through(home: Path) -> None:
    point = {VARIABLE: "restore.set_aside:after"}
    assert koboshi("restore", the_backup(home), home=home, **point).code == KILLED
    assert koboshi("restore", the_backup(home), home=home).code == 0

    assert chats(home) == ["ann"]
    kept = sorted((home / "quarantine").glob("*/koboshi.db"))
    assert len(kept) == 2, "what the first one moved is kept, and so is its own copy"


def test_a_release_names_one_or_all(home: Path) -> None:
    for arguments in ((), ("d1", "--all")):
        assert koboshi("outbox", "release", *arguments, home=home).code == 2

    assert koboshi("outbox", "release", "--all", "--json", home=home).document["released"] == 0
    refused = koboshi("outbox", "release", "d1", home=home)
    assert refused.code == 1
    assert "nothing holds it" in refused.err


def test_a_backup_waits_for_a_gateway_that_is_just_starting(home: Path) -> None:
    """It holds the home before it serves its socket."""
    with starting(home) as one:
        until(lambda: is_locked(home), "it holds the home", otherwise=lambda: one.err)
        made = koboshi("backup", "create", home=home)

    assert made.code == 0, made.err


def is_locked(home: Path) -> bool:
    with (home / "koboshi.lock").open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
