"""Write deploy/grafana/koboshi.json: the dashboard, from the table below."""

import json
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "deploy" / "grafana" / "koboshi.json"


def within(part: float, name: str) -> str:
    """How long that part of what a histogram holds took at most."""
    return f"histogram_quantile({part:g}, sum by (le) (rate({name}_bucket[5m])))"


# Title, unit, and the lines: an expression and what stands beside it.
PANELS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("Ready", "none", (("koboshi_ready", "{{check}}"), ("koboshi_adapter_up", "{{platform}}"))),
    ("Model and servers", "none", (("koboshi_neighbour_up", "{{neighbour}}"),)),
    ("Turns", "none", (("koboshi_turns_running", "running"), ("koboshi_turns_waiting", "{{for}}"))),
    (
        "Messages a second",
        "ops",
        (
            ("sum by (platform) (rate(koboshi_inbox_received_total[5m]))", "in, {{platform}}"),
            ("sum by (platform) (rate(koboshi_outbox_sent_total[5m]))", "out, {{platform}}"),
        ),
    ),
    (
        "From a message to its answer",
        "s",
        (
            (within(0.5, "koboshi_message_latency_seconds"), "half of them"),
            (within(0.95, "koboshi_message_latency_seconds"), "95 of 100"),
        ),
    ),
    (
        "Until a message is stored, 99 of 100",
        "s",
        (
            (within(0.99, "koboshi_accept_duration_seconds"), "accepted"),
            (within(0.99, "koboshi_db_commit_duration_seconds"), "one commit"),
        ),
    ),
    (
        "Requests to the model a second",
        "ops",
        (
            (
                "sum by (outcome) (rate(koboshi_llm_request_duration_seconds_count[5m]))",
                "{{outcome}}",
            ),
        ),
    ),
    (
        "How long the oldest waits",
        "s",
        (
            ("koboshi_inbox_oldest_age_seconds", "inbox"),
            ("koboshi_outbox_oldest_age_seconds", "outbox"),
        ),
    ),
    (
        "Depth",
        "none",
        (
            ("koboshi_inbox_depth", "inbox"),
            ("koboshi_outbox_depth", "outbox"),
            ("koboshi_outbox_held", "held"),
            ("koboshi_outbox_ambiguous", "of unknown outcome"),
        ),
    ),
    (
        "Turns that ended, an hour",
        "none",
        (("sum by (outcome) (increase(koboshi_turns_total[1h]))", "{{outcome}}"),),
    ),
    (
        "What recovery decided, an hour",
        "none",
        (("sum by (reason) (increase(koboshi_turn_resumes_total[1h]))", "{{reason}}"),),
    ),
    (
        "Deliveries that did not arrive, an hour",
        "none",
        (
            ("sum by (reason) (increase(koboshi_outbox_dead_total[1h]))", "{{reason}}"),
            ("sum(increase(koboshi_outbox_postponed_total[1h]))", "sent again"),
        ),
    ),
    (
        "Boots that did not end by their own will",
        "none",
        (
            ("koboshi_unclean_boots_total", "{{cause}}"),
            ("koboshi_safe_mode", "breaker"),
        ),
    ),
    (
        "Disk",
        "bytes",
        (
            ("koboshi_db_size_bytes", "database"),
            ("koboshi_db_wal_bytes", "log"),
            ("koboshi_disk_free_bytes", "free"),
        ),
    ),
    ("Since the newest backup", "s", (("koboshi_db_backup_age_seconds", "backup"),)),
    (
        "Process",
        "none",
        (
            ('rate(process_cpu_seconds_total{job="koboshi"}[5m])', "cores"),
            ("koboshi_jobs_running", "processes of the agent"),
        ),
    ),
)


def render() -> str:
    """The dashboard as text."""
    source = {"type": "prometheus", "uid": "${source}"}
    panels = [
        {
            "id": number + 1,
            "type": "timeseries",
            "title": title,
            "datasource": source,
            "gridPos": {"x": 8 * (number % 3), "y": 7 * (number // 3), "w": 8, "h": 7},
            "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
            "targets": [
                {
                    "refId": chr(65 + place),
                    "datasource": source,
                    "expr": expr,
                    "legendFormat": legend,
                }
                for place, (expr, legend) in enumerate(lines)
            ],
        }
        for number, (title, unit, lines) in enumerate(PANELS)
    ]
    choice = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    board = {
        "title": "Koboshi",
        "uid": "koboshi",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [choice]},
        "panels": panels,
    }
    return json.dumps(board, indent=2) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
