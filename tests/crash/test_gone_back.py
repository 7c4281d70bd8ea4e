"""A platform that forgets what it was told to forget, and a database that went back alone."""

import shutil
from pathlib import Path

from koboshi.stores.sqlite.witness import read_witness
from tests.cli.process import koboshi
from tests.harness.polling import until
from tests.harness.rows import read_rows
from tests.harness.telegram import a_bot

LABEL = "may be a duplicate"


def keep(home: Path, folder: Path) -> None:
    folder.mkdir()
    for name in ("koboshi.db", "koboshi.db-wal"):
        shutil.copyfile(home / name, folder / name)


def put_back(home: Path, folder: Path) -> None:
    (home / "koboshi.db-shm").unlink()
    for path in folder.iterdir():
        shutil.copyfile(path, home / path.name)


def is_witnessed(home: Path) -> bool:
    """Whether the witness has seen all that is stored."""
    seen = read_witness(home)
    return seen is not None and seen.journal == read_rows(home).journal[-1]["seq"]


async def test_what_a_person_has_got_is_not_said_again_by_a_past(home: Path) -> None:
    """Issue 12, A7: the answer was sent after the snapshot; the database that was put back still
    owes it. It goes out when the operator says so, and says that it may be a duplicate."""
    async with a_bot(home) as bot:
        bot.say("echo once")
        bot.start(crash_at="outbox.claim:before")
        await bot.dies()
        keep(home, home.with_name("snapshot"))
        bot.start()
        await bot.hears("once")
        bot.say("echo forgotten")
        await bot.hears("forgotten")
        await bot.comes_to_rest()
        await until(lambda: is_witnessed(home), "the witness has seen it")
        bot.gateway.kill()
        put_back(home, home.with_name("snapshot"))

        bot.start()
        bot.say("echo after")
        await bot.hears("after")
        assert bot.said() == ["once", "forgotten", "after"]
        assert "the database went back" in bot.gateway.log
        assert koboshi("outbox", "release", "--all", home=home).code == 0
        await bot.hears(LABEL)
        rows = await bot.comes_to_rest()

        assert [text.splitlines()[-1] for text in bot.said()][3:] == ["once"]
    assert not rows.damage
