"""The way into the page: printed by `koboshi run`, and by `koboshi open` whenever it is asked."""

import http.client
import json
import re
from pathlib import Path

import pytest

from tests.cli.process import Gateway, gateway, koboshi

LINK = re.compile(r"http://127\.0\.0\.1:\d+/login#([\w-]{20,})")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def enter(one: Gateway, code: str) -> int:
    host, port = one.wait_serving()
    connection = http.client.HTTPConnection(host, port, timeout=30)
    try:
        connection.request("POST", "/api/v1/login", json.dumps({"code": code}))
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_link_that_run_prints_lets_one_browser_in(home: Path) -> None:
    with gateway(home) as one:
        one.wait_serving()
        (code,) = LINK.findall(one.out)

        assert [enter(one, code), enter(one, code)] == [200, 403]


def test_open_gives_a_new_link_each_time(home: Path) -> None:
    with gateway(home) as one:
        one.wait_serving()
        first = koboshi("open", home=home)
        second = koboshi("open", "--json", home=home)
        codes = [*LINK.findall(first.out), *LINK.findall(second.document["link"])]

        assert len(set(codes)) == 2
        assert [enter(one, code) for code in codes] == [200, 200]


def test_a_service_manager_does_not_get_a_link_to_write_down(home: Path) -> None:
    with gateway(home, INVOCATION_ID="x") as one:
        one.wait_serving()

        assert "login#" not in one.out


def test_without_a_gateway_open_says_so(home: Path) -> None:
    with gateway(home) as one:
        one.wait_serving()
        one.stop()

    told = koboshi("open", home=home)

    assert told.code == 1
    assert "no gateway serves pages in this home" in told.err
