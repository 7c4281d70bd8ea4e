"""A model server for real agents: it runs the command of the newest request once, and then answers.

It speaks chat completions and responses, streamed or not, as far as these agents need it.
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMAND = re.compile(r"RUN«(.*?)»")
SHELLS = ("exec_command", "shell_command", "shell", "local_shell", "terminal", "bash")


def texts(item: dict[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content or () if isinstance(part, dict))


def plan(items: list[dict[str, Any]], tools: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """What the model says: a text, or a call of a shell."""
    users = [place for place, item in enumerate(items) if item.get("role") == "user"]
    asked = [place for place in users if COMMAND.search(texts(items[place]))]
    if not asked:
        return "ready", {}
    after = items[asked[-1] + 1 :]
    if any(each.get("role") == "tool" or "output" in each.get("type", "") for each in after):
        return "finished", {}
    if "Your process ended" in texts(items[asked[-1]]):
        return "continued", {}
    names = [each.get("name") or each.get("function", {}).get("name", "") for each in tools]
    name = next((shell for shell in SHELLS if shell in names), "")
    found = COMMAND.search(texts(items[asked[-1]]))
    assert found is not None
    command = found[1]
    if not name:
        return f"no shell among {names}", {}
    arguments: dict[str, Any] = {"command": command}
    if name == "shell":
        arguments = {"command": ["bash", "-lc", command]}
    if name == "exec_command":
        arguments = {"cmd": command, "yield_time_ms": 60_000}
    return "", {"name": name, "arguments": json.dumps(arguments)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        return

    def do_GET(self) -> None:
        models = [{"id": "test-model", "object": "model", "context_length": 128_000}]
        self.send(json.dumps({"object": "list", "data": models, "models": []}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open(sys.argv[2], "a", encoding="utf-8") as file:
            file.write(json.dumps({"path": self.path, "body": body}) + "\n")
        if self.path.endswith("/responses"):
            text, call = plan(body["input"], body.get("tools", []))
            self.tell_responses(text, call)
        else:
            text, call = plan(body.get("messages", []), body.get("tools", []))
            self.tell_completions(text, call, is_streamed=bool(body.get("stream")))

    def tell_responses(self, text: str, call: dict[str, Any]) -> None:
        part = {"type": "output_text", "text": text, "annotations": []}
        item: dict[str, Any] = {
            "type": "message", "id": "m1", "role": "assistant", "status": "completed",
            "content": [part],
        }  # fmt: skip
        if call:
            item = {"type": "function_call", "id": "f1", "call_id": "call_1", **call}
        usage = {
            "input_tokens": 5, "input_tokens_details": None, "output_tokens": 3,
            "output_tokens_details": None, "total_tokens": 8,
        }  # fmt: skip
        done = {
            "id": "r1",
            "object": "response",
            "status": "completed",
            "output": [item],
            "usage": usage,
        }
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {"id": "r1"}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
        ]
        if not call:
            delta = {"item_id": "m1", "output_index": 0, "content_index": 0, "delta": text}
            events.append({"type": "response.output_text.delta", **delta})
        events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        events.append({"type": "response.completed", "response": done})
        lines = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events]
        self.send("".join(lines).encode(), "text/event-stream")

    def tell_completions(self, text: str, call: dict[str, Any], *, is_streamed: bool) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if call:
            made = {"index": 0, "id": "call_1", "type": "function", "function": call}
            message = {"role": "assistant", "content": None, "tool_calls": [made]}
        ends = "tool_calls" if call else "stop"
        usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
        head = {"id": "c1", "created": 1, "model": "test-model"}
        if not is_streamed:
            choice = {"index": 0, "message": message, "finish_reason": ends}
            whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            self.send(json.dumps(whole).encode())
            return
        kind = {**head, "object": "chat.completion.chunk"}
        chunks = [
            {**kind, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**kind, "choices": [{"index": 0, "delta": {}, "finish_reason": ends}]},
            {**kind, "choices": [], "usage": usage},
        ]
        lines = [f"data: {json.dumps(each)}\n\n" for each in chunks]
        self.send(("".join(lines) + "data: [DONE]\n\n").encode(), "text/event-stream")

    def send(self, content: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
