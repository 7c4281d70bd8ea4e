"""Where `koboshi chat` looks for the gateway."""

from pathlib import Path

import pytest

from koboshi.cli.chat import URL, configured_url

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
