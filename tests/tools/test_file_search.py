"""Listing and searching folders, within bounds of every kind."""

import json
import os
from pathlib import Path
from time import perf_counter, process_time

import anyio
import pytest

from koboshi.tools.files import looking, seek
from koboshi.tools.files.beside import Beside
from koboshi.tools.files.globs import fits
from koboshi.tools.files.places import FilePlaces
from koboshi.tools.files.searching import search_tool
from tests.fakes.files import CONTEXT, Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path.resolve())


# ── listing and searching ───────────────────────────────────────────────────────────────────────


@pytest.fixture
def tree(files: Files) -> Files:
    for path in ("README.md", "src/app.py", "src/deep/test_app.py", ".git/config", "x.log"):
        file = files.workdir / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"this is {path}\nneedle in {path}\n")
    (files.workdir / "link").symlink_to("src")
    return files


async def test_a_folder_is_listed(tree: Files) -> None:
    listed = await tree.run("list_files")

    assert listed["entries"] == [
        {"path": ".git/"},
        {"path": "README.md", "bytes": 38},
        {"path": "link", "kind": "link"},
        {"path": "src/"},
        {"path": "x.log", "bytes": 30},
    ]


@pytest.mark.parametrize(
    "depth,pattern,paths",
    [
        (2, "", [".git/", "README.md", "link", "src/", "x.log", "src/app.py", "src/deep/"]),
        (9, "*.py", ["src/app.py", "src/deep/test_app.py"]),
        (9, "src/**/*.py", ["src/app.py", "src/deep/test_app.py"]),
        (9, "src/*.py", ["src/app.py"]),
        (9, "no*", []),
    ],
)
async def test_deeper_folders_are_listed_too(
    tree: Files, depth: int, pattern: str, paths: list[str]
) -> None:
    listed = await tree.run("list_files", depth=depth, pattern=pattern)

    assert [entry["path"] for entry in listed["entries"]] == paths


async def test_a_folder_of_a_program_is_listed_when_it_is_asked_for(tree: Files) -> None:
    assert (await tree.run("list_files", path=".git"))["entries"] == [
        {"path": "config", "bytes": 42}
    ]


async def test_a_list_is_bounded(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (files.workdir / f"{number:02}").touch()
    monkeypatch.setattr(looking, "LISTED_MAX", 10)

    listed = await files.run("list_files")
    monkeypatch.setattr(looking, "SCANNED_ENTRIES_MAX", 20)
    cut = await files.run("list_files")

    assert (len(listed["entries"]), listed["left_out"]) == (10, 20)
    assert (len(cut["entries"]), cut["left_out"]) == (10, "10 or more")


async def test_names_that_are_no_text_are_shown(files: Files) -> None:
    with open(os.fsencode(files.workdir) + b"/bad\xff\x1bname", "wb") as file:
        file.write(b"needle\n")

    listed = await files.run("list_files")
    found = await files.run("search_files", pattern="needle")

    assert listed["entries"][0]["path"] == "bad<U+DCFF><U+001B>name"
    assert found["matches"][0]["path"] == "bad<U+DCFF><U+001B>name"


async def test_a_file_that_is_being_written_is_not_seen(files: Files) -> None:
    (files.workdir / ".koboshi-7-5.0.new").write_text("needle")

    assert (await files.run("list_files"))["entries"] == []
    assert (await files.run("search_files", pattern="needle"))["matches"] == []


async def test_a_file_or_nothing_is_not_a_folder_to_list(tree: Files) -> None:
    assert await tree.failure("list_files", path="README.md") == "README.md is not a folder"
    assert await tree.failure("list_files", path="no") == "no does not exist"


async def test_lines_are_found_by_an_expression(tree: Files) -> None:
    found = await tree.run("search_files", pattern=r"needle in .*\.py$")

    assert found == {
        "status": "ok",
        "path": ".",
        "files_searched": 4,
        "matches": [
            {"path": "src/app.py", "line": 2, "text": "needle in src/app.py"},
            {"path": "src/deep/test_app.py", "line": 2, "text": "needle in src/deep/test_app.py"},
        ],
    }


@pytest.mark.parametrize(
    "arguments,paths",
    [
        ({"pattern": "needle", "glob": "*.md"}, ["README.md"]),
        ({"pattern": "needle", "path": "src", "glob": "deep/*"}, ["deep/test_app.py"]),
        ({"pattern": "needle", "path": "x.log"}, ["x.log"]),
        ({"pattern": "NEEDLE in r", "ignore_case": True}, ["README.md"]),
        ({"pattern": "in x.log", "literal": True}, ["x.log"]),
        ({"pattern": "in x(log", "literal": True}, []),
        ({"pattern": "needle", "path": ".git"}, ["config"]),
    ],
)
async def test_a_search_can_be_narrowed(
    tree: Files, arguments: dict[str, object], paths: list[str]
) -> None:
    found = await tree.run("search_files", **arguments)

    assert [match["path"] for match in found["matches"]] == paths
    assert found["status"] == ("ok" if paths else "no_match")


async def test_a_search_is_bounded_in_matches_and_length(files: Files) -> None:
    (files.workdir / "many").write_text("needle\n" * 1_000)
    (files.workdir / "long").write_text("x" * 5_000 + "needle" + "y" * 50_000)
    (files.workdir / "binary").write_bytes(b"needle\0")

    found = await files.run("search_files", pattern="needle", limit=5)

    assert len(found["matches"]) == 5
    assert found["cut_short"] == "there are more matches"
    assert "needle" in found["matches"][0]["text"]
    assert len(found["matches"][0]["text"]) == 300


async def test_a_bad_expression_is_told(files: Files) -> None:
    failure = await files.failure("search_files", pattern="(unclosed")

    assert failure.startswith("`pattern` is not a regular expression: missing ), unterminated")
    assert await files.failure("search_files", pattern="x", path="no") == "no does not exist"


async def test_an_expression_that_takes_for_ever_does_not_stop_the_gateway(files: Files) -> None:
    """Matching holds the interpreter: in this process not even a deadline would be noticed."""
    (files.workdir / "a-first").write_text("aaa\n")
    (files.workdir / "trap").write_text("a" * 60 + "!\n")
    places = FilePlaces(workdir=str(files.workdir), home=str(files.home))
    tool = search_tool(lambda _: places, Beside(), seconds=1.0)
    longest, last, is_done = 0.0, perf_counter(), False

    async def beat() -> None:
        nonlocal longest, last
        while not is_done:
            await anyio.sleep(0.01)
            longest, last = max(longest, perf_counter() - last), perf_counter()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        answer = await tool.run('{"pattern": "^(a+)+$"}', CONTEXT)
        is_done = True

    found = json.loads(answer.text)
    assert [match["path"] for match in found["matches"]] == ["a-first"]
    assert "the time was up" in found["cut_short"]
    assert longest < 10


async def test_a_search_that_is_cancelled_ends(files: Files) -> None:
    (files.workdir / "trap").write_text("a" * 60 + "!\n")

    with anyio.move_on_after(0.5) as scope:
        await files.tools["search_files"].run('{"pattern": "^(a+)+$"}', CONTEXT)

    assert scope.cancelled_caught


def test_the_search_is_bounded_in_bytes_and_files(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        (files.workdir / f"{number}").write_text("word\n" * 100)

    def run() -> seek.Outcome:
        return seek.seek(
            seek.Search(
                workdir=str(files.workdir),
                home=str(files.home),
                secrets=(),
                view=None,
                start=str(files.workdir),
                pattern="nothing",
                glob="",
                is_literal=False,
                ignores_case=False,
                matches_max=10,
                seconds=60,
            )
        )

    assert run() == seek.Outcome(files=10)
    monkeypatch.setattr(seek, "TOTAL_BYTES_MAX", 1_200)
    assert "too much to read" in run().cut_short
    monkeypatch.setattr(seek, "ENTRIES_MAX", 2)
    assert "too many files" in run().cut_short


@pytest.mark.parametrize(
    "pattern,path,does_fit",
    [
        ("*.py", "a/b.py", True),
        ("*.py", "a/b.pyc", False),
        ("a/*.py", "a/b.py", True),
        ("a/*.py", "a/c/b.py", False),
        ("a/**/b.py", "a/b.py", True),
        ("a/**/b.py", "a/c/d/b.py", True),
        ("**/b.py", "b.py", True),
        ("**/b.py", "ab.py", False),
        ("a/**", "a/b/c", True),
        ("./a", "a", False),
        ("a/[bc]?", "a/bx", True),
        ("a/b/**/**/c", "a/b/c", True),
    ],
)
def test_patterns_for_names(pattern: str, path: str, does_fit: bool) -> None:
    assert fits(pattern, path) is does_fit


def test_no_pattern_for_names_takes_long() -> None:
    begin = process_time()

    assert not fits("*a" * 200 + "b", "a" * 250)
    assert not fits("**/a/" * 100 + "b", "a/" * 2_000 + "a")

    assert process_time() - begin < 2
