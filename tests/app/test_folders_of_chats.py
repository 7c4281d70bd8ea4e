"""Which work folder the programs of a turn see, by the role of its people. Issue 15."""

from pathlib import Path

import pytest

from koboshi.app.builders.tools import enclosure_for
from koboshi.boundary.enclosure import Enclosure, Exceptions
from koboshi.boundary.view import View
from koboshi.domain.role import Role, RoleStanding
from koboshi.domain.sandbox import Boundary, Sandbox

OWNER = RoleStanding(role=Role.OWNER)
MEMBER = RoleStanding(role=Role.MEMBER, folder="people/s2")


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "books").mkdir()
    return tmp_path / "work"


def view(workdir: Path, standing: RoleStanding, boundary: Boundary = Boundary.BUBBLEWRAP) -> View:
    whole = Enclosure(
        sandbox=Sandbox.WORKSPACE,
        boundary=boundary,
        workdirs=(str(workdir),),
        kept=str(workdir.parent / "kept"),
        touchable=(str(workdir),),
        exceptions=Exceptions(readable=(str(workdir.parent / "books"),)),
    )
    enclosure = enclosure_for(whole, workdir, standing)
    assert enclosure is not None
    found = enclosure.view_of("s2")
    assert found is not None
    return found


@pytest.mark.parametrize("boundary", [Boundary.BUBBLEWRAP, Boundary.LANDLOCK])
def test_a_members_chat_sees_its_own_folder_alone(workdir: Path, boundary: Boundary) -> None:
    seen = view(workdir, MEMBER, boundary)

    assert seen.may_write(str(workdir / "people" / "s2" / "x"))
    assert not seen.may_read(str(workdir / "x"))
    assert not seen.may_read(str(workdir / "people" / "s3" / "x"))
    assert not seen.may_read(str(workdir.parent / "books" / "x"))


def test_what_the_owner_shows_is_for_the_owners_own_chats(workdir: Path) -> None:
    """In a group the commands of members write the folder and the home that the owner's read."""
    book = str(workdir.parent / "books" / "x")
    in_a_group = RoleStanding(role=Role.OWNER, folder="people/s2")

    assert view(workdir, OWNER).may_read(book)
    assert not view(workdir, in_a_group).may_read(book)


def test_an_owners_chat_does_not_see_the_folders_of_others(workdir: Path) -> None:
    """Nor can its agent exchange one for a link."""
    before = view(workdir, OWNER)
    view(workdir, MEMBER)
    seen = view(workdir, OWNER)

    assert before.may_write(str(workdir / "x"))
    assert seen.may_write(str(workdir / "x"))
    assert not seen.may_read(str(workdir / "people" / "s2" / "x"))


def test_a_folder_of_the_owner_that_is_called_people_is_theirs(workdir: Path) -> None:
    (workdir / "people" / "friends").mkdir(parents=True)

    assert view(workdir, OWNER).may_write(str(workdir / "people" / "friends" / "x"))


@pytest.mark.parametrize("linked", ["people", "people/s2"])
def test_a_folder_of_a_chat_that_became_a_link_is_not_used(workdir: Path, linked: str) -> None:
    """The agent of the owner made it, to show a private folder to another chat."""
    private = workdir.parent / "private"
    private.mkdir()
    (workdir / linked).parent.mkdir(exist_ok=True)
    (workdir / linked).symlink_to(private)

    seen = view(workdir, MEMBER)

    assert not seen.may_read(str(private / "x"))
    assert not seen.may_read(str(private / "s2" / "x"))
    assert list(private.iterdir()) == [], "nothing is made there"
