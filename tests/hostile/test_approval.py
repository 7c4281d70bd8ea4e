"""Issue 15, V4: nothing that the agent can reach may approve, pair, or open."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import Gateway, gateway, koboshi, until
from tests.hostile.browsing import browser, program

CHAT = "terminal"
DANGEROUS = {"command": "echo ran >> ran; kill -0 $$", "outside": True, "reason": "to try it"}
SCRIPT = "script: " + json.dumps(
    [{"calls": [{"tool": "terminal", "arguments": DANGEROUS}]}, {"text": "through"}]
)


def asked_for_approval(one: Gateway) -> Any:
    """A turn that waits for a yes; the question."""
    message = one.say(CHAT, SCRIPT)
    one.wait_state(message, "waiting")
    (question,) = one.asked(ask="questions")["questions"]
    return question


def is_waiting(one: Gateway) -> bool:
    return len(one.asked(ask="questions")["questions"]) == 1


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return tmp_path / "workdir"


@pytest.mark.parametrize("words", ["yes", "no", "/approve", "/deny", "/deny because", "whatever"])
def test_a_bearer_token_cannot_answer_an_approval(home: Path, workdir: Path, words: str) -> None:
    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(workdir)) as one:
        asked_for_approval(one)
        rows = one.asked(ask="inbox")["messages"]
        refused = program(one).say(CHAT, words)

        assert (refused.status, refused.document["error"]["type"]) == (403, "approval-needs-person")
        assert is_waiting(one)
        assert one.asked(ask="inbox")["messages"] == rows, "nothing is stored"
    assert not (workdir / "ran").exists()


def test_a_bearer_token_cannot_press_the_button_either(home: Path, workdir: Path) -> None:
    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(workdir)) as one:
        number = asked_for_approval(one)["question"]
        refused = program(one).say(CHAT, "", question=number, choice="yes")

        assert refused.status == 403
        assert is_waiting(one)
    assert not (workdir / "ran").exists()


def test_what_does_not_answer_it_is_taken_as_before(home: Path, workdir: Path) -> None:
    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(workdir)) as one:
        asked_for_approval(one)
        taken = [program(one).say(CHAT, words).status for words in ("/status", "/queue echo 1")]

        assert taken == [202, 202]
        assert is_waiting(one)
        assert program(one).say(CHAT, "/stop").status == 202


def test_an_ordinary_question_is_answered_with_a_token(home: Path) -> None:
    with gateway(home) as one:
        message = one.say(CHAT, "ask me which drink: tea or coffee")
        one.wait_state(message, "waiting")

        assert program(one).say(CHAT, "tea").status == 202
        one.wait_state(message, "done")


def test_a_browser_that_was_let_in_approves(home: Path, workdir: Path) -> None:
    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(workdir)) as one:
        number = asked_for_approval(one)["question"]
        taken = browser(one).say(CHAT, "Yes", question=number, choice="yes")

        assert taken.status == 202
        until((workdir / "ran").exists, "the command ran")


def test_chat_approves_over_the_control_socket(home: Path, workdir: Path) -> None:
    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(workdir)) as one:
        asked_for_approval(one)
        told = koboshi("chat", "--once", "yes", home=home)

        assert (told.code, told.out.strip()) == (0, "through"), told.err
    assert (workdir / "ran").read_text() == "ran\n"


def test_chat_without_the_key_of_the_home_approves_nothing(home: Path, workdir: Path) -> None:
    """As from inside a boundary: the token was found, the home is out of sight."""
    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(workdir)) as one:
        asked_for_approval(one)
        host, port = one.wait_serving()
        stolen = home.parent / "elsewhere"
        stolen.mkdir(mode=0o700)
        token = stolen / "web-token"
        token.write_text((home / "web-token").read_text())
        token.chmod(0o600)
        url = f"http://{host}:{port}"
        told = koboshi("chat", "--once", "yes", "--url", url, home=stolen)

        assert told.code == 1
        assert "only a person may answer an approval" in told.err
        assert is_waiting(one)
    assert not (workdir / "ran").exists()


def test_the_environment_of_commands_leads_nowhere(home: Path, workdir: Path) -> None:
    """What a command is given names neither the home nor a key."""
    secrets = {"OPENAI_API_KEY": "sk-secret", "KOBOSHI_CONFIG": str(home / "koboshi.toml")}
    env = {"tool": "terminal", "arguments": {"command": "env > env"}}
    script = "script: " + json.dumps([{"calls": [env]}, {"text": "through"}])
    home.mkdir(mode=0o700)
    (home / "koboshi.toml").write_text("")
    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(workdir), **secrets) as one:
        one.wait_state(one.say(CHAT, script), "done")

    given = (workdir / "env").read_text()
    assert "PATH=" in given
    assert str(home) not in given
    assert "sk-secret" not in given
    names = {line.partition("=")[0] for line in given.splitlines() if "KOBOSHI" in line}
    assert names <= {"KOBOSHI_PROCESS"}, "a random mark by which its processes are found again"
