"""A configuration that can be read and cannot be started on: every command that is asked says so,
and no restart takes a gateway down for it."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from tests.cli.process import Ended, Gateway, ended, environment, gateway, koboshi, python, until
from tests.harness.rows import read_rows

WRONG_SETUP = 78
UNKNOWN = 'the provider "opnai" of model "opnai:gpt" is unknown'
NO_LIBRARY = "need a library that is not installed"
TYPO = '[model]\nname = "opnai:gpt"\n'
SERVER = '[mcp.files]\ncommand = "mcp-files"\n'
HOOK = (
    '[channels.telegram.main]\ntoken = "1:aaa"\nwebhook_url = "https://example.org/hook"\n'
    "webhook_port = 8642\n"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"


def write(home: Path, text: str) -> None:
    (home / "koboshi.toml").write_text(text)
    (home / "koboshi.toml").chmod(0o600)


def without(library: str, *arguments: str, home: Path) -> Ended:
    """A command on a machine where that library is not installed."""
    program = f"""
import sys
sys.modules[{library!r}] = None
from koboshi.cli.main import main
main({list(arguments)!r})
"""
    return ended(python(program), environment(home, ANTHROPIC_API_KEY="k", GOOGLE_API_KEY="k"))


def replies(home: Path) -> list[str]:
    return [str(row["text"]) for row in read_rows(home).of("outbox")]


# ── check and doctor ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text, said",
    [
        (TYPO, UNKNOWN),
        ('[model]\nname = "gpt"\n', "does not say whose it is"),
        ('[model]\nname = "openai:gpt"\n', "needs a key"),
        (HOOK, "use the same port 8642"),
        ('[gateway]\nzone = "Europe/Berlni"\n', "must be a time zone such as Europe/Berlin"),
        ('[gateway]\nzone = "zone.tab"\n', "must be a time zone such as Europe/Berlin"),
    ],
    ids=["unknown-provider", "no-provider", "no-key", "one-port-twice", "no-zone", "no-zone-file"],
)
def test_what_a_start_refuses_the_check_refuses(home: Path, text: str, said: str) -> None:
    """Issue 13, B12: the same words and the same code, without starting anything."""
    write(home, text)

    port = {"KOBOSHI__CHANNELS__WEB__MAIN__PORT": "8642"} if text == HOOK else {}

    checked, started = (
        koboshi(*command, home=home, **port) for command in (["config", "check"], ["run"])
    )

    assert (checked.code, started.code) == (WRONG_SETUP, WRONG_SETUP), (checked, started)
    assert said in checked.err
    assert said in started.err
    assert checked.out == ""
    assert not (home / "koboshi.db").exists(), "neither has begun anything"


@pytest.mark.parametrize(
    "library, text",
    [
        ("mcp", SERVER),
        ("anthropic", '[model]\nname = "anthropic:claude"\n'),
        ("pydantic_ai", '[model]\nname = "google:gemini"\n'),
    ],
)
def test_a_library_that_is_missing_is_told_before_a_start(
    home: Path, library: str, text: str
) -> None:
    """Issue 13, B12: an MCP section without the library, a model without its extra."""
    write(home, text)

    for command in (["config", "check"], ["doctor"], ["run"]):
        told = without(library, *command, home=home)
        assert told.code == WRONG_SETUP, (command, told)
        assert "a library that is not installed" in told.out + told.err
        assert "pip install" in told.out + told.err


def test_every_reason_is_told_at_once(home: Path) -> None:
    write(home, TYPO + SERVER)

    told = without("mcp", "config", "check", "--json", home=home)

    assert told.code == WRONG_SETUP
    message = told.document["error"]["message"]
    assert UNKNOWN in message
    assert NO_LIBRARY in message


def test_the_doctor_names_a_configuration_that_cannot_start(home: Path) -> None:
    """Issue 13, B12: it said "can be used"."""
    write(home, TYPO)

    told = koboshi("doctor", "--json", home=home)

    assert told.code == WRONG_SETUP
    (found,) = (each for each in told.document["findings"] if each["check"] == "configuration")
    assert found["severity"] == "error"
    assert UNKNOWN in found["words"]


def test_the_doctor_does_not_need_the_keys_of_the_gateway(home: Path) -> None:
    """They may be there for the gateway alone."""
    write(home, '[model]\nname = "openai:gpt"\n')

    told = koboshi("doctor", "--json", home=home)

    (found,) = (each for each in told.document["findings"] if each["check"] == "configuration")
    assert found["severity"] == "ok"


def test_a_home_that_cannot_be_one_is_refused_by_the_check(tmp_path: Path) -> None:
    """Issue 13, B12: a file in its place, or below one."""
    (tmp_path / "file").write_text("")
    config = tmp_path / "koboshi.toml"
    config.write_text("")
    for home in (tmp_path / "file", tmp_path / "file" / "home"):
        told = koboshi("config", "check", "--config", str(config), home=home)
        assert told.code == WRONG_SETUP, told
        assert "the home" in told.err


def test_a_working_folder_that_cannot_be_used_is_told(home: Path) -> None:
    """Issue 13, B12: a start goes on without it, and warns; the check warns alike."""
    (home / "file").write_text("")
    write(home, '[gateway]\nworkdir = "file/below"\n')

    told = koboshi("config", "check", home=home)

    assert (told.code, told.out) == (0, "ok\n")
    assert "gateway.workdir" in told.err


def test_a_port_in_use_is_told_by_the_check(home: Path) -> None:
    """Issue 13, B12: unless it is our own gateway that has it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        told = koboshi("config", "check", home=home, KOBOSHI__CHANNELS__WEB__MAIN__PORT=port)
        assert told.code == WRONG_SETUP
        assert f"127.0.0.1 port {port} is in use by another program (pid {os.getpid()}" in told.err

    with gateway(home, KOBOSHI__CHANNELS__WEB__MAIN__PORT=port):
        told = koboshi("config", "check", home=home, KOBOSHI__CHANNELS__WEB__MAIN__PORT=port)
        assert told.code == 0, told


# ── restarts ────────────────────────────────────────────────────────────────────────────────────


def still_serves(one: Gateway) -> None:
    """The same boot as ever, and it answers."""
    status = one.asked(ask="status")
    assert status["worker"]["worker_id"] == 1
    assert status["worker"]["restart_by"] is None
    assert not status["worker"]["is_draining"]
    one.wait_state(one.say("ann", "echo still here"), "done")


def test_a_restart_by_command_is_refused_and_the_gateway_goes_on(home: Path) -> None:
    """Issue 13, B12: the reason is told to who asked, and the code is not 0."""
    with gateway(home) as one:
        write(home, TYPO)

        told = koboshi("restart", home=home)

        assert told.code == WRONG_SETUP
        assert UNKNOWN in told.err
        assert "goes on" in told.err
        still_serves(one)
        write(home, "")
        assert koboshi("restart", home=home).code == 0
        assert one.asked(ask="status")["worker"]["worker_id"] == 2


def test_a_restart_by_command_is_refused_where_the_file_cannot_be_read(home: Path) -> None:
    """Issue 13, B12: the gateway answers for itself; the command need not read the file."""
    with gateway(home) as one:
        write(home, "[gateway]\nbusy = 'sometimes'\n")

        told = koboshi("restart", home=home)

        assert told.code == WRONG_SETUP
        assert "gateway.busy must be one of" in told.err
        still_serves(one)


def test_a_restart_by_chat_is_refused_and_the_gateway_goes_on(home: Path) -> None:
    """Issue 13, B12: /restart is answered with the reason."""
    with gateway(home) as one:
        write(home, TYPO)

        one.say("ann", "/restart")

        until(lambda: any(UNKNOWN in reply for reply in replies(home)), "it says why")
        still_serves(one)
        write(home, "")
        one.say("ann", "/restart")
        one.wait_serving(times=2)


def test_a_restart_by_the_agent_is_refused_and_its_turn_goes_on(home: Path) -> None:
    """Issue 13, B12: gateway_restart fails with the reason, and the agent can tell."""
    call = {"tool": "gateway_restart", "arguments": {"reason": "a new model"}}
    script = json.dumps([{"calls": [call]}, {"text": "I told them"}])
    with gateway(home) as one:
        write(home, TYPO)

        message = one.say("ann", f"script: {script}")
        one.wait_state(message, "done")

        results = [str(row["body"]) for row in read_rows(home).of("steps")]
        assert any("opnai" in result and '"error"' in result for result in results), results
        still_serves(one)


def test_a_hangup_is_refused_and_the_gateway_goes_on(home: Path) -> None:
    """Issue 13, B12: the one who sent it finds the reason in the log."""
    with gateway(home) as one:
        write(home, TYPO)
        one.signal(signal.SIGHUP)

        (refused,) = until(lambda: one.events("reload_refused"), "it says what is wrong")
        assert UNKNOWN in refused["reason"]
        still_serves(one)
