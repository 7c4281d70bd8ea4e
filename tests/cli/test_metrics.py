"""`/metrics` of a real gateway."""

import json
import re
from pathlib import Path

from koboshi.runtime.metric_table import METRICS
from tests.cli.metrics_page import page
from tests.cli.process import gateway, koboshi, until

SCRIPT = [
    {
        "calls": [
            {
                "tool": "terminal",
                "arguments": {"command": "rm -rf /nowhere/at/all", "outside": True, "reason": "x"},
            },
            {"tool": "list_files", "arguments": {"path": "."}},
        ]
    },
    {"text": "done"},
]
OF_A_SERVER = {
    "koboshi_lease_age_seconds",
    "koboshi_lock_wait_seconds",
    "koboshi_store_reconnects_total",
    "koboshi_store_rounds_total",
    "koboshi_unknown_commits_total",
}
"""What a store in a file does not tell."""
LABELS = {"le", *(label for told in METRICS.values() for label in told.labels)}
LINE = re.compile(r"(?:# (?:HELP|TYPE) \S+ .+|[a-z_]+(?:\{[^}]*\})? -?[0-9.e+-]+)")


def test_it_counts_what_happened_in_this_boot_and_names_no_person(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with gateway(home) as one:
        one.wait_state(one.say("ann", "echo in an earlier boot"), "done")
        one.kill()
    with gateway(home) as one:
        assert page(one, token="wrong")[0] == 401
        one.wait_state(one.say("ann-secret-name", "echo hello"), "done")
        status, kind, first = page(one)
        asked = one.say("bob", f"script: {json.dumps(SCRIPT)}")
        one.wait_state(asked, "waiting")
        one.asked(ask="say", what="bob", message="deny", text="/deny")
        one.wait_state(asked, "done")
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
    assert 'koboshi_turn_duration_seconds_count{outcome="done"} 1\n' in first
    assert 'koboshi_message_latency_seconds_count{platform="web"} 1\n' in first
    assert 'koboshi_accept_duration_seconds_bucket{platform="web",le="+Inf"} 1\n' in first
    assert 'koboshi_send_duration_seconds_count{outcome="sent",platform="web"} 1\n' in first
    assert 'koboshi_llm_request_duration_seconds_count{model="",outcome="ok",pr' in first
    assert 'koboshi_auth_failures_total{surface="web"} 1\n' in first
    assert 'koboshi_approvals_total{decision="denied"} 1\n' in third
    assert 'koboshi_tool_duration_seconds_count{tool="list_files"}' in third
    assert re.search(r"^koboshi_db_commit_duration_seconds_count \d+$", first, re.M)
    assert set(re.findall(r'[{,]([a-z_]+)="', third)) <= LABELS
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", third, re.M))
    told = {name: told.kind for name, told in METRICS.items() if name not in OF_A_SERVER}
    assert kinds == told
    assert "ann-secret" not in first
    assert "koboshi_db_backup_age_seconds" not in first
    assert "koboshi_db_backup_age_seconds" in third
