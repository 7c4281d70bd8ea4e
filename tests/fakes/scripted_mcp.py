"""An MCP server over stdio that does exactly what a script says, good or bad.

    python tests/fakes/scripted_mcp.py SCRIPT.json

The script is `{"tools": [...], "calls": {"<tool>": {...}}}`; what a call does is in `act`. Nothing
but the standard library, so that nothing puts right what the script gets wrong.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

JSON = dict[str, Any]


def main() -> None:
    script: JSON = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for line in script.get("stderr", []):
        print(line, file=sys.stderr, flush=True)
    if "exit" in script:
        sys.exit(script["exit"])
    for line in sys.stdin:
        message: JSON = json.loads(line)
        if "id" in message:
            answer(message, script)


def answer(message: JSON, script: JSON) -> None:
    match message["method"]:
        case "initialize":
            reply(
                message,
                result={
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "scripted", "version": "1"},
                },
            )
        case "tools/list":
            reply(message, result={"tools": script["tools"]})
        case "tools/call":
            act(message, script)
        case _:
            reply(message, error={"code": -32601, "message": "no such method"})


def act(message: JSON, script: JSON) -> None:
    params: JSON = message["params"]
    does: JSON = script.get("calls", {}).get(params["name"], {})
    for line in does.get("noise", []):
        say(line)
    for _ in range(does.get("stderr_lines", 0)):
        print("complaint " * 20, file=sys.stderr)
    if "tools" in does:
        script["tools"] = does["tools"]
        say(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    if "endless_bytes" in does:
        sys.stdout.write("x" * does["endless_bytes"])
        sys.stdout.flush()
    if does.get("spawns"):
        child = subprocess.Popen(["sleep", "600"])
        reply(message, result=text(str(child.pid)))
    elif does.get("tells_environment"):
        reply(message, result=text(json.dumps(dict(os.environ))))
    elif "exit" in does:
        os._exit(does["exit"])
    elif "error" in does:
        reply(message, error=does["error"])
    elif not does.get("hangs"):
        reply(message, result=does.get("result", text(str(os.getpid()))))


def text(words: str) -> JSON:
    return {"content": [{"type": "text", "text": words}]}


def reply(message: JSON, **outcome: Any) -> None:
    say(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
