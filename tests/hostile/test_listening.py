"""The gateway is for this machine: it listens where nobody else can come."""

from pathlib import Path

import pytest

from koboshi.channels.serving import CannotListen, listen
from koboshi.config import ConfigError, load
from tests.harness.process import GatewayProcess

ELSEWHERE = [
    "0.0.0.0",
    "::",
    "192.0.2.7",
    "10.0.0.1",
    "169.254.1.1",
    "fe80::1%eth0",
    "::ffff:192.0.2.7",
    "0",
    "127.1",
    "localhost.localdomain",
    "example.com",
    "127.0.0.1 ",
    "127.0.0.1\\u0000",
    "",
    "*",
]


@pytest.mark.parametrize("host", ELSEWHERE)
@pytest.mark.parametrize("key", ["channels.web.main.host", "channels.telegram.main.webhook_host"])
def test_no_other_address_can_be_configured(tmp_path: Path, key: str, host: str) -> None:
    section, _, name = key.rpartition(".")
    file = tmp_path / "koboshi.toml"
    file.write_text(f'[{section}]\n{name} = "{host}"\n')

    with pytest.raises(ConfigError) as refused:
        load(tmp_path / "home", file, {})

    assert f"{key} must be a loopback address" in str(refused.value)


async def test_a_name_of_this_machine_that_leads_elsewhere_is_not_listened_on() -> None:
    """What is configured is a name; what counts is the address that it stands for."""
    with pytest.raises(CannotListen, match="which others can reach"):
        await listen("0.0.0.0", 0)


@pytest.mark.crash
async def test_a_gateway_does_not_start_where_others_can_reach_it(home: Path) -> None:
    gateway = GatewayProcess(home)
    gateway.start(env={"KOBOSHI__CHANNELS__WEB__MAIN__HOST": "0.0.0.0"})

    assert await gateway.wait_exit() == 78
    assert 'host must be a loopback address, not "0.0.0.0"' in gateway.log
    assert "Traceback" not in gateway.log
    assert not (home / "koboshi.db").exists()
