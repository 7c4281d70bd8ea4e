"""A browser that was let in, and a program with the token, at a real gateway."""

import http.client
import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from koboshi.channels.web.login import PROOF
from tests.cli.process import WITHIN_S, Gateway

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    document: Any
    cookie: str = ""


@dataclass(slots=True)
class Visitor:
    """Somebody who sends requests with these headers."""

    gateway: Gateway
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str) -> Reply:
        return self._asked("GET", path, None, {})

    def post(self, path: str, body: object = None, **headers: str) -> Reply:
        return self._asked("POST", path, body, headers)

    def say(self, chat: str, text: str, **more: object) -> Reply:
        """Post a message in a chat, with a new key."""
        key = {"Idempotency-Key": uuid.uuid4().hex}
        body = {"text": text, **more}
        return self._asked("POST", f"/api/v1/sessions/{chat}/messages", body, key)

    def _asked(self, method: str, path: str, body: object, more: dict[str, str]) -> Reply:
        host, port = self.gateway.wait_serving()
        connection = http.client.HTTPConnection(host, port, timeout=WITHIN_S)
        sent = None if body is None else json.dumps(body)
        origin = {"Origin": f"http://{host}:{port}"} if method == "POST" else {}
        try:
            connection.request(method, path, sent, {**origin, **self.headers, **more})
            answer = connection.getresponse()
            cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
            return Reply(answer.status, json.loads(answer.read() or b"null"), cookie)
        finally:
            connection.close()


def program(gateway: Gateway) -> Visitor:
    """A program with the token in its hands."""
    token = (gateway.home / "web-token").read_text().strip()
    return Visitor(gateway, {"Authorization": f"Bearer {token}"})


def browser(gateway: Gateway, agent: str = FIREFOX) -> Visitor:
    """A browser that was let in."""
    code = gateway.asked(ask="login")["link"].partition("#")[2]
    entered = Visitor(gateway, {"User-Agent": agent}).post("/api/v1/login", {"code": code})
    assert entered.status == 200, entered
    shown = {"Cookie": entered.cookie, PROOF: entered.document["proof"]}
    return Visitor(gateway, {"User-Agent": agent, **shown})
