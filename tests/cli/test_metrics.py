"""`/metrics` of a real gateway."""

import http.client
import re
from pathlib import Path

from tests.cli.process import Gateway, gateway, koboshi, until

LINE = re.compile(r"(?:# (?:HELP|TYPE) \S+ .+|[a-z_]+(?:\{[^}]*\})? -?[0-9.e+-]+)")


def page(one: Gateway, token: str | None = None) -> tuple[int, str, str]:
    host, port = one.wait_serving()
    connection = http.client.HTTPConnection(host, port, timeout=30)
    given = (one.home / "web-token").read_text().strip() if token is None else token
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {given}"})
        answer = connection.getresponse()
        return answer.status, answer.headers["content-type"], answer.read().decode()
    finally:
        connection.close()


def test_it_counts_what_happened_in_this_boot_and_names_nobody(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with gateway(home) as one:
        one.wait_state(one.say("ann", "echo in an earlier boot"), "done")
        one.kill()
    with gateway(home) as one:
        assert page(one, token="wrong")[0] == 401
        one.wait_state(one.say("ann-secret-name", "echo hello"), "done")
        status, kind, first = page(one)
        one.wait_state(one.say("bob", "echo again"), "done")
        second = until(
            lambda: found if 'outcome="done"} 2' in (found := page(one)[2]) else None,
            "both turns are counted",
        )
        assert koboshi("backup", "create", home=home).code == 0
        third = page(one)[2]

    assert status == 200
    assert kind.startswith("text/plain; version=0.0.4")
    assert all(LINE.fullmatch(line) for line in first.splitlines()), first
    assert 'koboshi_inbox_received_total{kind="message",platform="web"} 1\n' in first
    assert 'koboshi_turns_total{outcome="done"} 1\n' in first
    assert 'koboshi_unclean_boots_total{cause="killed"} 1\n' in first
    assert 'koboshi_inbox_received_total{kind="message",platform="web"} 2\n' in second
    assert "ann" not in first
    assert "koboshi_db_backup_age_seconds" not in first
    assert "koboshi_db_backup_age_seconds" in third
