"""The registry of platforms: each is built, tried and offered, and costs only those who use it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from koboshi.app.platforms.registry import OWN, platform_of
from koboshi.config import ConfigError, MatrixConfig, PluginChannelConfig, load
from koboshi.config.platforms import PLATFORMS

BUILD = """
import json, sys
from pathlib import Path
import koboshi.app.serve, koboshi.cli.run
from koboshi.app.platforms.platform import ChannelSetup
from koboshi.app.platforms.registry import platform_of
from koboshi.clock import SystemClock
from koboshi.config import load

home = Path(sys.argv[1])
config = load(home, None, {"KOBOSHI__CHANNELS__TELEGRAM__MAIN__TOKEN": "1:a"})
async def nothing(*_): return {}
setup = ChannelSetup(home=home, keeps_store_in_home=True, limits=config.limits, commands=(),
                     clock=SystemClock(),
                     on_back=lambda: None, watermarks=nothing, is_allowed=nothing)
(bot,) = [each for each in config.enabled_channels if each.platform == "telegram"]
platform_of(bot.platform).build(bot, setup)
print(json.dumps(sorted(sys.modules)))
"""
FOREIGN = (
    *("nio", "vodozemac", "peewee", "Crypto"),
    *("discord", "hikari", "slack_sdk", "slack_bolt", "aiohttp", "websockets"),
)


def test_a_gateway_with_telegram_alone_loads_nothing_of_other_platforms(tmp_path: Path) -> None:
    """Counted in a process of its own, with all that a gateway loads when it starts."""
    told = subprocess.run(
        [sys.executable, "-c", BUILD, tmp_path], capture_output=True, text=True, check=True
    )
    loaded = json.loads(told.stdout)
    others = [name for name in PLATFORMS if name not in ("telegram", "web")]

    found = [
        module
        for module in loaded
        if module.partition(".")[0] in FOREIGN
        or any(module.startswith(f"koboshi.channels.{name}") for name in others)
        or any(module == f"koboshi.app.platforms.{name}" for name in others)
    ]
    assert found == []
    assert "koboshi.channels.telegram.channel" in loaded


@pytest.mark.parametrize("name", OWN)
def test_every_platform_of_ours_is_built_tried_and_offered(name: str) -> None:
    platform = platform_of(name)

    assert platform.init is not None
    keys = PLATFORMS[name].__struct_fields__
    assert {key.name for key in platform.init.keys} <= set(keys)
    assert set(OWN) | {"web"} == set(PLATFORMS)


def configured(home: Path, text: str, **environ: str) -> object:
    home.mkdir(exist_ok=True)
    (home / "koboshi.toml").write_text(text, encoding="utf-8")
    return load(home, None, environ).enabled_channels[0]


def test_an_account_of_matrix_needs_its_server_and_its_id(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as wrong:
        configured(tmp_path, "[channels.matrix.main]\n", MATRIX_ACCESS_TOKEN="t")
    assert "channels.matrix.main.homeserver is missing" in str(wrong.value)
    assert "channels.matrix.main.user is missing" in str(wrong.value)

    whole = 'homeserver = "https://m.example"\nuser = "@b:example"\nallow = ["@ann:example"]\n'
    made = configured(tmp_path, f"[channels.matrix.main]\n{whole}", MATRIX_ACCESS_TOKEN="t")
    assert isinstance(made, MatrixConfig)
    assert made.allow == ("@ann:example",)


def test_a_platform_that_no_package_brings_is_an_unknown_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'unknown key "channels\.pigeon"'):
        configured(tmp_path, "[channels.pigeon.main]\n")


def test_a_foreign_platform_has_the_keys_of_all_and_a_table_of_its_own() -> None:
    assert "settings" in PluginChannelConfig.__struct_fields__
    assert {"allow", "ambiguous", "groups", "rate_per_second", "token"} <= set(
        PluginChannelConfig.__struct_fields__
    )
