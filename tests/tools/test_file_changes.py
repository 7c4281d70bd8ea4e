"""Files are changed as a whole, below the working folder, and once however often it is tried."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from koboshi.tools.files.edits import Already, Edited, plan_edit
from tests.fakes.files import CONTEXT, Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path.resolve())


# ── writing ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_file_is_written_with_the_folders_that_it_needs(files: Files) -> None:
    written = await files.run("write_file", path="src/deep/x.py", content="é\n")

    assert written == {"status": "written", "path": "src/deep/x.py", "bytes": 3, "is_new": True}
    assert (files.workdir / "src/deep/x.py").read_text(encoding="utf-8") == "é\n"
    assert os.listdir(files.workdir / "src/deep") == ["x.py"]


async def test_writing_the_same_again_changes_nothing(files: Files) -> None:
    await files.run("write_file", path="x", content="same")
    before = (files.workdir / "x").stat()

    again = await files.run("write_file", path="x", content="same")

    after = (files.workdir / "x").stat()
    assert again["status"] == "unchanged"
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize("found", ["", "longer than it will be", "sama", "same\n"])
async def test_other_content_is_replaced(files: Files, found: str) -> None:
    (files.workdir / "x").write_text(found)

    written = await files.run("write_file", path="x", content="same")

    assert (written["status"], written["is_new"]) == ("written", False)
    assert (files.workdir / "x").read_text() == "same"


async def test_the_mode_of_a_file_is_kept(files: Files) -> None:
    script = files.workdir / "run.sh"
    script.write_text("old\n")
    script.chmod(0o750)

    await files.run("write_file", path="run.sh", content="new\n")
    await files.run("edit_file", path="run.sh", old="new", new="newer")

    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert script.read_text() == "newer\n"


async def test_a_link_inside_the_working_folder_is_written_through(files: Files) -> None:
    (files.workdir / "real").write_text("old")
    (files.workdir / "link").symlink_to("real")

    assert (await files.run("write_file", path="link", content="new"))["path"] == "real"

    assert (files.workdir / "link").is_symlink()
    assert (files.workdir / "real").read_text() == "new"


async def test_nothing_is_written_outside_the_working_folder(files: Files) -> None:
    outside = files.root / "outside.txt"
    outside.write_text("old")
    (files.workdir / "link").symlink_to(outside)
    (files.workdir / "up").symlink_to(files.root)

    for path in ("../outside.txt", str(outside), "link", "up/outside.txt", "up/new.txt", "/"):
        failure = await files.failure("write_file", path=path, content="new")
        assert "outside the working folder" in failure, path
    failure = await files.failure("edit_file", path="link", old="old", new="new")
    assert "outside the working folder" in failure
    assert "does not exist" in await files.failure("write_file", path="../new/x", content="x")
    assert outside.read_text() == "old"
    assert not (files.root / "new").exists()


async def test_a_write_protected_file_and_a_folder_are_not_overwritten(files: Files) -> None:
    (files.workdir / "kept").write_text("old")
    (files.workdir / "kept").chmod(0o444)
    (files.workdir / "src").mkdir()

    assert "kept is write-protected" in await files.failure("write_file", path="kept", content="x")
    assert "src is a folder" in await files.failure("write_file", path="src", content="x")
    assert "outside" in await files.failure("write_file", path=".", content="x")


async def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    (files.workdir / "x").write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    failure = await files.failure("write_file", path="x", content="new")

    assert failure == "x cannot be used: no space left on device"
    assert files.left() == ["x"]
    assert (files.workdir / "x").read_text() == "old"


async def test_the_content_is_on_the_disk_before_it_gets_its_name(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync, rename = os.fsync, os.rename

    def noted_fsync(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        order.append(f"sync {kind}")
        fsync(descriptor)

    def noted_rename(*names: Any, **folders: Any) -> None:
        order.append("rename")
        rename(*names, **folders)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "rename", noted_rename)

    await files.run("write_file", path="x", content="new")

    assert order == ["sync file", "rename", "sync folder"]


async def test_a_call_that_died_clears_up_after_itself(files: Files) -> None:
    """Killed between writing and renaming: the same call is run again by the next life."""
    (files.workdir / ".koboshi-7-5.0.new").write_text("half")

    await files.run("write_file", path="x", content="whole")

    assert files.left() == ["x"]


CHANGE_THEN_DIE = """
import os, signal, sys
sys.path[:0] = {paths!r}
import anyio
from pathlib import Path
from tests.fakes.files import CONTEXT
from koboshi.tools.files.tools import file_tools

point, fsync, rename = {point!r}, os.fsync, os.rename

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def dying_fsync(descriptor):
    point == "before-sync" and die()
    fsync(descriptor)

def dying_rename(*names, **folders):
    point == "before-rename" and die()
    rename(*names, **folders)
    point == "after-rename" and die()

os.fsync, os.rename = dying_fsync, dying_rename
for tool in file_tools(workdir=Path({workdir!r}), home=Path({home!r})):
    if tool.spec.name == {tool!r}:
        anyio.run(tool.run, {arguments!r}, CONTEXT)
"""


@pytest.mark.parametrize("point", ["before-sync", "before-rename", "after-rename"])
@pytest.mark.parametrize(
    "tool,more",
    [
        ("write_file", {"content": "anchor\nnew line\n"}),
        ("edit_file", {"old": "anchor\n", "new": "anchor\nnew line\n"}),
    ],
)
async def test_a_change_that_was_killed_is_made_once_when_it_is_run_again(
    files: Files, point: str, tool: str, more: dict[str, str]
) -> None:
    (files.workdir / "x").write_text("anchor\n")
    arguments = json.dumps({"path": "x", **more})
    program = CHANGE_THEN_DIE.format(
        paths=[each for each in sys.path if each],
        point=point,
        workdir=str(files.workdir),
        home=str(files.home),
        tool=tool,
        arguments=arguments,
    )
    died = subprocess.run([sys.executable, "-c", program], cwd=Path.cwd(), check=False)
    assert died.returncode == -signal.SIGKILL

    again = await files.run(tool, path="x", **more)

    assert (files.workdir / "x").read_text() == "anchor\nnew line\n"
    assert files.left() == ["x"]
    was_made = point == "after-rename"
    expected = {
        "write_file": "unchanged" if was_made else "written",
        "edit_file": "already_applied" if was_made else "edited",
    }
    assert again["status"] == expected[tool]


async def test_edits_side_by_side_do_not_lose_each_other(files: Files) -> None:
    (files.workdir / "x").write_text("".join(f"<{n}>\n" for n in range(20)))

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            context_arguments = {"path": "x", "old": f"<{number}>", "new": f"({number})"}
            tasks.start_soon(files.tools["edit_file"].run, json.dumps(context_arguments), CONTEXT)

    assert (files.workdir / "x").read_text() == "".join(f"({n})\n" for n in range(20))


# ── editing ─────────────────────────────────────────────────────────────────────────────────────


async def test_one_text_takes_the_place_of_another(files: Files) -> None:
    (files.workdir / "x.py").write_text("a = 1\nb = 2\n")

    edited = await files.run("edit_file", path="x.py", old="b = 2", new="b = 3")

    assert edited == {"status": "edited", "path": "x.py", "replaced": 1, "line": 2}
    assert (files.workdir / "x.py").read_text() == "a = 1\nb = 3\n"


async def test_a_text_that_is_there_twice_is_a_complaint_with_the_count(files: Files) -> None:
    (files.workdir / "x").write_text("a\nb\na\na\n")

    failure = await files.failure("edit_file", path="x", old="a", new="c")

    assert "`old` is there 3 times, first in lines 1 and 3" in failure
    assert "replace_all" in failure
    assert (files.workdir / "x").read_text() == "a\nb\na\na\n"


async def test_all_of_them_can_be_replaced(files: Files) -> None:
    (files.workdir / "x").write_text("a\nb\na\n")

    edited = await files.run("edit_file", path="x", old="a", new="c", replace_all=True)

    assert edited["replaced"] == 2
    assert (files.workdir / "x").read_text() == "c\nb\nc\n"


async def test_an_edit_that_was_made_already_is_told_so(files: Files) -> None:
    (files.workdir / "x").write_text("one\nnew\n")

    again = await files.run("edit_file", path="x", old="old", new="new")

    assert (again["status"], again["line"]) == ("already_applied", 2)


@pytest.mark.parametrize(
    "content,old,new,words",
    [
        ("text", "no such", "thing", "`old` is not there; it must be the exact text"),
        ("text", "no such", "", "it may have been taken out before"),
        ("xaabby", "ab", "", "`old` would still be there afterwards"),
        ("aaa", "aa", "b", "`old` is there 2 times"),
    ],
)
async def test_an_edit_that_cannot_be_made_says_why(
    files: Files, content: str, old: str, new: str, words: str
) -> None:
    (files.workdir / "x").write_text(content)

    failure = await files.failure("edit_file", path="x", old=old, new=new)

    assert failure.startswith("x was not changed: ")
    assert words in failure
    assert (files.workdir / "x").read_text() == content


async def test_only_texts_of_a_reasonable_size_are_edited(files: Files) -> None:
    (files.workdir / "latin").write_bytes(b"caf\xe9")
    (files.workdir / "large").write_text("x" * 2_000_001)

    assert "not a text in UTF-8" in await files.failure(
        "edit_file", path="latin", old="caf", new="tea"
    )
    assert "too large" in await files.failure("edit_file", path="large", old="x", new="y")
    assert "use `write_file`" in await files.failure("edit_file", path="no", old="x", new="y")


@pytest.mark.parametrize(
    "content,old,new,after",
    [
        ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\n", "a\r\n", "x\r\n", "x\r\nb\r\n"),
        ("a\r\nb\nc\n", "b\n", "x\n", "a\r\nx\nc\n"),
        ("\ufeffa\n", "a", "b", "\ufeffb\n"),
    ],
)
def test_line_ends_are_kept(content: str, old: str, new: str, after: str) -> None:
    plan = plan_edit(content, old, new, is_everywhere=False)

    assert isinstance(plan, Edited)
    assert plan.text == after


@pytest.mark.parametrize(
    "content,old,new",
    [
        ("foo bar", "foo", "foo bar"),
        ("anchor\nline\n", "anchor\n", "anchor\nline\n"),
        ("x\nx\n", "x\n", "x\nx\n"),
    ],
)
def test_what_stands_there_already_is_not_added_again(content: str, old: str, new: str) -> None:
    assert isinstance(plan_edit(content, old, new, is_everywhere=False), Already)


SHORT = st.text(alphabet="ab\r\n", max_size=8)


@given(SHORT, SHORT.filter(bool), SHORT, st.booleans())
@example("aabb", "ab", "", False)
@example("foo()()", "foo()", "foo", False)
@example("abb", "ab", "a", False)
@example("a\nb\r\na\r\nb\r\n", "a\nb", "ab", False)
@example("\n\n\n\n", "\n\n", "\n", True)
def test_an_edit_made_twice_is_an_edit_made_once(
    content: str, old: str, new: str, is_everywhere: bool
) -> None:
    """The whole of the proof that `repeatable` is true: no second edit, for any texts."""
    plan = plan_edit(content, old, new, is_everywhere=is_everywhere)

    if isinstance(plan, Edited):
        again = plan_edit(plan.text, old, new, is_everywhere=is_everywhere)
        assert not isinstance(again, Edited)


@given(st.text(alphabet="abc\n", max_size=30), st.text(alphabet="abc", min_size=1, max_size=3))
def test_an_edit_replaces_exactly_what_it_was_asked_to(content: str, old: str) -> None:
    plan = plan_edit(content, old, "X", is_everywhere=False)

    if isinstance(plan, Edited):
        assert content.count(old) == 1
        assert plan.text == content.replace(old, "X")
        assert isinstance(plan_edit(plan.text, old, "X", is_everywhere=False), Already)
