"""The Events API over HTTP: the platform calls the app, and signs what it says."""

import asyncio
import hashlib
import hmac
import json
import time
from typing import Any
from urllib.parse import urlencode

import httpx2

from tests.fakes.slack.happenings import Happening, Happenings

JSON = dict[str, Any]

SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


class RequestUrl:
    """Where an app is called, once it has answered the challenge."""

    def __init__(self, happenings: Happenings) -> None:
        self._happenings = happenings
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        self.statuses: list[int] = []

    async def verify(self, url: str) -> bool:
        """Call the address with a challenge; it becomes the request URL if that comes back."""
        body = json.dumps({"type": "url_verification", "challenge": "3eZbrw1a", "token": "t"})
        response = await self._post(url, body.encode(), "application/json", {})
        if response is None or response.status_code != 200:
            return False
        told = response.json() if "json" in response.headers.get("content-type", "") else {}
        if told.get("challenge", response.text) != "3eZbrw1a":
            return False
        self.url = url
        return True

    async def transmit(self, happening: Happening, envelope_id: str) -> bool:
        task = asyncio.get_running_loop().create_task(self._call(happening, envelope_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    async def _call(self, happening: Happening, envelope_id: str) -> None:
        headers = {}
        if happening.attempts:
            headers["X-Slack-Retry-Num"] = str(happening.attempts)
            headers["X-Slack-Retry-Reason"] = happening.reason
        if happening.kind == "events_api":
            kind, body = "application/json", json.dumps(happening.payload)
        elif happening.kind == "interactive":
            kind = "application/x-www-form-urlencoded"
            body = urlencode({"payload": json.dumps(happening.payload)})
        else:
            kind, body = "application/x-www-form-urlencoded", urlencode(happening.payload)
        response = await self._post(self.url, body.encode(), kind, headers)
        self.statuses.append(0 if response is None else response.status_code)
        if response is not None and response.status_code == 200:
            self._happenings.acknowledge(envelope_id)
        else:
            self._happenings.fail(envelope_id, "http_error" if response else "connection_failed")

    async def _post(
        self, url: str, body: bytes, kind: str, headers: dict[str, str]
    ) -> httpx2.Response | None:
        at = str(int(time.time()))
        signed = {**headers, "Content-Type": kind, **signature(body, at)}
        try:
            async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
                return await client.post(url, content=body, headers=signed)
        except httpx2.TransportError:
            return None


def signature(body: bytes, at: str, secret: str = SIGNING_SECRET) -> dict[str, str]:
    """The headers that prove who calls."""
    said = b"v0:" + at.encode() + b":" + body
    code = hmac.new(secret.encode(), said, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={code}"}
