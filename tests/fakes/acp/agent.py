"""A strict agent of the Agent Client Protocol. It needs nothing but Python, and does what its
prompt says, line by line.

It is strict: a line that is no message, an id that comes twice, or a prompt whose mark this process
has had already ends it with code 3 and a line in `acp.log`, which tests look for. What it did
stands there as well. Its sessions are files in `.acp`, written like those of real agents: the
prompt when it comes, and each step when it is done, so that a session can be loaded after a
death.
"""

import itertools
import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

MARK = re.compile(r"\[koboshi turn (\d+)\]")
KEPT = Path(".acp")
OPTIONS = set(sys.argv[1:])
DIES_AT = next((int(each[6:]) for each in OPTIONS if each.startswith("--die=")), 0)
WAIT_S = 60.0


class Agent:
    def __init__(self) -> None:
        self.lines = 0
        self.written = 0
        self.ids: set[object] = set()
        self.marks: set[str] = set()
        self.next_id = 0
        self.session = ""
        self.cancelled = False
        self.waiting: list[dict[str, Any]] = []

    def log(self, *words: object) -> None:
        with open("acp.log", "a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {' '.join(map(str, words))}\n")

    def wrong(self, why: str) -> None:
        self.log("WRONG", why)
        os._exit(3)

    def write(self, message: dict[str, Any]) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def raw(self, content: bytes) -> None:
        """Write a line; die before it, if that is planned for this one, and only once."""
        self.lines += 1
        while "--by-line" in OPTIONS and not (KEPT / f"line-{self.lines}").exists():
            pause(0.01)
        if self.lines == DIES_AT and not (KEPT / "died").exists():
            (KEPT / "died").touch()
            os._exit(9)
        while content:
            written = os.write(1, content)
            self.written += written
            content = content[written:]

    def read(self) -> dict[str, Any]:
        line = sys.stdin.buffer.readline()
        if not line:
            os._exit(0)
        message: dict[str, Any] = {}
        try:
            message = json.loads(line)
        except ValueError:
            self.wrong(f"no message: {line[:100]!r}")
        if message.get("jsonrpc") != "2.0":
            self.wrong("no JSON-RPC")
        if "method" in message and "id" in message:
            if message["id"] in self.ids:
                self.wrong(f"the id {message['id']} came twice")
            self.ids.add(message["id"])
        return message

    def serve(self) -> None:
        while True:
            message = self.waiting.pop(0) if self.waiting else self.read()
            if "method" not in message:
                self.wrong("an answer to no question")
            self.take(message)

    def take(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if f"--silent={message['method']}" in OPTIONS:
            self.log("silent", message["method"])
            return
        match message["method"]:
            case "initialize":
                can = {"loadSession": "--cannot-load" not in OPTIONS}
                self.answer(message, {"protocolVersion": 1, "agentCapabilities": can})
            case "session/new":
                self.session = self.opened()
                self.log("new", self.session)
                self.answer(message, {"sessionId": self.session})
                self.update({"sessionUpdate": "available_commands_update", "availableCommands": []})
            case "session/load":
                self.load(message, params["sessionId"])
            case "session/prompt":
                self.prompt(message, params)
            case "session/cancel":
                self.log("cancel")
                self.cancelled = True
            case method:
                self.wrong(f"unknown method {method}")

    def load(self, message: dict[str, Any], session: str) -> None:
        if "--refuse-load" in OPTIONS or not (KEPT / session).exists():
            self.write({"id": message["id"], "error": {"code": -32002, "message": "no such"}})
            return
        self.session = session
        self.log("load", session)
        for turn in self.kept():
            self.chunk("user_message_chunk", turn["text"])
            self.chunk("agent_message_chunk", f"(earlier words of turn {turn['mark']})")
        self.answer(message, {})

    def kept(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((KEPT / self.session).read_text())
        return found

    def opened(self) -> str:
        """The name of a new session. Agents of several chats may open one at the same time."""
        for number in itertools.count(1):
            with suppress(FileExistsError), (KEPT / f"session-{number}").open("x") as file:
                file.write("[]")
                return f"session-{number}"
        raise AssertionError("there is always a number")

    def keep(self, turns: list[dict[str, Any]]) -> None:
        new = KEPT / f"new-{os.getpid()}.json"
        new.write_text(json.dumps(turns))
        new.replace(KEPT / self.session)

    def prompt(self, message: dict[str, Any], params: dict[str, Any]) -> None:
        if params["sessionId"] != self.session:
            self.wrong("a prompt of another session")
        text = "".join(block["text"] for block in params["prompt"])
        mark = MARK.findall(text)[-1]
        if mark in self.marks:
            self.wrong(f"turn {mark} came twice")
        self.marks.add(mark)
        goes_on = "; you were started again." in text
        self.log("prompt", mark, "again" if goes_on else "first")
        self.cancelled = False
        turns = [] if "--forget" in OPTIONS else self.kept()
        done = next((turn["done"] for turn in turns if turn["mark"] == mark), 0)
        turns = [turn for turn in turns if turn["mark"] != mark]
        turns.append({"mark": mark, "text": text, "done": done})
        if "--forget" not in OPTIONS:
            self.keep(turns)
        if goes_on:
            self.say(f"went on from {done}. ")
        stop = "end_turn"
        script = [line.strip() for line in text.split("\n") if line.strip().startswith("> ")]
        for place, line in enumerate(script):
            if place < done:
                continue
            if self.cancelled:
                stop = "cancelled"
                break
            stop = self.do(line[2:]) or stop
            turns[-1]["done"] = place + 1
            if "--forget" not in OPTIONS:
                self.keep(turns)
        if self.cancelled:
            stop = "cancelled"
        usage = {"totalTokens": 30, "inputTokens": 20, "outputTokens": 10}
        self.log("stop", mark, stop)
        self.answer(message, {"stopReason": stop, "usage": usage})

    def do(self, line: str) -> str | None:
        word, _, rest = line.partition(" ")
        match word:
            case "say":
                self.say(rest)
            case "think":
                self.chunk("agent_thought_chunk", rest)
            case "call":
                call_id, _, title = rest.partition(" ")
                self.call(call_id, title)
            case "end":
                call_id, _, text = rest.partition(" ")
                self.end(call_id, text)
            case "plan":
                entries = [each.partition(":")[::2] for each in rest.split("|")]
                listed = [
                    {"content": content, "priority": "high", "status": status}
                    for status, content in entries
                ]
                self.update({"sessionUpdate": "plan", "entries": listed})
            case "edit":
                call_id, _, path = rest.partition(" ")
                self.call(call_id, f"edit {path}", kind="edit")
                diff = {
                    "type": "diff",
                    "path": f"/{path}",
                    "oldText": "a\nb\n",
                    "newText": "a\nc\n",
                }
                self.end(call_id, "", diff)
            case "run":
                self.log("run", rest)
                subprocess.run(["/bin/sh", "-c", rest], check=False, stdin=subprocess.DEVNULL)
            case "wait":
                self.wait(rest)
            case "all":
                for update in every_update():
                    self.update(update)
            case "flood":
                many, _, pause_ms = rest.partition(" ")
                for number in range(int(many)):
                    self.chunk("agent_message_chunk", f"{number} ")
                    if pause_ms:
                        pause(int(pause_ms) / 1_000)
            case "calls":
                for number in range(int(rest)):
                    self.call(f"n{number}", f"look {number}")
                    self.end(f"n{number}", "seen")
            case "bulk":
                self.bulk(*map(int, rest.split()))
            case "junk":
                self.raw(b"this is no message\n{\n\xff\xfe\n[]\n7\n")
            case "foreign":
                content = {"type": "text", "text": "of another session"}
                update = {"sessionUpdate": "agent_message_chunk", "content": content}
                params = {"sessionId": "another", "update": update}
                self.write({"method": "session/update", "params": params})
            case "odd":
                self.odd()
            case "long":
                self.raw(b'{"x":"' + b"y" * int(rest))
                pause(WAIT_S)
            case "half":
                if not (KEPT / f"died-{rest}").exists():
                    (KEPT / f"died-{rest}").touch()
                    self.raw(b'{"jsonrpc":"2.0","method":"session/up')
                    os._exit(9)
            case "die":
                if not (KEPT / f"died-{rest}").exists():
                    (KEPT / f"died-{rest}").touch()
                    self.log("die", rest)
                    os._exit(9)
            case "permit":
                self.say(f"[{self.permit(rest)}]")
            case "hide":
                self.say(f"[{self.permit('ls' + ' ' * int(rest) + '; rm -rf x')}]")
            case "spam":
                self.spam(*map(int, rest.split()))
            case "ask":
                method, _, told = rest.partition(" ")
                found = self.request(method, {"sessionId": self.session, **json.loads(told)})
                self.log("asked", method, json.dumps(found))
                self.say(json.dumps(found))
            case "stop":
                return rest
            case _:
                self.wrong(f"unknown line {line}")
        return None

    def odd(self) -> None:
        """Answers to what was not asked, or long ago; words that are no UTF-8; an id that comes
        twice."""
        for number in (-1, 0, 1, 2, 999_999, 10**30):
            self.write({"id": number, "result": {"sessionId": "stolen", "stopReason": "end_turn"}})
        self.write({"id": "x", "result": None})
        self.write({"id": None, "error": {"code": 1, "message": "x"}})
        self.raw(b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"\xff\xfe')
        self.raw(b'"}}\n')
        for path in ("one", "two"):
            params = {"sessionId": self.session, "path": path}
            self.write({"id": "twice", "method": "fs/read_text_file", "params": params})
        answers = [self.read(), self.read()]
        self.log("odd", *(each["id"] for each in answers))

    def bulk(self, calls: int, size: int) -> None:
        """Many calls with long results."""
        self.log("bulk")
        for number in range(calls):
            self.call(f"b{number}", f"look {number}")
            self.end(f"b{number}", f"{number} {'x' * size} {number}")
        self.log("bulky", self.written)

    def wait(self, name: str) -> None:
        """Wait for a file, or for a cancellation."""
        self.log("wait", name)
        os.set_blocking(0, False)
        limit = time.monotonic() + WAIT_S
        try:
            while not Path(name).exists() and not self.cancelled and time.monotonic() < limit:
                line = sys.stdin.buffer.readline()
                if line and "--deaf" not in OPTIONS:
                    self.take(json.loads(line))
                pause(0.01)
        finally:
            os.set_blocking(0, True)

    def permit(self, words: str) -> str:
        options = [
            {"optionId": f"{kind}-id", "name": kind, "kind": kind}
            for kind in ("allow_always", "allow_once", "reject_once")
        ]
        call = {"toolCallId": "permission", "title": words, "rawInput": {"command": words}}
        params = {"sessionId": self.session, "toolCall": call, "options": options}
        found = self.request("session/request_permission", params)
        outcome = found["result"]["outcome"]
        said = str(outcome.get("optionId", outcome["outcome"]))
        self.log("permission", words, said)
        return said

    def spam(self, many: int, answers: int) -> None:
        """Ask for many permissions at once, and wait for so many answers."""
        for number in range(many):
            option = {"optionId": "o", "name": "o", "kind": "allow_once"}
            call = {"toolCallId": f"spam-{number}", "title": f"spam {number}"}
            params = {"sessionId": self.session, "toolCall": call, "options": [option]}
            name = "session/request_permission"
            self.write({"id": f"spam-{number}", "method": name, "params": params})
        self.log("spam")
        while answers:
            message = self.read()
            if "method" in message:
                self.take(message)
                answers = 0 if self.cancelled else answers
            else:
                answers -= 1

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.next_id += 1
        request_id = f"r{self.next_id}"
        self.write({"id": request_id, "method": method, "params": params})
        while True:
            message = self.read()
            if "method" in message:
                self.take(message)
            elif message["id"] == request_id:
                return message
            else:
                self.wrong(f"an answer to {message['id']}, which was not asked now")

    def say(self, text: str) -> None:
        self.chunk("agent_message_chunk", text)

    def chunk(self, kind: str, text: str) -> None:
        self.update({"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    def call(self, call_id: str, title: str, kind: str = "execute") -> None:
        call = {"toolCallId": call_id, "title": title, "kind": kind, "status": "in_progress"}
        self.update({"sessionUpdate": "tool_call", **call, "rawInput": {"command": title}})

    def end(self, call_id: str, text: str, diff: dict[str, str] | None = None) -> None:
        words = {"type": "content", "content": {"type": "text", "text": text}}
        content = [words if diff is None else diff]
        ended = {"toolCallId": call_id, "status": "completed", "content": content}
        self.update({"sessionUpdate": "tool_call_update", **ended})

    def update(self, update: dict[str, Any]) -> None:
        params = {"sessionId": self.session, "update": update}
        self.write({"method": "session/update", "params": params})

    def answer(self, message: dict[str, Any], result: dict[str, Any]) -> None:
        self.write({"id": message["id"], "result": result})


def pause(seconds: float) -> None:
    select.select((), (), (), seconds)


def every_update() -> Iterator[dict[str, Any]]:
    """One of each kind that the protocol has, and one that it has not."""
    text = {"type": "text", "text": "words"}
    for kind in ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk"):
        yield {"sessionUpdate": kind, "content": text}
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    yield {"sessionUpdate": "agent_message_chunk", "content": image}
    link = {"type": "resource_link", "uri": "file:///x", "name": "x"}
    yield {"sessionUpdate": "agent_message_chunk", "content": link}
    call = {"toolCallId": "every", "title": "edit", "kind": "edit", "status": "pending"}
    yield {"sessionUpdate": "tool_call", **call, "locations": [{"path": "/x", "line": 3}]}
    progress = {"toolCallId": "every", "status": "in_progress", "title": "editing"}
    yield {"sessionUpdate": "tool_call_update", **progress}
    diff = {"type": "diff", "path": "/x", "oldText": "a\nb\n", "newText": "a\nc\n"}
    ended = {"toolCallId": "every", "status": "failed", "content": [diff]}
    yield {"sessionUpdate": "tool_call_update", **ended}
    plan = [{"content": "first", "priority": "high", "status": "completed"}]
    yield {"sessionUpdate": "plan", "entries": plan}
    commands = [{"name": "web", "description": "search"}]
    yield {"sessionUpdate": "available_commands_update", "availableCommands": commands}
    yield {"sessionUpdate": "current_mode_update", "currentModeId": "code"}
    yield {"sessionUpdate": "session_info_update", "title": "a title"}
    yield {"sessionUpdate": "usage_update", "used": 10, "size": 100}
    yield {"sessionUpdate": "of_the_future", "anything": [1, {"x": None}]}


if __name__ == "__main__":
    KEPT.mkdir(parents=True, exist_ok=True)
    print("the fake agent begins", file=sys.stderr)
    Agent().serve()
