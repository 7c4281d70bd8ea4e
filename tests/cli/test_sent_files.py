"""A file that the agent sends, in the web chat of a real gateway."""

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import Gateway, gateway, koboshi, until
from tests.harness.rows import read_rows

CONTENT = b"figures\n" * 100_000


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"


def sending(folder: Path) -> dict[str, str]:
    folder.mkdir()
    (folder / "report.csv").write_bytes(CONTENT)
    return {"KOBOSHI__GATEWAY__WORKDIR": str(folder)}


def script() -> str:
    call = {"tool": "send_file", "arguments": {"path": "report.csv", "caption": "the figures"}}
    return f"script: {json.dumps([{'calls': [call]}, {'text': 'sent'}])}"


def fetched(one: Gateway, path: str) -> tuple[int, dict[str, str], bytes]:
    host, port = one.wait_serving()
    connection = http.client.HTTPConnection(host, port, timeout=60)
    token = (one.home / "web-token").read_text().strip()
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def delivery_of(home: Path) -> Any:
    (row,) = (row for row in read_rows(home).of("outbox") if row["file"] is not None)
    return row if row["state"] == "delivered" else None


def test_a_sent_file_can_be_fetched_also_after_a_kill(home: Path, tmp_path: Path) -> None:
    """Issue 13, B15: the address is good as long as the delivery is there, over restarts."""
    env = sending(tmp_path / "work")
    with gateway(home, **env) as one:
        one.wait_state(one.say("ann", script()), "done")
        row = until(lambda: delivery_of(home), "it is delivered")
        path = f"/api/v1/sessions/ann/files/d{row['delivery_id']}"
        status, headers, body = fetched(one, path)
        assert (status, body) == (200, CONTENT)
        assert "report.csv" in headers["content-disposition"]
        one.kill()
    (tmp_path / "work" / "report.csv").write_text("changed since")
    with gateway(home, **env) as one:
        assert fetched(one, path)[::2] == (200, CONTENT), "the copy of what was sent"


def test_the_terminal_names_the_file_and_its_address(home: Path, tmp_path: Path) -> None:
    """Issue 13, B15: it showed the caption, and nothing else."""
    with gateway(home, **sending(tmp_path / "work")) as one:
        told = koboshi("chat", "--once", script(), home=home)

        assert told.code == 0, told.err
        host, port = one.wait_serving()
        row = delivery_of(home)
        assert "the figures" in told.out
        path = f"/api/v1/sessions/terminal/files/d{row['delivery_id']}"
        assert f"[file: report.csv, 800 kB: http://{host}:{port}{path}]" in told.out
