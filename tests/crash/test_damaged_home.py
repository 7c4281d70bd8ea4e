"""Issue 13, A3: what is damaged beside the database never ends a start. Housekeeping is tried again
later; a secret of ours is set aside, made anew, and said."""

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from koboshi.app.tokens import secrets_set_aside
from tests.crash.stories import CHAT
from tests.harness.client import Client
from tests.harness.disk import failing
from tests.harness.polling import until
from tests.harness.process import GatewayProcess

STORAGE_FAILED = 74


@asynccontextmanager
async def _gateway(home: Path, log: Path) -> AsyncIterator[GatewayProcess]:
    home.mkdir(mode=0o700)
    gateway = GatewayProcess(home, log=log)
    try:
        yield gateway
    finally:
        gateway.bury()


@pytest.mark.parametrize(
    "garbage",
    [b"\xff\xfe\x00\x9c", b"\0" * 44, b"two words\n", b"x" * 100_000],
    ids=["no-text", "zeros-of-a-power-cut", "two-words", "much-too-long"],
)
async def test_a_damaged_web_token_is_set_aside_and_made_anew(
    home: Path, tmp_path: Path, garbage: bytes
) -> None:
    """Issue 13, A3: red before with a traceback for what is no text."""
    async with _gateway(home, tmp_path / "log") as gateway:
        (home / "web-token").write_bytes(garbage)
        gateway.start()
        await gateway.wait_ready()

        (kept,) = (home / "quarantine").glob("*/web-token")
        assert kept.read_bytes() == garbage
        assert "secret_replaced" in gateway.log
        assert str(kept) in gateway.log
        assert len(gateway.token) > 40
        await Client(gateway, CHAT).say("echo hello", "1")

        made = gateway.token
        gateway.kill()
        gateway.start()
        await gateway.wait_ready()
        assert gateway.token == made
        assert "secret_replaced" not in gateway.log


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
async def test_what_is_no_file_and_has_the_name_of_the_token_is_set_aside(
    home: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """Issue 13, A3."""
    async with _gateway(home, tmp_path / "log") as gateway:
        make(home / "web-token")
        gateway.start()
        await gateway.wait_ready()
        await Client(gateway, CHAT).say("echo hello", "1")
        (kept,) = (home / "quarantine").glob("*/web-token")
        assert secrets_set_aside(home) == (kept,)


def _dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def _folder(path: Path) -> None:
    path.mkdir()


def _loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    "damage, sign",
    [
        (_dangling_link, "sent_files_removed"),
        (_folder, "sent_files_kept"),
        (_loop, "sent_files_removed"),
    ],
)
async def test_what_housekeeping_stumbles_over_does_not_end_a_start(
    home: Path, tmp_path: Path, damage: Callable[[Path], None], sign: str
) -> None:
    """Issue 13, A3: red before with 74, at every start anew."""
    async with _gateway(home, tmp_path / "log") as gateway:
        for name in ("files", "backups", "processes"):
            (home / name).mkdir()
            damage(home / name / "odd.db")
            os.utime(home / name / "odd.db", (0, 0), follow_symlinks=False)
        damage(home / "koboshi.db.restoring")
        gateway.start()
        await gateway.wait_ready()
        await until(lambda: sign in gateway.log, "the first sweep is over")
        await Client(gateway, CHAT).say("echo hello", "1")
        assert gateway.is_running


async def test_a_start_that_gets_no_thread_says_what_to_do(home: Path, tmp_path: Path) -> None:
    """Issue 13, A3: red before with 1 and a traceback."""
    if shutil.which("strace") is None:
        pytest.skip("threads cannot be made to fail: strace is not installed")
    strace = ["strace", "-f", "-qq", "-o", "/dev/null", *failing("clone,clone3", "EAGAIN")]
    async with _gateway(home, tmp_path / "log") as gateway:
        gateway.start(prefix=strace)
        code = await gateway.wait_exit()
        assert code == STORAGE_FAILED, gateway.log
        assert "Traceback" not in gateway.log
        assert "no thread can be started" in gateway.log
        assert "TasksMax=" in gateway.log

        gateway.start()
        await gateway.wait_ready()
