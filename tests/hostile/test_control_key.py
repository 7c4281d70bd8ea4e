"""Issue 15, V4: the control socket answers only requests that show the key of the home."""

import json
import os
import socket
from pathlib import Path
from typing import Any

from koboshi.control.socket import SOCKET_NAME, short_name
from tests.cli.process import gateway, koboshi

APPROVES_ITSELF: list[dict[str, object]] = [
    {"ask": "login"},
    {"ask": "address"},
    {"ask": "status"},
    {"ask": "stop"},
    {"ask": "pairing-approve", "what": "ABCDEFGH"},
    {"ask": "backup-create", "what": "/tmp/stolen.db"},
    {"ask": "turn-resume", "what": "t1", "key": "guessed"},
    {"ask": "process-kill", "what": "p1", "key": None},
]


def asked_without_key(home: Path, request: dict[str, object]) -> Any:
    """The answer to a program that can connect and cannot read the home."""
    folder = os.open(home, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(60)
            link.connect(short_name(folder, home / SOCKET_NAME))
            link.sendall(json.dumps(request).encode() + b"\n")
            with link.makefile("rb") as lines:
                return json.loads(lines.readline())
    finally:
        os.close(folder)


def test_a_program_without_the_key_can_ask_for_nothing(home: Path) -> None:
    with gateway(home) as one:
        kinds = [asked_without_key(home, each)["error"]["type"] for each in APPROVES_ITSELF]

        assert kinds == ["no-key"] * len(APPROVES_ITSELF)
        assert one.asked(ask="status")["ok"] is True, "it still runs, and answers who has the key"
    assert not Path("/tmp/stolen.db").exists()


def test_a_damaged_key_is_made_anew_at_the_next_start(home: Path) -> None:
    with gateway(home) as one:
        one.stop()
    key = home / "control-key"
    key.write_bytes(b"\xff\x00 no key")
    with gateway(home) as one:
        assert koboshi("status", home=home).code == 0
        one.stop()

    assert key.stat().st_mode & 0o777 == 0o600
    assert len(key.read_text().strip()) > 20
    assert (home / "quarantine" / "control-key-1" / "control-key").exists()


def test_a_key_lost_while_the_gateway_runs_is_written_again(home: Path) -> None:
    """The command asks once more by itself; a person notices nothing."""
    with gateway(home):
        (home / "control-key").unlink()

        told = koboshi("status", home=home)

    assert (told.code, told.err) == (0, "")
