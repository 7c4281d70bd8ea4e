"""A platform of another distribution: the example of the documentation, in a real gateway."""

import getpass
from pathlib import Path

import pytest

from tests.fakes.plugins.installing import EXAMPLE_CHANNEL, install, install_example
from tests.harness.polling import until
from tests.harness.process import GatewayProcess
from tests.harness.rows import glance

CONFIG = """
[channels.folder.main]
allow = ["{person}"]

[channels.folder.main.settings]
folder = "{folder}"
"""


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    folder = tmp_path / "letters"
    (folder / "in").mkdir(parents=True)
    return folder


@pytest.fixture
def gateway(home: Path, tmp_path: Path, letters: Path) -> GatewayProcess:
    site = tmp_path / "site"
    site.mkdir()
    install_example(site, EXAMPLE_CHANNEL)
    torn = {"koboshi.channels": {"torn": "torn:make"}}
    install(site, "torn-channel", "2.1", torn, torn="raise RuntimeError('torn apart')")
    home.mkdir(mode=0o700)
    config = CONFIG.format(person=getpass.getuser(), folder=letters) + "\n[channels.torn.main]\n"
    (home / "koboshi.toml").write_text(config, encoding="utf-8")
    return GatewayProcess(home, env={"PYTHONPATH": str(site)})


def write(letters: Path, name: str, text: str) -> None:
    """Put a letter there, whole."""
    part = letters / f"{name}.part"
    part.write_text(text, encoding="utf-8")
    part.rename(letters / "in" / name)


async def answered(gateway: GatewayProcess, letters: Path, count: int) -> list[str]:
    def look() -> list[Path] | None:
        found = sorted((letters / "out").glob("ann.*")) if (letters / "out").is_dir() else []
        return found if len(found) >= count else None

    found = await until(look, f"{count} letters", otherwise=lambda: gateway.log[-3000:])
    return [file.read_text(encoding="utf-8") for file in found]


@pytest.mark.parametrize(
    "point", ["inbox.accept:before", "inbox.accept:after", "outbox.settle:before"]
)
async def test_the_example_of_a_channel_loses_nothing_and_says_nothing_twice(
    gateway: GatewayProcess, letters: Path, point: str
) -> None:
    """A broken platform beside it is down with its reason, and stops nothing."""
    write(letters, "ann.1", "echo once")
    try:
        gateway.start(crash_at=point)
        await gateway.wait_exit()
        gateway.start()
        await until(
            lambda: (
                all(row["settled_ms"] for row in glance(gateway.home).outbox)
                and glance(gateway.home).outbox
            ),
            "the answer is settled",
            otherwise=lambda: gateway.log[-3000:],
        )
        assert await answered(gateway, letters, 1) == ["once"]
        assert "torn apart" in gateway.log
    finally:
        gateway.bury()
