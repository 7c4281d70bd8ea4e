"""Copies of files for people stay until no one is owed them any more."""

import os
from pathlib import Path

from koboshi.domain.files import OutFile, Parcel
from koboshi.domain.ids import ChannelName, DeliveryId
from koboshi.domain.transcript import Result, ResultStatus
from koboshi.runtime.outgoing_files import KEEP_MS, Parcels
from tests.harness.homes import FRONT, WEB, Home, a_call


async def owe(home: Home, folder: Path, name: str, channel: ChannelName = FRONT) -> None:
    await home.say(f"send {name}", channel=channel)
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call())
    await home.start(claim, call_id)
    (folder / "files").mkdir(exist_ok=True)
    (folder / "files" / name).write_text("words")
    file = OutFile(path=f"files/{name}", name=name, size=5)
    result = Result(call_id=call_id, status=ResultStatus.OK, text="queued")
    await home.store.turns.finish_call(claim, result, (), Parcel(file=file, caption=""))
    await home.answer(claim)


async def test_what_is_owed_stays_and_what_was_sent_goes_when_it_is_old(
    home: Home, tmp_path: Path
) -> None:
    await owe(home, tmp_path, "sent")
    await home.deliver(channel=FRONT)
    await owe(home, tmp_path, "owed")
    (tmp_path / "files" / "new").write_text("a call that has not ended yet")
    old_s = (home.clock.now_ms() - KEEP_MS) / 1000 - 1
    for name in ("sent", "owed"):
        os.utime(tmp_path / "files" / name, (old_s, old_s))
    new_s = home.clock.now_ms() / 1000
    os.utime(tmp_path / "files" / "new", (new_s, new_s))
    await Parcels(store=home.store, clock=home.clock, home=tmp_path).sweep()

    assert sorted(path.name for path in (tmp_path / "files").iterdir()) == ["new", "owed"]


async def test_a_file_that_people_fetch_from_us_is_kept_as_long_as_its_delivery(
    home: Home, tmp_path: Path
) -> None:
    """Issue 13, B15: on the web, delivered does not mean that they have it."""
    await owe(home, tmp_path, "fetched", WEB)
    await home.deliver()
    old_s = (home.clock.now_ms() - KEEP_MS) / 1000 - 1
    os.utime(tmp_path / "files" / "fetched", (old_s, old_s))
    await Parcels(store=home.store, clock=home.clock, home=tmp_path).sweep()

    assert [path.name for path in (tmp_path / "files").iterdir()] == ["fetched"]


async def test_a_file_that_no_one_got_on_the_web_goes_when_it_is_old(
    home: Home, tmp_path: Path
) -> None:
    """What was given up has no address."""
    await owe(home, tmp_path, "dropped", WEB)
    for row in home.rows().of("outbox"):
        await home.store.outbox.drop(DeliveryId(int(str(row["delivery_id"]))))
    old_s = (home.clock.now_ms() - KEEP_MS) / 1000 - 1
    os.utime(tmp_path / "files" / "dropped", (old_s, old_s))
    await Parcels(store=home.store, clock=home.clock, home=tmp_path).sweep()

    assert not list((tmp_path / "files").iterdir())
