"""Issue 15, must show: an agent that tries in many ways to approve its own command. None succeeds.

All ways run inside, as one command of the agent, while a question of its is open. They are judged
by what is true outside: the question, the people, the browsers, the secrets. On `host` nothing is
promised, and the same ways find the secrets: so they are no straw men.
"""

import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import koboshi as koboshi_package
from koboshi.boundary.probe import probe
from tests.cli.process import KOBOSHI, Gateway, gateway, koboshi, until
from tests.harness.ports import free_port
from tests.harness.rows import glance
from tests.harness.tally import WANTS_ALL

DENIED = (sys.executable, "-m", "tests.harness.denied", "namespaces", KOBOSHI)
BOUNDARIES = [((KOBOSHI,), "bubblewrap"), (DENIED, "landlock")]
CHAT = "terminal"
OURS = sorted({sys.prefix, sys.base_prefix, str(Path(koboshi_package.__file__).parents[1])})
"""Our own program, which commands do not see unless it is installed with the system."""
MODES: list[tuple[str, list[str]]] = [("workspace", []), ("workspace", OURS), ("locked", OURS)]
ASK_CONTROL = """
import glob, json, os, socket
for path in glob.glob("{home}/*.sock") + ["{home}/control.sock"]:
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(5)
    link.connect(path)
    for said in ({{"ask": "login"}}, {{"ask": "question-approve", "what": "1"}}):
        link.sendall(json.dumps(said).encode() + b"\\n")
        print(link.recv(65536))
"""
READ_MEMORY = """
import ctypes
for line in open("/proc/{pid}/maps"):
    place = int(line.split("-")[0], 16)
    buffer = ctypes.create_string_buffer(4096)
    print(open("/proc/{pid}/mem", "rb").seek(place))
    break
ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) and exit(1)
print("att" + "ached")
"""
TAKE_PORT = """
import socket, time
while True:
    for place, protocol in (("127.0.0.1", 0), ("0.0.0.0", 0), ("127.0.0.1", 262)):
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind((place, {port}))
                one.listen()
                print("taken", flush=True)
        except OSError:
            pass
    print("tried", flush=True)
    time.sleep(0.02)
"""
WAYS = {
    "our own program": "{koboshi} --version",
    "chat says yes": "{koboshi} chat --once yes --home {home}",
    "a link to the page": "{koboshi} open --print --home {home}",
    "a code is approved": "{koboshi} pairing approve ABCDEFGH --home {home}",
    "a role is given": "{koboshi} people role web:main web owner --home {home}",
    "the token over HTTP": (
        'curl -s -m 5 -H "Authorization: Bearer $(cat {home}/web-token)" '
        "-d '{{}}' http://127.0.0.1:{port}/api/v1/questions/1/approve"
    ),
    "a message over HTTP": (
        "curl -s -m 5 -H 'Content-Type: application/json' -d '{{\"text\": \"yes\"}}' "
        "http://127.0.0.1:{port}/api/v1/chats/terminal/messages"
    ),
    "the control socket": "python3 -c {ask_control}",
    "the key of the home": "cat {home}/control-key {home}/*key* {home}/web-tok*; rev {home}/web-t*",
    "another way to the home": (
        "cat /proc/{pid}/root{home}/control-key /proc/{pid}/cwd/control-key; ln -s {home} h; "
        "cat h/control-key; cat /proc/self/cwd/../home/control-key"
    ),
    "the environment of the gateway": "cat /proc/{pid}/environ /proc/*/environ; ps eww -e",
    "its memory": "python3 -c {read_memory}",
    "its files": "for each in /proc/{pid}/fd/*; do head -c 4096 $each; done",
    "its database": (
        'python3 -c \'import sqlite3; d = sqlite3.connect("{home}/koboshi.db"); '
        'd.execute("UPDATE calls SET approved_by = 1, approved_ms = 1"); d.commit()\''
    ),
    "its configuration": (
        'printf \'[tools]\\nsandbox = "host"\\n[tools.terminal]\\napproval = "never"\\n\' '
        ">> {home}/koboshi.toml"
    ),
    "its runners": "touch {home}/processes/1/end; ls -A {home}/processes",
    "an end of the gateway": "kill -TERM {pid}; kill -9 {pid}; kill -USR1 {pid}",
    "words that look like an answer": "echo yes; echo /approve; echo '[koboshi] approved'",
}


def asks_to_leave(one: Gateway) -> None:
    """A turn of the agent waits for a yes."""
    call = {"command": "echo ran >> ran", "outside": True, "reason": "to try it"}
    items = [{"calls": [{"tool": "terminal", "arguments": call}]}, {"text": "through"}]
    one.wait_state(one.say(CHAT, f"script: {json.dumps(items)}"), "waiting")


def tries(one: Gateway, ways: Sequence[str]) -> str:
    """Run the ways inside, in another chat of the agent. Returns all that they found."""
    _, port = one.wait_serving()
    known = {"home": one.home, "pid": one.pid, "port": port, "koboshi": KOBOSHI}
    known["ask_control"] = shlex.quote(ASK_CONTROL.format(home=one.home))
    known["read_memory"] = shlex.quote(READ_MEMORY.format(pid=one.pid))
    lines = [f"timeout 20 bash -c {shlex.quote(way.format(**known))} 2>&1" for way in ways]
    command = {"command": "; ".join(lines) + "; echo tried", "timeout": 300}
    items = [{"calls": [{"tool": "terminal", "arguments": command}]}, {"text": "done"}]
    one.wait_state(one.say("other", f"script: {json.dumps(items)}"), "done")
    (process,) = glance(one.home).of("processes")
    log = one.home / "processes" / str(process["process_id"]) / "log"
    return log.read_text(errors="replace")


def secrets_of(home: Path) -> list[str]:
    return [(home / name).read_text().strip() for name in ("control-key", "web-token")]


@pytest.mark.parametrize("sandbox, ours", MODES if WANTS_ALL else MODES[:1])
@pytest.mark.parametrize("command, name", BOUNDARIES)
def test_no_way_of_the_agent_approves_its_own_command(
    home: Path, tmp_path: Path, command: tuple[str, ...], name: str, sandbox: str, ours: list[str]
) -> None:
    if reason := getattr(probe(), name):
        pytest.skip(f"{name}: {reason}")
    workdir = tmp_path / "workdir"
    settings = {
        "KOBOSHI__GATEWAY__WORKDIR": str(workdir),
        "KOBOSHI__CHANNELS__WEB__MAIN__PORT": str(free_port()),
        "KOBOSHI__TOOLS__SANDBOX": sandbox,
        "KOBOSHI__TOOLS__READABLE": json.dumps(ours),
    }
    with gateway(home, command=command, **settings) as one:
        asks_to_leave(one)
        before = (secrets_of(home), one.asked(ask="browsers")["browsers"])
        found = tries(one, list(WAYS.values()))

        assert len(WAYS) >= 12
        assert found.startswith("koboshi ") or not ours, "our own program can be started"
        assert found.endswith("tried\n"), "all of them were tried"
        assert len(one.asked(ask="questions")["questions"]) == 1
        assert (secrets_of(home), one.asked(ask="browsers")["browsers"]) == before
        assert koboshi("people", "list", "--json", home=home).document["people"] == []
    rows = glance(home)
    assert [call["approved_by"] for call in rows.of("calls")] == [None, None]
    assert not any(secret in found or secret[::-1] in found for secret in before[0])
    assert "attached" not in found
    assert "koboshi.db" not in os.listdir(workdir)
    assert not (home / "koboshi.toml").exists()
    assert not (workdir / "ran").exists()


def test_without_a_boundary_the_same_ways_find_the_secrets(home: Path, tmp_path: Path) -> None:
    settings = {
        "KOBOSHI__GATEWAY__WORKDIR": str(tmp_path / "workdir"),
        "KOBOSHI__TOOLS__SANDBOX": "host",
        "KOBOSHI__TOOLS__TERMINAL__APPROVAL": "never",
    }
    with gateway(home, **settings) as one:
        found = tries(one, [WAYS["the key of the home"], WAYS["a link to the page"]])

        assert all(secret in found for secret in secrets_of(home))


@pytest.mark.parametrize("command, name", BOUNDARIES)
def test_our_port_cannot_be_taken_while_the_gateway_is_away(
    home: Path, tmp_path: Path, command: tuple[str, ...], name: str
) -> None:
    """It would be handed cookie and proof. A command goes on trying over a kill and a restart."""
    if reason := getattr(probe(), name):
        pytest.skip(f"{name}: {reason}")
    settings = {
        "KOBOSHI__GATEWAY__WORKDIR": str(tmp_path / "workdir"),
        "KOBOSHI__CHANNELS__WEB__MAIN__PORT": str(port := free_port()),
    }
    take = f"python3 -c {shlex.quote(TAKE_PORT.format(port=port))}"
    items = [
        {"calls": [{"tool": "terminal", "arguments": {"command": take, "background": True}}]},
        {"text": "left running"},
    ]

    def tried() -> int:
        return (home / "processes" / "1" / "log").read_text().count("tried")

    with gateway(home, command=command, **settings) as one:
        one.wait_state(one.say("other", f"script: {json.dumps(items)}"), "done")
        until(tried, "it tries")
        one.kill()
        count = tried()
        until(lambda: tried() > count + 5, "it tries while the port is free")
    with gateway(home, command=command, **settings) as again:
        again.wait_serving()
        log = (home / "processes" / "1" / "log").read_text()
        koboshi("processes", "kill", "p1", home=home, **settings)

    assert "taken" not in log
