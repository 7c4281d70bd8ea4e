"""`koboshi config`: the same verdict as `koboshi run`, without starting anything."""

from pathlib import Path

import pytest

from tests.cli.process import as_other_user, koboshi, passable_folder

SECRET = "12345:verysecrettoken"
TELEGRAM = f'[channels.telegram.main]\ntoken = "{SECRET}"\nallow = ["*"]\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


def write(home: Path, text: str) -> Path:
    file = home / "koboshi.toml"
    file.write_text(text)
    file.chmod(0o600)
    return file


def test_no_configuration_is_a_good_one_and_nothing_is_made(tmp_path: Path) -> None:
    told = koboshi("config", "check", home=tmp_path / "home")

    assert (told.code, told.out, told.err) == (0, "ok\n", "")
    assert not (tmp_path / "home").exists()


def test_warnings_are_told_and_do_not_count(home: Path) -> None:
    write(home, TELEGRAM)

    told = koboshi("config", "check", home=home)

    assert (told.code, told.out) == (0, "ok\n")
    assert "channels.telegram.main.token puts a secret into koboshi.toml line 2" in told.err
    assert 'has "*": everyone may talk to the agent' in told.err


def test_every_problem_is_told_at_once(home: Path) -> None:
    write(home, "[gateway]\nbusi = 1\nmax_turns = 0\n\n[recovery]\nattempts = 'many'\n")

    told = koboshi("config", "check", home=home)

    assert told.code == 78
    assert told.out == ""
    assert "koboshi.toml line 2" in told.err
    assert "busy" in told.err
    assert "koboshi.toml line 3" in told.err
    assert "koboshi.toml line 6" in told.err


@pytest.mark.parametrize("command", [["config", "check"], ["config", "show"], ["status"], ["run"]])
def test_a_wrong_configuration_ends_every_command_alike(home: Path, command: list[str]) -> None:
    """An unknown key names the line and the nearest known key; exit code 78."""
    write(home, "[gateway]\nbusi = 1\n")

    told = koboshi(*command, home=home)

    assert told.code == 78
    assert told.err.startswith("koboshi: koboshi.toml line 2")
    assert "busy" in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize("command", [["config", "check"], ["run"]])
def test_a_store_of_another_kind_is_refused(home: Path, command: list[str]) -> None:
    """Issue 14: a gateway that was told of another store must not start on SQLite."""
    write(home, '[store]\nurl = "mysql://me:canary@db.example/koboshi"\n')

    told = koboshi(*command, home=home)

    assert (told.code, told.out) == (78, "")
    assert "koboshi.toml line 2: store.url must be empty or begin with postgresql://" in told.err
    assert "canary" not in told.err


@pytest.mark.parametrize("command", [["config", "check"], ["status"], ["run"]])
def test_a_file_that_was_named_must_be_there(home: Path, command: list[str]) -> None:
    told = koboshi(*command, home=home, KOBOSHI_CONFIG=str(home / "missing.toml"))

    assert told.code == 78
    assert "missing.toml does not exist" in told.err


@pytest.mark.parametrize("command", [["config", "check"], ["run"]])
def test_a_file_that_may_not_be_read_is_a_problem(command: list[str]) -> None:
    with passable_folder() as folder:
        file = folder / "koboshi.toml"
        file.write_text("")
        file.chmod(0)

        told = as_other_user(*command, home=folder / "home", KOBOSHI_CONFIG=str(file))

    assert told.code == 78
    assert "the configuration file cannot be read: permission denied" in told.err


def test_show_tells_each_key_with_its_value_and_where_it_was_set(home: Path) -> None:
    write(home, "[gateway]\nmax_turns = 3\n")

    told = koboshi("config", "show", home=home, KOBOSHI__GATEWAY__BUSY="steer")

    assert told.code == 0
    lines = told.out.splitlines()
    assert f"home = {home}" in lines
    assert "gateway.max_turns = 3 (koboshi.toml line 2)" in lines
    assert 'gateway.busy = "steer" (KOBOSHI__GATEWAY__BUSY)' in lines
    assert "gateway.progress_seconds = 180 (default)" in lines


def test_show_masks_secrets(home: Path) -> None:
    write(home, TELEGRAM)

    told = koboshi("config", "show", home=home)

    assert told.code == 0
    assert "channels.telegram.main.token = *** (koboshi.toml line 2)" in told.out
    assert SECRET not in told.out + told.err


def test_a_reader_needs_no_secrets_of_the_gateway(home: Path) -> None:
    """They may be there for the service alone: another shell can ask all the same."""
    write(home, '[channels.telegram.main]\ntoken_env = "NOT_HERE"\n')

    looked = koboshi("sessions", "list", home=home)
    checked = koboshi("config", "check", home=home)

    assert "NOT_HERE" not in looked.err
    assert checked.code == 78
    assert "NOT_HERE is not set" in checked.err
