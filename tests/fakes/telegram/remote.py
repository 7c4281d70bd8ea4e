"""The control surface from another process or thread, without a loop."""

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

ANSWER_S_MAX = 30.0


class ControlFailed(Exception):
    """The platform did not understand; the message says what."""


class Remote:
    """`Remote(url).call("say", chat=…, user=…, text="hello")`"""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = HTTPConnection(
            parts.hostname or "127.0.0.1", parts.port, timeout=ANSWER_S_MAX
        )

    def call(self, verb: str, **arguments: Any) -> Any:
        body = json.dumps(arguments)
        self._connection.request("POST", f"/control/{verb}", body)
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise ControlFailed(answer["error"])
        return answer["result"]

    def close(self) -> None:
        self._connection.close()
