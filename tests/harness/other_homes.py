"""Small homes of other gateways, as hermes-agent 0.19.0 and openclaw 2026.9.6 leave them."""

import hashlib
import json
from pathlib import Path

import apsw

HERMES_CONFIG = """\
model:
  default: anthropic/claude-sonnet-4.5
  provider: openrouter
_config_version: 33
TELEGRAM_ALLOWED_USERS: 1001,1002,@ann
mcp_servers:
  files:
    command: npx
    args:
      - -y
      - '@modelcontextprotocol/server-filesystem'
      - /tmp
    env:
      TOKEN: abc
    enabled: false
"""
HERMES_ENV = """\
OPENROUTER_API_KEY=sk-or-fake-0001
TELEGRAM_BOT_TOKEN=123456:AAfake-hermes-token
SIGNAL_ACCOUNT=+100
"""


def job(key: str, name: str, deliver: str, schedule: dict[str, object]) -> dict[str, object]:
    return {"id": key, "name": name, "prompt": f"Do {name}", "script": None, "deliver": deliver,
            "schedule": schedule, "enabled": True, "origin": None}  # fmt: skip


def hermes_home(folder: Path) -> Path:
    _write(folder / "config.yaml", HERMES_CONFIG)
    _write(folder / ".env", HERMES_ENV)
    _write(folder / "SOUL.md", 'You are "Kiri".\nBe brief.\n')
    _write(folder / "memories" / "MEMORY.md", "The server is called kiri\n§\nBackups run at 3")
    _write(folder / "memories" / "USER.md", "Is called Ann, likes tea")
    _write(folder / "skills" / "kitchen" / "tea" / "SKILL.md", "---\nname: tea\n---\nBoil water.\n")
    _write(folder / "skills" / "kitchen" / "tea" / "notes" / "cups.md", "Two.\n")
    (folder / "skills" / "kitchen" / "tea" / "out").symlink_to("/etc")
    paired = {"2002": {"user_name": "Ann", "approved_at": 1.5}}
    _write(folder / "platforms" / "pairing" / "telegram-approved.json", json.dumps(paired))
    jobs = [
        job("a1", "morning", "telegram:1001", {"kind": "cron", "expr": "0 9 * * *"}),
        job("b2", "look", "local", {"kind": "interval", "minutes": 120}),
        job("c3", "past", "telegram:1001", {"kind": "once", "run_at": "2020-01-01T10:00:00+00:00"}),
    ]
    _write(folder / "cron" / "jobs.json", json.dumps({"jobs": jobs}))
    _hermes_talks(folder / "state.db")
    return folder


def _hermes_talks(file: Path) -> None:
    state = apsw.Connection(str(file))
    state.execute(
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, user_id TEXT, chat_type TEXT);"
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,"
        " timestamp REAL);"
    )
    parts = json.dumps([{"type": "text", "text": "the heron at the lake"}, {"type": "image_url"}])
    for number, (source, user, kind, role, said) in enumerate(
        (
            ("telegram", "1001", "dm", "user", "my heron lives at the lake"),
            ("telegram", "1001", "dm", "assistant", "A heron, noted."),
            ("telegram", "1001", "dm", "tool", "heron.txt"),
            ("telegram", "1002", "dm", "user", f"\x00json:{parts}"),
            ("telegram", "1001", "group", "user", "a heron in the group"),
            ("telegram", "9999", "dm", "user", "the heron of a stranger"),
            ("cli", None, None, "user", "the heron at the terminal"),
        )
    ):
        name = f"{source}-{user}-{kind}"
        row = (name, source, user, kind)
        state.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?)", row)
        told = (number, name, role, said, 1_780_000_000.5 + number)
        state.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?)", told)
    state.close()


def openclaw_home(folder: Path) -> Path:
    work = folder / "workspace"
    tree = {
        "agents": {
            "defaults": {"workspace": str(work), "model": {"primary": "anthropic/claude-opus-5"}}
        },
        "channels": {
            "telegram": {"botToken": "777:AAfake-claw-token", "allowFrom": ["3001", "*"]},
            "whatsapp": {"enabled": True},
        },
        "mcp": {"servers": {"files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}}},
    }
    _write(folder / "openclaw.json", json.dumps(tree, indent=2))
    _write(work / "MEMORY.md", "The server is called kiri\n")
    _write(work / "SOUL.md", "# Who you are\n")
    _write(work / "AGENTS.md", "# Rules\n")
    _write(work / "skills" / "tea" / "SKILL.md", "Boil water.\n")
    (folder / "state").mkdir()
    state = apsw.Connection(str(folder / "state" / "openclaw.sqlite"))
    state.execute(
        "CREATE TABLE state_leases (scope TEXT, lease_key TEXT, payload_json TEXT);"
        "CREATE TABLE config_machine_state (state_key TEXT, value_json TEXT);"
        "CREATE TABLE channel_pairing_allow_entries"
        " (channel_key TEXT, account_id TEXT, entry TEXT);"
        "CREATE TABLE cron_jobs (store_key TEXT, job_id TEXT, job_json TEXT);"
    )
    profiles = {"anthropic:default": {"type": "api_key", "provider": "anthropic", "key": "sk-fake"}}
    kept = json.dumps({"version": 1, "profiles": profiles})
    state.execute("INSERT INTO config_machine_state VALUES ('authProfiles.store', ?)", (kept,))
    state.execute(
        "INSERT INTO channel_pairing_allow_entries VALUES ('telegram', 'default', '3002')"
    )
    for name, schedule, delivery, more in (
        (
            "morning",
            {"kind": "cron", "expr": "0 9 * * *"},
            {"channel": "telegram", "to": "3001"},
            {},
        ),
        ("report", {"kind": "at", "at": "2099-03-01T10:00:00.000Z"}, {"channel": "last"}, {}),
        ("heartbeat", {"kind": "every", "everyMs": 1000}, {}, {"declarationKey": "heartbeat:main"}),
    ):
        told = {"id": name, "name": name, "schedule": schedule, "delivery": delivery, **more,
                "payload": {"kind": "agentTurn", "message": f"Do {name}"}}  # fmt: skip
        state.execute("INSERT INTO cron_jobs VALUES ('', ?, ?)", (name, json.dumps(told)))
    state.close()
    (folder / "agents" / "main" / "agent").mkdir(parents=True)
    _openclaw_talks(folder / "agents" / "main" / "agent" / "openclaw-agent.sqlite")
    return folder


def _openclaw_talks(file: Path) -> None:
    state = apsw.Connection(str(file))
    state.execute(
        "CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT);"
        "CREATE TABLE conversations (conversation_id TEXT PRIMARY KEY, channel TEXT, kind TEXT,"
        " peer_id TEXT);"
        "CREATE TABLE session_conversations (session_id TEXT, conversation_id TEXT, role TEXT);"
        "CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT,"
        " created_at INTEGER);"
    )
    noted: list[dict[str, str]] = [{"type": "text", "text": "A heron, noted."}]
    talks: tuple[tuple[str, tuple[str, ...], str, object], ...] = (
        ("agent:main:main", ("3001",), "user", "my heron lives at the lake"),
        ("agent:main:main", (), "assistant", noted),
        ("agent:main:telegram:direct:3002", (), "user", "the heron of another"),
        ("agent:main:telegram:direct:9999", (), "user", "the heron of a stranger"),
        ("agent:main:telegram:group:-7", (), "user", "a heron in the group"),
        ("agent:two:main", ("3001", "3002"), "user", "a heron of several"),
        ("agent:main:dashboard:1", (), "user", "the heron at the page"),
        ("agent:three:main", (), "user", "a heron of no one known"),
    )
    for number, (key, peers, role, content) in enumerate(talks):
        state.execute("INSERT OR IGNORE INTO session_windows VALUES (?, ?)", (key, key))
        for peer in peers:
            place = f"{key}-{peer}"
            told = (place, "telegram", "direct", f"telegram:{peer}")
            state.execute("INSERT INTO conversations VALUES (?, ?, ?, ?)", told)
            state.execute(
                "INSERT INTO session_conversations VALUES (?, ?, 'primary')", (key, place)
            )
        message = {"role": role, "content": content, "timestamp": 1_780_000_000_500 + number}
        if "three" in key:
            message["__openclaw"] = {"senderIsOwner": False}
        told_event = {"type": "message", "id": str(number), "message": message}
        event = json.dumps(told_event, separators=(",", ":"))
        row = (key, number, event, 1_790_000_000_000)
        state.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?)", row)
    state.execute("INSERT INTO transcript_events VALUES ('agent:main:main', 99, 'no json', 1)")
    state.close()


def lease_of(folder: Path, pid: int) -> None:
    """As a gateway of OpenClaw holds its state."""
    state = apsw.Connection(str(folder / "state" / "openclaw.sqlite"))
    owner = json.dumps({"owner": {"pid": pid, "host": "here"}})
    state.execute("INSERT INTO state_leases VALUES ('gateway-owner', 'global', ?)", (owner,))
    state.close()


def print_of(folder: Path) -> dict[str, str]:
    """Every file and link below it, with a hash of what it holds and its time."""
    found: dict[str, str] = {}
    for each in sorted(folder.rglob("*")):
        held = b"" if each.is_symlink() or each.is_dir() else each.read_bytes()
        stat = each.lstat()
        found[str(each.relative_to(folder))] = (
            f"{hashlib.sha256(held).hexdigest()} {stat.st_mtime_ns} {stat.st_mode}"
        )
    return found


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
