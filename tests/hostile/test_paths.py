"""Paths that lead elsewhere: the file tools change nothing outside the working folder, and never
show what is the gateway's own."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from koboshi.domain.files import SENT
from koboshi.ports.tool import ToolFailed
from tests.fakes.files import CONTEXT, Files
from tests.hostile.wild import NASTY, fuzzed

SECRET = "the gateway's own"
PIECES = st.sampled_from(
    [
        *("..", ".", "", "~", "~root", "work", "home", "outside", "koboshi.db", "web-token"),
        *("to-home", "to-token", "to-outside", "to-itself", "to-nowhere", "pipe", "folder"),
        *("file.txt", "dev", "null", "zero", "proc", "self", "fd", "0", "etc", "passwd"),
        *("a" * 300, "é" * 200, "\u202e", "-rf", "*", "{a,b}", "$HOME", "`id`", "%2e%2e", "\n"),
    ]
)
PATHS = st.builds(
    lambda root, pieces: root + "/".join(pieces),
    st.sampled_from(["", "/", "//", "./", "../", "~/"]),
    st.lists(PIECES, max_size=6),
) | st.sampled_from(NASTY)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Links of every kind that the agent could have made with a command."""
    root = tmp_path.resolve()
    files = Files(root)
    (files.home / "web-token").write_text(SECRET)
    (files.home / "koboshi.db").write_text(SECRET)
    (root / "outside").mkdir()
    (root / "outside" / "file.txt").write_text("not to be changed")
    (files.workdir / "folder").mkdir()
    (files.workdir / "file.txt").write_text("ours")
    for name, target in (
        ("to-home", files.home),
        ("to-token", files.home / "web-token"),
        ("to-outside", root / "outside"),
        ("to-itself", files.workdir / "to-itself"),
        ("to-nowhere", root / "outside" / "new.txt"),
    ):
        (files.workdir / name).symlink_to(target)
    os.link(files.home / "koboshi.db", files.workdir / "same-as-koboshi.db")
    os.mkfifo(files.workdir / "pipe")
    return files


def everything_outside(files: Files) -> dict[str, str]:
    """What lies outside the working folder, by its name; but for copies that are to be sent."""
    told: dict[str, str] = {}
    for folder in (files.home, files.root / "outside"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and SENT not in path.parts:
                told[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return told


def copies(files: Files) -> list[str]:
    """What is in the copies that are to be sent."""
    folder = files.home / SENT
    return [path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()]


ARGUMENTS: dict[str, dict[str, object]] = {
    "read_file": {},
    "list_files": {},
    "search_files": {"pattern": "own|changed"},
    "write_file": {"content": "overwritten"},
    "edit_file": {"old": SECRET, "new": "overwritten"},
    "send_file": {},
}


@fuzzed(60)
@example("read_file", "to-token")
@example("read_file", "to-home/web-token")
@example("read_file", "same-as-koboshi.db")
@example("read_file", "../home/web-token")
@example("read_file", "/proc/self/environ")
@example("read_file", "/dev/zero")
@example("read_file", "pipe")
@example("write_file", "to-token")
@example("write_file", "to-nowhere")
@example("write_file", "to-outside/file.txt")
@example("write_file", "same-as-koboshi.db")
@example("write_file", "folder/../../outside/file.txt")
@example("edit_file", "to-token")
@example("send_file", "to-token")
@example("search_files", "to-home")
@given(tool=st.sampled_from([name for name in ARGUMENTS if name != "search_files"]), path=PATHS)
async def test_no_path_leads_to_what_is_not_the_agents(files: Files, tool: str, path: str) -> None:
    before = everything_outside(files)
    arguments = json.dumps({**ARGUMENTS[tool], "path": path})
    try:
        said = (await files.tools[tool].run(arguments, CONTEXT)).text
    except ToolFailed as failed:
        said = str(failed)

    said.encode()
    assert SECRET not in said
    assert SECRET not in "".join(copies(files))
    assert everything_outside(files) == before
