"""The page of metrics of a gateway."""

import http.client

from tests.cli.process import Gateway


def page(one: Gateway, token: str | None = None) -> tuple[int, str, str]:
    host, port = one.wait_serving()
    connection = http.client.HTTPConnection(host, port, timeout=30)
    given = (one.home / "web-token").read_text().strip() if token is None else token
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {given}"})
        answer = connection.getresponse()
        return answer.status, answer.headers["content-type"], answer.read().decode()
    finally:
        connection.close()
