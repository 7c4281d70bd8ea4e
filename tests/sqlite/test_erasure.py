"""Issue 15, item 7: after an erasure the words of a person are nowhere, whenever it was killed."""

from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.commands.parse import parse_command
from koboshi.commands.run import respond
from koboshi.domain.erasure import ERASED
from koboshi.domain.files import PICTURES, Attachment
from koboshi.domain.ids import Seq
from koboshi.domain.transcript import Message, Note, Reply, Summary
from koboshi.ports.store import Arrival
from koboshi.runtime.erasing import Erasing
from koboshi.runtime.picture_shelf import PictureShelf
from tests.harness.backends import SqliteBackend
from tests.harness.homes import FRONT, WEB, Home, OpenHome, a_call

SECRET = "xylophone-4711-marmalade"
OTHERS = "weather-is-fine-0815"


async def say(home: Home, text: str, *, person: str, chat: str, path: str = "") -> None:
    inbound = home.inbound(text, chat=chat, person=person)
    files = (Attachment(reference="r", path=path, kind="text/plain"),) if path else ()
    words = replace(inbound.words, files=files)
    inbound = replace(inbound, words=words, is_private=chat == person)
    await home.accept(Arrival(inbound=inbound, command=parse_command(text)), respond=respond)


async def talk(home: Home, path: str = "") -> None:
    """Bob's words in a private chat and in a group, and everything that they can become."""
    await say(home, f"remember {SECRET}", person="bob", chat="bob", path=path)
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call("terminal", arguments=f'{{"q":"{SECRET}"}}'))
    await home.start(claim, call_id)
    await home.finish(claim, call_id, f"found {SECRET}")
    next_seq = Seq((await home.store.turns.load(claim)).steps[-1].seq)
    await home.store.turns.summarise(claim, Summary(text=f"sum {SECRET}", covers=next_seq))
    await home.store.turns.answer(claim, Reply(text=f"noted {SECRET}"), (f"noted {SECRET}",))
    await home.deliver("bob")
    await say(home, f"in the group {SECRET}", person="bob", chat="room")
    await home.answer(await home.claim(), f"yes {SECRET}")
    await home.deliver("room")
    await say(home, OTHERS, person="ann", chat="room")
    await home.answer(await home.claim(), "it is")
    await home.deliver("room")
    await say(home, f"still open {SECRET}", person="bob", chat="bob")


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def erasing(home: Home, folder: Path) -> Erasing:
    return Erasing(store=home.store, workdir=folder / "work", home=folder)


@pytest.fixture
async def bobs(open_home: OpenHome, tmp_path: Path) -> tuple[Home, Path]:
    home, folder = await open_home(), tmp_path / "home-0"
    received = folder / "work" / "received" / f"{SECRET}.txt"
    received.parent.mkdir(parents=True)
    received.write_text(SECRET)
    await talk(home, f"received/{SECRET}.txt")
    assert SECRET.encode() in bytes_of(folder)
    return home, folder


async def test_the_words_are_nowhere_and_those_of_others_stay(bobs: tuple[Home, Path]) -> None:
    home, folder = bobs

    assert await home.store.erasures.erase(WEB, "bob", "operator") == 3
    assert await erasing(home, folder).finish()

    left = bytes_of(folder)
    assert SECRET.encode() not in left
    assert OTHERS.encode() in left
    assert not (folder / "work" / "received" / f"{SECRET}.txt").exists()
    assert await home.store.erasures.unfinished() == ()


async def test_a_picture_that_was_shown_to_the_model_goes_too(bobs: tuple[Home, Path]) -> None:
    home, folder = bobs
    claim = await home.claim()
    shelf = PictureShelf(folder=folder / PICTURES)
    digest = await shelf.put("12-0", SECRET.encode())
    note = Note(cause=f"picture:12:0:{digest}", text="a picture")
    await home.store.turns.note(claim, note)

    await home.store.erasures.erase(WEB, "bob", "operator")
    assert await erasing(home, folder).finish()

    assert list((folder / PICTURES).iterdir()) == []


async def test_the_model_is_shown_a_neutral_line(bobs: tuple[Home, Path]) -> None:
    home, _ = bobs
    await home.store.erasures.erase(WEB, "bob", "operator")

    await say(home, "and now?", person="ann", chat="room")
    loaded = await home.store.turns.load(await home.claim())

    said = [step.body.text for step in loaded.context if isinstance(step.body, Message)]
    assert said == [ERASED, OTHERS]


async def test_a_catch_up_does_not_bring_the_words_back(open_home: OpenHome) -> None:
    home = await open_home()
    await home.say(SECRET, person="bob", chat="bob", key="k1")
    await home.store.erasures.erase(WEB, "bob", "operator")

    again = await home.say(SECRET, person="bob", chat="bob", key="k1")

    assert again.is_duplicate
    assert not await home.claims()


@pytest.mark.parametrize("planted", ["circle", "file", "folder", "outside"])
async def test_what_the_agent_puts_in_the_place_of_a_file_stops_no_erasure(
    bobs: tuple[Home, Path], planted: str
) -> None:
    """It may write in the work folder. Else no person's words went any more, at any start."""
    home, folder = bobs
    received, kept = folder / "work" / "received", folder / f"{SECRET}.txt"
    (received / f"{SECRET}.txt").unlink()
    kept.write_text("not theirs")
    if planted == "folder":
        (received / f"{SECRET}.txt").mkdir()
    else:
        received.rmdir()
    if planted == "circle":
        received.symlink_to("received")
    elif planted == "file":
        received.write_text("no folder")
    elif planted == "outside":
        received.symlink_to(folder)

    await home.store.erasures.erase(WEB, "bob", "operator")
    assert await erasing(home, folder).finish()

    assert await home.store.erasures.unfinished() == ()
    assert kept.read_text() == "not theirs"


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
async def test_a_kill_at_any_step_is_finished_at_the_next_start(
    bobs: tuple[Home, Path], steps: int
) -> None:
    home, folder = bobs
    await home.store.erasures.erase(WEB, "bob", "operator")
    (erasure,) = await home.store.erasures.unfinished()
    work = erasing(home, folder)
    if steps > 0:
        work._delete(erasure.files)
    if steps > 1:
        await home.store.erasures.files_gone(erasure.erasure_id)
    if steps > 2:
        assert await home.store.erasures.forget_log()

    await home.reopen(crash=True)
    assert await erasing(home, folder).finish()

    assert isinstance(home.backend, SqliteBackend)
    assert SECRET.encode() not in bytes_of(home.backend.path) + bytes_of(folder / "work")
    assert await home.store.erasures.unfinished() == ()


async def test_forget_me_asks_first(bobs: tuple[Home, Path]) -> None:
    home, folder = bobs
    await say(home, "/forget me", person="bob", chat="bob")
    assert (await home.deliver("bob"))[-1].text.endswith("Write /forget me yes to do it.")
    assert await home.store.erasures.unfinished() == ()

    await say(home, "/forget me yes", person="bob", chat="bob")
    assert await erasing(home, folder).finish()

    assert "Backups" in (await home.deliver("bob"))[-1].text
    assert SECRET.encode() not in bytes_of(folder)


async def test_a_person_with_the_same_id_on_another_channel_keeps_their_words(
    open_home: OpenHome, tmp_path: Path
) -> None:
    home = await open_home()
    await home.say(SECRET, person="ann", channel=FRONT)

    await home.store.erasures.erase(WEB, "ann", "operator")
    await erasing(home, tmp_path / "home-0").finish()

    assert SECRET.encode() in bytes_of(tmp_path / "home-0")
