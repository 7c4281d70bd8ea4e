"""Which store a configuration means."""

import subprocess
import sys
from pathlib import Path

import pytest

from koboshi.app.boot_config import boot_config_of
from koboshi.app.stores import open_configured
from koboshi.clock import SystemClock
from koboshi.config import load
from koboshi.domain.errors import StoreRefused
from koboshi.stores.options import StoreOptions
from tests.harness.fake_time import RecordingWakeups


async def test_without_the_driver_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "koboshi.stores.postgres.store", None)
    config = load(tmp_path, None, {"KOBOSHI__STORE__URL": "postgresql:///koboshi"})

    with pytest.raises(StoreRefused, match=r"koboshi\[postgres\]"):
        await open_configured(
            config,
            world=boot_config_of(config),
            clock=SystemClock(),
            wakeups=RecordingWakeups(),
            options=StoreOptions(lock_wait_seconds=0),
        )


def test_a_gateway_on_sqlite_loads_nothing_of_postgresql() -> None:
    asked = (
        "import sys, koboshi.app.serve, koboshi.cli.run; "
        "print([name for name in sys.modules if name.startswith('psycopg') "
        "or '.postgres' in name])"
    )
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)

    assert told.stdout.strip() == "[]"
