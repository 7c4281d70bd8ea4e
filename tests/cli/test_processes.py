"""`koboshi processes` and `koboshi explain p1`, with a gateway and without one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.process import Gateway, gateway, is_there, koboshi, until
from tests.harness.jobs import UNTIL_GO

SECRET = "sesame-open-sesame-open-sesame-open-sesame"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def workdir_of(home: Path) -> Path:
    return home.with_name("workdir")


@pytest.fixture
def serving(home: Path) -> Iterator[Gateway]:
    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(workdir_of(home))) as one:
        yield one


def in_background(one: Gateway, command: str, **options: object) -> None:
    arguments = {"command": command, "background": True, **options}
    items = [{"calls": [{"tool": "terminal", "arguments": arguments}]}, {"text": "left"}]
    one.wait_state(one.say("room", f"script: {json.dumps(items)}"), "done")


def test_a_home_without_processes_says_so(home: Path, serving: Gateway) -> None:
    assert koboshi("processes", "list", home=home).out == "there are no background processes\n"


@pytest.mark.parametrize("verb", ["log", "kill"])
@pytest.mark.parametrize("named", ["p9", "t1", "nonsense", "p"])
def test_one_that_is_not_there_is_not_found(
    home: Path, serving: Gateway, verb: str, named: str
) -> None:
    """S110."""
    ended = koboshi("processes", verb, named, home=home)

    assert ended.code != 0
    assert f'there is no process "{named}"' in ended.err
    assert "Traceback" not in ended.err


def test_a_running_one_is_listed_read_killed_and_explained(home: Path, serving: Gateway) -> None:
    """S108, S109, S115: and no notice is sent of an end that an operator asked for."""
    in_background(
        serving, "echo up; sleep 600", notify_on_complete=True, watch_patterns=["nothing"]
    )
    until(lambda: koboshi("processes", "log", "p1", home=home).out == "up\n", "its output")
    listed = koboshi("processes", "list", home=home).out
    assert listed.startswith("p1    running for ")
    assert "echo up; sleep 600" in listed
    assert listed.rstrip().endswith("[exit, match]")
    (view,) = koboshi("processes", "list", "--json", home=home).document["processes"]
    pid = view["process"]["birth"]["pid"]

    killed = koboshi("processes", "kill", "p1", home=home)

    assert killed.out.startswith("p1    killed ")
    until(lambda: not is_there(pid), "its runner is gone")
    again = koboshi("processes", "kill", "p1", home=home)
    assert again.out.startswith("it had ended already; p1")
    told = koboshi("explain", "p1", home=home).out.splitlines()
    assert told[0].startswith("process p1 of session s1")
    assert any(line.startswith("stands    killed") for line in told)
    assert "why       it was ended on request" in told
    assert "told      nothing: its end was asked for" in told
    assert not any("what was said about it" in line for line in told)


def test_an_end_that_was_told_is_explained_with_its_turn(home: Path, serving: Gateway) -> None:
    in_background(serving, f"{UNTIL_GO}; echo worked; exit 3", notify_on_complete=True)
    workdir_of(home).joinpath("go").touch()

    def told() -> list[str]:
        return koboshi("explain", "p1", home=home).out.splitlines()

    until(lambda: any("told in turn t2" in line for line in told()), "it is told")
    assert any(line.startswith("stands    exited with code 3") for line in told())
    assert any(line.startswith("watched   its end: fired, 1 report") for line in told())


def test_without_a_gateway_the_truth_is_told_by_the_command_itself(
    home: Path, serving: Gateway
) -> None:
    """S129, S136: it runs on when the gateway has been killed; it can be read and killed, and the
    next gateway does not announce it."""
    in_background(serving, "echo up; sleep 600", notify_on_complete=True)
    until(lambda: koboshi("processes", "log", "p1", home=home).out == "up\n", "its output")
    serving.kill()

    assert koboshi("processes", "list", home=home).out.startswith("p1    running for ")
    assert koboshi("processes", "log", "p1", home=home).out == "up\n"
    assert koboshi("explain", "p1", home=home).code == 0
    assert koboshi("processes", "kill", "p1", home=home).out.startswith("p1    killed ")
    assert koboshi("explain", "p1", "--json", home=home).document["reports"] == []
    with gateway(home) as next_one:
        next_one.wait_state(next_one.say("room", "echo hello"), "done")
        assert next_one.explained("p1")["reports"] == []


def test_an_end_while_no_gateway_runs_is_found_by_the_next_gateway(
    home: Path, serving: Gateway
) -> None:
    """S134: with its true exit code."""
    in_background(serving, f"{UNTIL_GO}; exit 3", notify_on_complete=True)
    serving.kill()
    workdir_of(home).joinpath("go").touch()
    until((home / "processes" / "1" / "exit.json").exists, "it ends")
    with gateway(home) as next_one:
        told = until(lambda: next_one.explained("p1")["reports"], "it is told")

    assert len(told) == 1
    assert "exited with code 3" in told[0]["text"]


def test_a_secret_is_shown_on_no_path(home: Path, tmp_path: Path) -> None:
    """S120: neither in a report of matches, nor in the end, nor in a log."""
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    (workdir / "note").write_text(f"ready: {SECRET}\n")
    home.mkdir(mode=0o700)
    token_file = home / "web-token"
    token_file.write_text(SECRET)
    token_file.chmod(0o600)
    more = {
        "KOBOSHI__GATEWAY__WORKDIR": str(workdir),
        "KOBOSHI__CHANNELS__WEB__MAIN__TOKEN_FILE": str(token_file),
    }
    command = f"{UNTIL_GO}; cat note; until [ -e end ]; do sleep 0.05; done; exit 3"
    with gateway(home, **more) as one:
        in_background(one, command, notify_on_complete=True, watch_patterns=["ready"])
        (workdir / "go").touch()
        until(lambda: len(one.explained("p1")["reports"]) == 1, "the match is told")
        (workdir / "end").touch()
        until(lambda: len(one.explained("p1")["reports"]) == 2, "both are told")
        one.say("room", "/jobs log p1")
        shown = [koboshi("processes", "log", "p1", home=home).out]
        shown += [koboshi("explain", what, "--json", home=home).out for what in ("p1", "t2", "t3")]
        one.stop()

    assert not any(SECRET in text for text in shown)
    assert shown[0] == "ready: ***\n"
    stored = b"".join(path.read_bytes() for path in home.glob("koboshi.db*"))
    assert SECRET.encode() not in stored, "nothing that was said has it, on whatever path"


def test_a_huge_log_is_shown_by_its_ends_and_says_what_is_left_out(
    home: Path, serving: Gateway
) -> None:
    """S120: whatever it is made of, it comes through the socket."""
    command = "echo first; yes '\"\\日本語' | head -c 3000000; echo; echo last"
    in_background(serving, command)
    until(lambda: serving.explained("p1")["process"]["ended_ms"], "it ends")

    lines = koboshi("processes", "log", "p1", home=home).out.splitlines()

    assert (lines[0], lines[-1]) == ("first", "last")
    assert any("left out" in line for line in lines)
