"""Where `koboshi chat` looks for the gateway."""

from pathlib import Path

import pytest

from koboshi.cli.chat.command import URL, configured_url, served_url
from tests.cli.process import gateway, koboshi

PORT = "KOBOSHI__CHANNELS__WEB__MAIN__PORT"
HOST = "KOBOSHI__CHANNELS__WEB__MAIN__HOST"


@pytest.mark.parametrize(
    "settings, url",
    [
        ({}, URL),
        ({PORT: "9000"}, "http://127.0.0.1:9000"),
        ({PORT: "9000", HOST: "::1"}, "http://[::1]:9000"),
        ({PORT: "0"}, URL),
    ],
)
def test_it_looks_where_the_configuration_has_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], url: str
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    assert configured_url(tmp_path) == url


def test_a_gateway_that_runs_tells_where_it_is(tmp_path: Path) -> None:
    """It took any free port, and whoever talks to it was told nothing of that."""
    home = tmp_path / "home"
    assert served_url(home, None) is None
    with gateway(home) as one:
        host, port = one.wait_serving()
        assert served_url(home, None) == f"http://{host}:{port}"

        said = koboshi("chat", "--once", "echo hello there", home=home)

    assert (said.code, said.out.strip()) == (0, "hello there"), said.err
    assert served_url(home, None) is None
