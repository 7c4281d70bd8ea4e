"""What exists for a program, and what each boundary makes of it. Pure."""

from koboshi.boundary import bubblewrap, rules
from koboshi.boundary.view import Access, Place, View
from koboshi.domain.sandbox import Boundary
from koboshi.runner import landlock


def view(*places: Place, **changed: object) -> View:
    settings: dict[str, object] = {
        "boundary": Boundary.BUBBLEWRAP,
        "home": "/agent",
        "tmp": "/tmp",
        **changed,
    }
    return View(places=places, **settings)  # type: ignore[arg-type]


WORK = Place.same("/people/ann/desk", Access.WRITE)
SYSTEM = Place.same("/usr", Access.READ)
HIDDEN = Place.same("/people/ann/.koboshi", Access.HIDDEN)
TMP = Place(inside="/tmp", outside="/people/ann/.koboshi/inside/tmp/s1", access=Access.WRITE)
ALL = view(WORK, SYSTEM, HIDDEN, TMP)


def test_only_what_is_named_exists() -> None:
    assert ALL.may_read("/usr/bin/git")
    assert not ALL.may_write("/usr/bin/git")
    assert ALL.may_write("/people/ann/desk/a/b")
    assert not ALL.may_read("/people/ann/.ssh/id_ed25519")
    assert not ALL.may_read("/people/ann/deskshop")
    assert not ALL.may_read("/usrlocal")


def test_the_deeper_of_two_places_rules() -> None:
    """The temporary folder lies in the hidden home, and a secret may lie in the working folder."""
    secret = Place.same("/people/ann/desk/token", Access.HIDDEN)
    seen = view(WORK, HIDDEN, TMP, secret)

    assert not seen.may_read("/people/ann/.koboshi/web-token")
    assert seen.may_write("/people/ann/.koboshi/inside/tmp/s1/x")
    assert not seen.may_read("/people/ann/.koboshi/inside/tmp/s2/x")
    assert not seen.may_read("/people/ann/desk/token")


def test_a_place_that_is_named_twice_is_what_gives_more_and_hidden_rules() -> None:
    books = [Place.same("/srv/books", access) for access in (Access.READ, Access.WRITE)]

    assert view(*books).may_write("/srv/books/a")
    assert not view(*books, Place.same("/srv/books", Access.HIDDEN)).may_read("/srv/books/a")


def test_a_name_inside_leads_to_the_file_and_back() -> None:
    assert ALL.locate("/tmp/a/b") == "/people/ann/.koboshi/inside/tmp/s1/a/b"
    assert ALL.locate("/tmp") == "/people/ann/.koboshi/inside/tmp/s1"
    assert ALL.locate("/people/ann/desk") == "/people/ann/desk"
    assert ALL.locate("/people/ann/.koboshi/web-token") is None
    assert ALL.locate("/var/log/syslog") is None
    assert ALL.named("/people/ann/.koboshi/inside/tmp/s1/a") == "/tmp/a"
    assert ALL.named("/var/log/syslog") == "/var/log/syslog"


def test_bubblewrap_mounts_deeper_places_later() -> None:
    said = bubblewrap.arguments(ALL, program="bwrap", workdir="/people/ann/desk")
    words = " ".join(said)

    assert words.startswith("bwrap --unshare-user-try ")
    assert words.endswith("--chdir /people/ann/desk --")
    assert words.index("--ro-bind /usr /usr") < words.index("--bind /people/ann/desk")
    assert "--bind /people/ann/.koboshi/inside/tmp/s1 /tmp" in words
    assert "--die-with-parent" in said
    assert "--unshare-pid" in said
    assert "--unshare-net" not in said
    assert "--setenv" not in said


def test_bubblewrap_covers_only_what_would_be_seen() -> None:
    """The hidden home is in no place that is shown: to cover it would make it."""
    around = Place.same("/people/ann", Access.WRITE)
    token = Place.same("/people/ann/token", Access.HIDDEN)
    shown = view(around, HIDDEN, token, hidden_files=frozenset({"/people/ann/token"}))
    covered = " ".join(bubblewrap.arguments(shown, program="bwrap", workdir="/"))

    assert "--tmpfs /people/ann/.koboshi" in covered
    assert "--ro-bind /dev/null /people/ann/token" in covered
    assert ".koboshi --" not in " ".join(bubblewrap.arguments(ALL, program="bwrap", workdir="/"))


def test_locked_takes_the_network_away() -> None:
    said = bubblewrap.arguments(view(WORK, has_network=False), program="bwrap", workdir="/")

    assert "--unshare-net" in said


def test_landlock_grants_what_is_shown() -> None:
    granted = dict(rules.grants(view(WORK, SYSTEM, HIDDEN, boundary=Boundary.LANDLOCK)))

    assert granted == {"/people/ann/desk": landlock.ALL, "/usr": landlock.READING}
    assert not landlock.READING & landlock.WRITE_FILE


def test_landlock_cannot_hide_a_part_of_what_it_shows_and_says_so() -> None:
    around = Place.same("/people/ann", Access.WRITE)

    assert rules.conflict(view(WORK, SYSTEM, HIDDEN)) == ""
    assert "/people/ann/.koboshi lies in /people/ann" in rules.conflict(view(around, HIDDEN))
