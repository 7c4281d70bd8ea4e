"""The files of memories: written behind a change, read before a turn, and never lost to a race."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.domain.memory import AddMemory, MemoryLimits, MemoryView, Shelf, picture
from koboshi.domain.role import Role, RoleStanding
from koboshi.domain.transcript import Reply
from koboshi.domain.turn import Claim
from koboshi.ports.memory import FileFate
from koboshi.runtime import memory_files as module
from koboshi.runtime.erasing import Erasing
from koboshi.runtime.memory_files import MemoryFiles
from koboshi.runtime.recollection import CUT, Recollection
from koboshi.tools.skills import SkillFolder
from tests.harness.homes import WEB, Home, a_call
from tests.harness.open_files import open_below

NOTES = "MEMORY.md"


def files_of(home: Home, tmp_path: Path) -> MemoryFiles:
    return MemoryFiles(memories=home.store.memory, folder=tmp_path / "memory", clock=home.clock)


async def remembering(home: Home, *texts: str, chat: str = "ann") -> tuple[Claim, MemoryView]:
    claim = await home.work_on(chat=chat)
    for text in texts:
        home.keys += 1
        wish = AddMemory(shelf=Shelf.MEMORY, text=text)
        await home.store.memory.wish(claim, wish, f"call:{home.keys}")
    return claim, await view_of(home)


async def view_of(home: Home) -> MemoryView:
    (view,) = await home.store.memory.views(9)
    return view


async def test_files_are_written_whole_and_for_us_alone(home: Home, tmp_path: Path) -> None:
    _, view = await remembering(home, "one", "two")
    files = files_of(home, tmp_path)
    await files.settle(view)
    folder = tmp_path / "memory" / view.folder
    assert (folder / NOTES).read_text() == picture(["one", "two"], 2)
    assert (folder / "USER.md").read_text() == picture([], 2)
    assert sorted(os.listdir(folder)) == [NOTES, "USER.md"]
    assert stat.S_IMODE((folder / NOTES).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert await home.store.memory.behind(9) == ()
    (folder / NOTES).unlink()  # a file that is gone is no edit
    assert (await files.settle(view)).texts(Shelf.MEMORY) == ["one", "two"]
    assert (folder / NOTES).exists()


async def test_a_hand_edit_is_taken_over_and_the_file_written_anew(
    home: Home, tmp_path: Path
) -> None:
    _, view = await remembering(home, "one", "two")
    fates: list[FileFate] = []
    files = replace(files_of(home, tmp_path), on_read=fates.append)
    await files.settle(view)
    path = tmp_path / "memory" / view.folder / NOTES
    path.write_text(path.read_text().replace("two\n", "") + "\nthree\n")
    view = await files.settle(view)
    assert view.texts(Shelf.MEMORY) == ["one", "three"]
    assert path.read_text() == picture(["one", "three"], view.revision)
    assert fates == [FileFate.REWRITE]


async def test_an_edit_that_is_saved_in_the_moment_of_writing_is_not_lost(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the file and its new form, and between moving it aside and that."""
    _, view = await remembering(home, "one")
    files = files_of(home, tmp_path)
    await files.settle(view)
    path = tmp_path / "memory" / view.folder / NOTES
    rename, link = os.rename, os.link

    def saved_before(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "rename", rename)
        path.write_text(picture(["one", "before"], 1))
        rename(source, target)

    def saved_after(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        path.write_text(picture(["one", "after"], 1))
        link(source, target)

    await remembering(home, "two", chat="bob")
    monkeypatch.setattr(os, "rename", saved_before)
    monkeypatch.setattr(os, "link", saved_after)
    await files.settle(await view_of(home))
    view = await files.settle(await view_of(home))
    assert sorted(view.texts(Shelf.MEMORY)) == ["after", "before", "one", "two"]
    assert sorted(os.listdir(path.parent)) == [NOTES, "USER.md"]


async def test_a_file_that_is_cut_off_to_be_written_is_left_to_the_hand(
    home: Home, tmp_path: Path
) -> None:
    """Many editors empty the file and then write it, in the same place: in between, another file at
    its name would take the edit away."""
    _, view = await remembering(home, "one")
    files = files_of(home, tmp_path)
    await files.settle(view)
    path = tmp_path / "memory" / view.folder / NOTES
    with path.open("w") as saving:
        os.utime(path, ns=(home.clock.now_ms() * 1_000_000,) * 2)
        view = await files.settle(view)
        saving.write(picture(["one", "by hand"], 1))
    view = await files.settle(view)
    assert view.texts(Shelf.MEMORY) == ["one", "by hand"]

    path.write_text("")
    os.utime(path, (1, 1))  # nothing has come for long
    view = await files.settle(view)
    assert path.read_text() == picture(["one", "by hand"], view.revision)


async def test_an_edit_that_does_not_fit_stays_and_the_rest_goes_on(
    home: Home, tmp_path: Path
) -> None:
    _, view = await remembering(home, "one")
    files = files_of(home, tmp_path)
    await files.settle(view)
    path = tmp_path / "memory" / view.folder / NOTES
    long = picture(["one", *(letter * 900 for letter in "abc")], 1)
    path.write_text(long)
    for _ in range(2):
        view = await files.settle(view)
        assert path.read_text() == long
        assert len(view.troubles) == 1
    path.write_text(picture(["one", "a"], 1))
    view = await files.settle(view)
    assert (view.texts(Shelf.MEMORY), view.troubles) == (["one", "a"], ())


@pytest.mark.parametrize("place", range(4))
async def test_killed_between_two_steps_of_writing_nothing_is_lost(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """The disk fails at a step, which leaves what a kill there leaves."""
    _, view = await remembering(home, "one")
    files = files_of(home, tmp_path)
    await files.settle(view)
    path = tmp_path / "memory" / view.folder / NOTES
    path.write_text(path.read_text() + "\nby hand\n")
    steps = [(os, "fsync"), (os, "rename"), (os, "link"), (module, "_sync")]

    def fail(*_: object) -> None:
        raise OSError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(*steps[place], fail)
        await files.settle(view)
    view = await files.settle(await view_of(home))
    assert sorted(view.texts(Shelf.MEMORY)) == ["by hand", "one"]
    assert path.read_text() == picture(view.texts(Shelf.MEMORY), view.revision)
    assert sorted(os.listdir(path.parent)) == [NOTES, "USER.md"]


async def test_links_and_pipes_in_the_folder_are_not_read(home: Home, tmp_path: Path) -> None:
    _, view = await remembering(home, "one")
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    folder = tmp_path / "memory" / view.folder
    folder.mkdir(parents=True)
    (folder / NOTES).symlink_to(secret)
    os.mkfifo(folder / "USER.md")
    view = await files_of(home, tmp_path).settle(view)
    assert view.texts(Shelf.MEMORY) == ["one"]
    assert secret.read_text() == "a secret"
    assert not (folder / NOTES).is_symlink()


async def test_an_erasure_takes_the_files_along(home: Home, tmp_path: Path) -> None:
    claim, view = await remembering(home, "xylophone")
    files = files_of(home, tmp_path)
    await files.settle(view)
    await home.answer(claim)
    await home.deliver()
    await home.store.erasures.erase(WEB, "ann", "operator")
    await files.settle(await view_of(home))  # it comes before the deletion
    erasing = Erasing(store=home.store, workdir=tmp_path / "work", home=tmp_path)
    assert await erasing.finish()
    await files.settle(await view_of(home))
    left = [path.read_text() for path in (tmp_path / "memory").rglob("*") if path.is_file()]
    assert "xylophone" not in str(left)
    assert (await view_of(home)).entries == ()


def recollection(home: Home, tmp_path: Path, **more: bool) -> Recollection:
    return Recollection(
        memories=home.store.memory,
        files=files_of(home, tmp_path),
        limits=MemoryLimits(),
        workdir=tmp_path / "work",
        skills=SkillFolder(folder=tmp_path / "skills"),
        may_use_skills=lambda standing: standing.role.is_owner,
        context_files=("AGENTS.md",),
        context_chars=100,
        **more,
    )


async def shown(home: Home, tmp_path: Path, claim: Claim, **more: bool) -> str:
    loaded = await home.store.turns.load(claim)
    return (await recollection(home, tmp_path, **more).bring(claim, loaded)).shown or ""


async def test_a_turn_is_shown_the_same_after_a_hand_edit_and_a_crash(
    home: Home, tmp_path: Path
) -> None:
    claim, view = await remembering(home, "one")
    first = await shown(home, tmp_path, claim)
    assert "one" in first
    path = tmp_path / "memory" / view.folder / NOTES
    path.write_text(picture(["one", "by hand"], view.revision))
    await home.step(claim)
    claim = await home.resume(claim.turn_id)
    assert await shown(home, tmp_path, claim) == first
    await home.answer(claim)
    await home.deliver()
    following = await home.work_on()
    assert "by hand" in await shown(home, tmp_path, following)


async def test_a_turn_that_began_with_nothing_goes_on_with_nothing(
    home: Home, tmp_path: Path
) -> None:
    claim = await home.work_on()
    commits = home.store.commits
    assert await shown(home, tmp_path, claim) == ""
    assert home.store.commits == commits, "a message without memory costs no commit"
    await home.store.turns.append(claim, Reply(text="", model="m"), [a_call()])
    await remembering(home, "from another chat", chat="bob")
    claim = await home.resume(claim.turn_id)
    assert await shown(home, tmp_path, claim) == ""


async def test_files_of_the_folder_and_skills_are_shown_to_whom_they_belong(
    home: Home, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    (tmp_path / "work" / "people" / "s1").mkdir(parents=True)
    (tmp_path / "work" / "AGENTS.md").write_text("for the owner " + "x" * 200)
    (tmp_path / "work" / "people" / "s1" / "AGENTS.md").symlink_to(secret)
    (tmp_path / "skills" / "news").mkdir(parents=True)
    (tmp_path / "skills" / "news" / "SKILL.md").write_text("---\ndescription: Tells.\n---\nBody")
    claim = await home.work_on()
    text = await shown(home, tmp_path, claim)
    assert "for the owner" in text
    assert CUT in text
    assert "- news: Tells." in text

    other = await home.work_on(chat="bob")
    loaded = await home.store.turns.load(other)
    member = RoleStanding(role=Role.MEMBER, folder="people/s1")
    loaded = await recollection(home, tmp_path).bring(other, replace(loaded, standing=member))
    assert loaded.shown == ""


async def test_skills_are_read_by_name_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "skills" / "news" / "parts").mkdir(parents=True)
    (tmp_path / "skills" / "news" / "SKILL.md").write_text("Body")
    (tmp_path / "skills" / "news" / "parts" / "a.md").write_text("Part")
    (tmp_path / "secret").write_text("a secret")
    (tmp_path / "skills" / "news" / "link").symlink_to(tmp_path / "secret")
    skills = SkillFolder(folder=tmp_path / "skills")
    assert skills.read("news", "") == "Body"
    assert skills.read("news", "parts/a.md") == "Part"
    for name, file in (("..", "secret"), ("news", "../../secret"), ("news", "link"), ("x", "")):
        assert skills.read(name, file) is None
    assert SkillFolder(folder=tmp_path / "none").all() == ()


async def test_memory_that_is_switched_off_is_not_shown(home: Home, tmp_path: Path) -> None:
    claim, _ = await remembering(home, "one")
    assert await shown(home, tmp_path, claim, is_on=False) == ""


@pytest.mark.parametrize("kind", ["link", "folder", "fifo", "folder-link"])
async def test_what_is_no_plain_file_there_is_neither_read_nor_written_through(
    home: Home, tmp_path: Path, kind: str
) -> None:
    """Also none of it keeps a descriptor open."""
    secret = tmp_path / "outside" / NOTES
    secret.parent.mkdir()
    secret.write_text("a secret of another place\n")
    _, view = await remembering(home, "one")
    files = files_of(home, tmp_path)
    folder = tmp_path / "memory" / view.folder
    if kind == "folder-link":
        folder.parent.mkdir()
        folder.symlink_to(secret.parent)
    else:
        folder.mkdir(parents=True)
        place = folder / NOTES
        if kind == "link":
            place.symlink_to(secret)
        elif kind == "folder":
            place.mkdir()
        else:
            os.mkfifo(place)
    seen = await files.settle(view)
    open_before = open_below(tmp_path / "memory")

    for _ in range(5):
        seen = await files.settle(view)

    assert seen.texts(Shelf.MEMORY) == ["one"]
    assert secret.read_text() == "a secret of another place\n"
    assert sorted(os.listdir(secret.parent)) == [NOTES]
    assert open_below(tmp_path / "memory") <= open_before
