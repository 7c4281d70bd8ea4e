"""The file tools inside a boundary: what a command cannot see, they cannot. Issue 15, item 2."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import anyio
import pytest

from koboshi.boundary.enclosure import confine, make_folders
from koboshi.boundary.probe import probe
from koboshi.boundary.view import Access, Place, View
from koboshi.domain.sandbox import Boundary
from koboshi.ports.tool import ToolFailed
from koboshi.tools.files.inside import resolve_inside
from tests.fakes.files import Files
from tests.harness.polling import WITHIN_S

CANARY = "canary-7f31"
BOUNDARIES = (Boundary.BUBBLEWRAP, Boundary.LANDLOCK)
TOOLS_THAT_READ: tuple[tuple[str, dict[str, object]], ...] = (
    ("read_file", {}),
    ("search_files", {"pattern": "."}),
    ("send_file", {}),
    ("edit_file", {"old": CANARY, "new": "x"}),
    ("write_file", {"content": "x"}),
)


@pytest.fixture(params=BOUNDARIES)
def boundary(request: pytest.FixtureRequest) -> Boundary:
    found: Boundary = request.param
    return found


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that does not lie in /tmp: inside, that is another one."""
    with TemporaryDirectory(dir="/var/tmp", prefix="koboshi-test-") as folder:
        yield Path(folder).resolve()


@pytest.fixture
def files(root: Path, boundary: Boundary) -> Files:
    """The file tools beside a person's home with keys, and a gateway's home."""
    person = root / "person"
    person.mkdir()
    (person / ".netrc").write_text(CANARY)
    (person / "token").write_text(CANARY)
    return Files(root, boundary)


# ── which paths, in which mode ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class Row:
    path: str
    reads: bool = False
    writes: bool = False
    only: tuple[Boundary, ...] = BOUNDARIES


TABLE = (
    Row(path="notes", reads=True, writes=True),
    Row(path="{work}/notes", reads=True, writes=True),
    Row(path="./a/../notes", reads=True, writes=True),
    Row(path="new/folder/file", writes=True),
    Row(path="~/kept", writes=True),
    Row(path="/tmp/draft", writes=True, only=(Boundary.BUBBLEWRAP,)),
    Row(path="/tmp/draft", only=(Boundary.LANDLOCK,)),
    Row(path="/etc/passwd", reads=True),
    Row(path="/usr/bin/env", reads=True),
    Row(path="/bin/sh", reads=True),
    Row(path="{home}/web-token"),
    Row(path="../home/web-token"),
    Row(path="{home}/inside/tmp/s2/draft"),
    Row(path="{root}/person/.netrc"),
    Row(path="{root}/person/token"),
    Row(path="../person/../home/koboshi.db"),
    Row(path="/etc/shadow"),
    Row(path="/root"),
    Row(path="/var/lib/dpkg/status"),
    Row(path="/run/utmp"),
    Row(path="/proc/self/environ"),
    Row(path="/proc/1/environ"),
    Row(path="/proc/self/root{home}/web-token"),
    Row(path="/proc/self/cwd/notes"),
    Row(path="/dev/null"),
    Row(path="/sys/kernel/uevent_seqnum"),
    Row(path="//{home}//web-token"),
    Row(path="/"),
)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.path)
async def test_a_path_is_what_it_is_for_a_command(
    files: Files, boundary: Boundary, row: Row
) -> None:
    """Issue 15, V5: `read_file` opens neither a token file nor `.netrc`."""
    if boundary not in row.only:
        pytest.skip("another row")
    (files.workdir / "notes").write_text("mine\n")
    (files.workdir / "a").mkdir()
    named = {"work": files.workdir, "home": files.home, "root": files.root}
    path = row.path.format(**named)

    assert await reads(files, path) is row.reads
    assert await writes(files, path) is row.writes
    assert (files.home / "web-token").read_text() == "secret\n"


async def reads(files: Files, path: str) -> bool:
    try:
        answer = await files.run("read_file", path=path)
    except (AssertionError, ToolFailed):
        return False
    return answer["status"] in ("ok", "binary")


async def writes(files: Files, path: str) -> bool:
    try:
        answer = await files.run("write_file", path=path, content="theirs\n")
    except ToolFailed:
        return False
    return answer["status"] == "written"


async def test_every_tool_refuses_what_is_not_visible(files: Files) -> None:
    for path in ("../person/token", str(files.home / "web-token")):
        for tool, more in TOOLS_THAT_READ:
            failure = await files.failure(tool, path=path, **more)
            assert "not visible inside the sandbox" in failure, tool
            assert CANARY not in failure
        assert "not visible" in await files.failure("list_files", path=os.path.dirname(path))
    assert (files.root / "person" / "token").read_text() == CANARY


async def test_a_named_path_is_visible_and_no_more(root: Path, boundary: Boundary) -> None:
    books = root / "books"
    books.mkdir()
    (books / "one").write_text("read me\n")
    files = Files(root, boundary, readable=str(books))

    assert (await files.run("read_file", path=str(books / "one")))["content"] == "1\tread me\n"
    assert (await files.run("search_files", path=str(books), pattern="me"))["matches"]
    assert "not be changed" in await files.failure(
        "write_file", path=str(books / "one"), content="x"
    )


async def test_a_hidden_file_in_the_working_folder_is_not_read(root: Path) -> None:
    """Bubblewrap covers it. Landlock cannot, and such a view is refused at the start."""
    files = Files(root, Boundary.BUBBLEWRAP, hidden=str(root / "work" / "token"))
    (files.workdir / "token").write_text(CANARY)
    (files.workdir / "other").write_text("fine\n")

    for tool, more in TOOLS_THAT_READ:
        assert "not visible" in await files.failure(tool, path="token", **more), tool
    found = await files.run("search_files", pattern=".")

    assert [match["path"] for match in found["matches"]] == ["other"]
    assert (files.workdir / "token").read_text() == CANARY


# ── links ───────────────────────────────────────────────────────────────────────────────────────


def links_out(files: Files) -> list[str]:
    """Every link that we know to lead out."""
    work, person = files.workdir, files.root / "person"
    (work / "folder").symlink_to(person)
    (work / "straight").symlink_to(person / "token")
    (work / "dots").symlink_to("../person/token")
    (work / "chain").symlink_to("folder/token")
    (work / "magic").symlink_to("/proc/self/root")
    (work / "cwd").symlink_to("/proc/self/cwd")
    (work / "round").symlink_to("round")
    return [
        "folder/token",
        "straight",
        "dots",
        "chain",
        f"magic{person}/token",
        "cwd/../person/token",
        "round",
        "folder/../person/token",
    ]


async def test_no_link_leads_out(files: Files) -> None:
    """Issue 15, V11 for the tools: what a command plants is followed inside the view, or not."""
    for path in links_out(files):
        for tool, more in TOOLS_THAT_READ:
            failure = await files.failure(tool, path=path, **more)
            assert CANARY not in failure, (tool, path)
    assert (files.root / "person" / "token").read_text() == CANARY


async def test_links_inside_are_followed_as_a_command_does(files: Files) -> None:
    (files.workdir / "a").mkdir()
    (files.workdir / "a" / "file").write_text("seen\n")
    (files.workdir / "near").symlink_to("a/file")
    (files.workdir / "far").symlink_to("/etc/passwd")

    assert (await files.run("read_file", path="near"))["path"] == "a/file"
    assert "root" in (await files.run("read_file", path="far"))["content"]


async def test_a_link_in_the_temporary_folder_means_what_it_means_inside(root: Path) -> None:
    """`/tmp/x` of a command is a folder of the session, and its links are read there."""
    files = Files(root, Boundary.BUBBLEWRAP)
    await files.run("write_file", path="/tmp/real", content="inside\n")
    temporary = files.home / "inside" / "tmp" / "s1"
    (temporary / "link").symlink_to("/tmp/real")
    (temporary / "up").symlink_to("../../../web-token")

    assert (await files.run("read_file", path="/tmp/link"))["content"] == "1\tinside\n"
    assert await files.failure("read_file", path="/tmp/up")
    assert (temporary / "real").read_text() == "inside\n"


ROUNDS = 150


@pytest.mark.parametrize("swapped", ["folder", "file"])
async def test_a_link_that_is_swapped_meanwhile_never_shows_the_canary(
    files: Files, swapped: str
) -> None:
    """A command of the agent may exchange a link as fast as it can. Each read shows its own file,
    or fails; the canary is not shown once, and not written to."""
    work, person = files.workdir, files.root / "person"
    (work / "mine").mkdir()
    (work / "mine" / "token").write_text("mine")
    name = work / ("way" if swapped == "folder" else "token")
    path = "way/token" if swapped == "folder" else "token"
    targets = (
        [work / "mine", person] if swapped == "folder" else [work / "mine/token", person / "token"]
    )
    is_over = Event()

    def swap() -> None:
        turn = 0
        while not is_over.is_set():
            turn += 1
            spare = work / "spare"
            spare.symlink_to(targets[turn % 2])
            spare.rename(name)

    swapper = Thread(target=swap)
    swapper.start()
    shown: list[str] = []
    try:
        with anyio.fail_after(120):
            for _ in range(ROUNDS):
                for tool, more in (("read_file", {}), ("edit_file", {"old": CANARY, "new": "x"})):
                    try:
                        shown.append(str(await files.run(tool, path=path, **more)))
                    except ToolFailed as failed:
                        shown.append(str(failed))
    finally:
        is_over.set()
        swapper.join(WITHIN_S)

    assert not any(CANARY in each for each in shown)
    assert (person / "token").read_text() == CANARY


# ── beside a real command ───────────────────────────────────────────────────────────────────────

PROBE = """
import sys
for path in sys.argv[1:]:
    try:
        with open(path, "rb") as file:
            file.read(1)
        print("yes")
    except OSError:
        print("no")
"""


async def test_the_tools_see_what_a_real_command_sees(files: Files, boundary: Boundary) -> None:
    if reason := getattr(probe(), boundary):
        pytest.skip(f"{boundary}: {reason}")
    if boundary is Boundary.LANDLOCK:
        pytest.skip("applied by the runner: tests/runner/test_inside.py")
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        pytest.skip("the system has no python3")
    (files.workdir / "notes").write_text("mine\n")
    links_out(files)
    view = files.enclosure.view_of("s1")
    assert view is not None
    make_folders(view)
    (files.home / "inside" / "tmp" / "s1" / "x").write_text("x")
    paths = [
        "notes", "straight", "folder/token", "/tmp/x", "/etc/passwd", "/etc/shadow", "/bin/sh",
        str(files.home / "web-token"), str(files.root / "person" / ".netrc"), "/root",
    ]  # fmt: skip

    # Copies need open files, which its runner has.
    plain = replace(view, copied=frozenset())
    launcher = confine(plain, str(files.workdir)).launcher
    ended = subprocess.run(
        [*launcher, python, "-c", PROBE, *paths], capture_output=True, text=True, check=True
    )

    assert [await reads(files, path) for path in paths] == [
        said == "yes" for said in ended.stdout.split()
    ], sys.version


# ── names, without a disk ───────────────────────────────────────────────────────────────────────


def test_names_are_resolved_inside_the_view() -> None:
    view = View(
        boundary=Boundary.BUBBLEWRAP,
        places=(Place.same("/nowhere/desk", Access.WRITE),),
        links=(("/bin", "usr/bin"),),
        home="/agent",
        tmp="/tmp",
    )

    assert resolve_inside(view, "/bin/sh") == "/usr/bin/sh"
    assert resolve_inside(view, "/nowhere/desk/../../../x") == "/x"
    assert resolve_inside(view, "/nowhere/./desk//a/..") == "/nowhere/desk"
    assert resolve_inside(view, "/") == "/"
