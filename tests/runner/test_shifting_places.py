"""What a command does to the names of places, so that the next command sees more. Issue 15."""

from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.domain.sandbox import Boundary
from tests.runner.scene import Scene

SECRET = "words of a person"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder that no command may see."""
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "file").write_text(SECRET)
    return folder


@pytest.mark.parametrize("kind", ["readable", "writable", "sockets", "devices"])
async def test_a_named_place_in_the_work_folder_cannot_be_made_to_lead_out(
    scene: Scene, private: Path, kind: str
) -> None:
    """It becomes a link, and the next command is shown where that leads."""
    named = scene.yard.workdir / "data"
    named.mkdir()
    known = getattr(scene.enclosure.exceptions, kind)
    scene.allow(**{kind: (*known, str(named))})

    await scene.run(f"rmdir data || mv data gone; ln -s {private} data")
    named.rmdir() if not named.is_symlink() else None
    if not named.is_symlink():
        named.symlink_to(private)  # as a long-running command may do between two others
    _, output = await scene.run(f"cat data/file {private}/file; echo more >> data/file; true")

    assert SECRET not in output
    assert (private / "file").read_text() == SECRET


async def test_a_folder_on_the_way_cannot_be_made_to_lead_out(scene: Scene, private: Path) -> None:
    (private / "deep").mkdir()
    (private / "deep" / "file").write_text(SECRET)
    way = scene.yard.workdir / "way"
    scene.allow(
        readable=(*scene.enclosure.exceptions.readable, str(way / "deep")),
    )
    way.symlink_to(private)

    _, output = await scene.run("cat way/deep/file; true")

    assert SECRET not in output


async def test_the_work_folder_of_a_chat_cannot_be_made_to_lead_out(
    scene: Scene, private: Path
) -> None:
    """The owner's agent may write in the folder that holds those of other chats."""
    people = scene.yard.workdir / "people"
    people.mkdir()
    (people / "s2").symlink_to(private)
    others = replace(
        scene.enclosure, workdirs=(str(people / "s2"),), touchable=(str(scene.yard.workdir),)
    )

    view = others.view_of("s2")

    assert view is not None
    assert not view.may_read(str(private / "file"))


@pytest.mark.parametrize("scene", [Boundary.BUBBLEWRAP], indirect=True)
async def test_a_hidden_place_is_hidden_under_every_name(scene: Scene, tmp_path: Path) -> None:
    """A folder is named through a link, and something in it must not be seen."""
    person = tmp_path / "person"
    (person / "keys").mkdir(parents=True)
    (person / "keys" / "one").write_text(SECRET)
    (person / "token").write_text(SECRET)
    (person / "letter").write_text("dear")
    link = tmp_path / "link"
    link.symlink_to(person)
    scene.allow(readable=(*scene.enclosure.exceptions.readable, str(link)))
    hidden = (*scene.enclosure.hidden, str(person / "keys"), str(person / "token"))
    scene.enclosure = replace(scene.enclosure, hidden=hidden)

    _, output = await scene.run(
        f"for each in {link} {person}; do cat $each/letter $each/token $each/keys/one; done; true"
    )
    view = scene.enclosure.view_of("s1")

    assert output.count("dear") == 2
    assert SECRET not in output
    assert view is not None
    assert view.locate(f"{link}/token") is None
    assert view.locate(f"{link}/keys/one") is None
    assert view.locate(f"{link}/letter") == str(person / "letter")


@pytest.mark.parametrize("scene", [Boundary.BUBBLEWRAP], indirect=True)
async def test_a_hidden_file_is_not_uncovered_by_a_new_name_of_its_folder(scene: Scene) -> None:
    deep = scene.yard.workdir / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "token").write_text(SECRET)
    hidden = (*scene.enclosure.hidden, str(deep / "token"))
    scene.enclosure = replace(scene.enclosure, hidden=hidden)

    first, _ = await scene.run("mv a/b a/c")
    second, _ = await scene.run("mv a z")
    await scene.run("rm -rf a; mkdir -p a/b; echo mine > a/b/token; true")
    _, output = await scene.run("find . -name token | xargs cat; echo new > a/b/other; true")

    assert (first, second) == (1, 1)
    assert SECRET not in output
    assert (deep / "token").read_text() == SECRET
    assert (deep / "other").read_text() == "new\n", "its folder can still be used"


@pytest.mark.parametrize("scene", [Boundary.BUBBLEWRAP], indirect=True)
async def test_a_hidden_file_that_is_named_through_a_link_stays_hidden(scene: Scene) -> None:
    """The link is in the work folder, and is made to lead elsewhere."""
    true_place = scene.yard.workdir / "true"
    true_place.mkdir()
    (true_place / "token").write_text(SECRET)
    link = scene.yard.workdir / "conf"
    link.symlink_to("true")
    scene.enclosure = replace(
        scene.enclosure, hidden=(*scene.enclosure.hidden, str(link / "token"))
    )
    assert scene.enclosure.view_of("s1") is not None

    await scene.run("rm conf; mkdir conf; echo mine > conf/token; true")
    _, output = await scene.run("cat true/token; true")

    assert SECRET not in output


@pytest.mark.parametrize("scene", [Boundary.LANDLOCK], indirect=True)
async def test_a_link_that_comes_after_the_look_is_not_followed(
    scene: Scene, private: Path
) -> None:
    """Another command puts it there between the look at a place and the start of this one."""
    shared = scene.yard.workdir.parent / "shared"
    shared.mkdir()
    scene.allow(writable=(str(shared),))
    view = scene.enclosure.view_of("s1")
    workdir = str(scene.yard.workdir)
    started = scene.enclosure.start(view, workdir, {"PATH": "/usr/bin:/bin"})
    scene.yard.confine = lambda _: started.confinement
    shared.rmdir()
    shared.symlink_to(private)

    _, output = await scene.yard.run(f"cat {private}/file", environment=started.environment)

    assert SECRET not in output.decode()
