"""The file tools: what they read, and what they leave alone."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from typing import Any

import anyio
import pytest

from koboshi.domain.transcript import Effect, Need
from koboshi.tools.files import looking
from koboshi.tools.files.places import FilePlaces
from koboshi.tools.files.tools import file_tools
from tests.fakes.files import Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path.resolve())


# ── what the model is told of them ──────────────────────────────────────────────────────────────


def test_the_tools_say_what_repeating_them_does(files: Files) -> None:
    effects = {name: tool.effect_of("{}") for name, tool in files.tools.items()}

    assert effects == {
        "read_file": Effect.NONE,
        "write_file": Effect.REPEATABLE,
        "edit_file": Effect.REPEATABLE,
        "list_files": Effect.NONE,
        "search_files": Effect.NONE,
        "send_file": Effect.REPEATABLE,
    }
    assert all(tool.need_of("{}") is Need.NOBODY for tool in files.tools.values())


def test_the_schemas_describe_every_argument(files: Files) -> None:
    for tool in files.tools.values():
        schema = json.loads(tool.spec.parameters)
        assert schema["additionalProperties"] is False
        assert "$ref" not in tool.spec.parameters


@pytest.mark.parametrize(
    "tool,arguments,complaint",
    [
        ("read_file", {}, "`path` is missing"),
        ("read_file", {"path": ""}, "`path`"),
        ("read_file", {"path": "a\0b"}, "`path` cannot hold a NUL"),
        ("read_file", {"path": "a", "offset": 0}, "`offset`"),
        ("read_file", {"path": "a", "limit": 2_001}, "`limit`"),
        ("write_file", {"path": "a"}, "`content` is missing"),
        ("edit_file", {"path": "a", "old": "", "new": "b"}, "`old`"),
        ("edit_file", {"path": "a", "old": "b", "new": "b"}, "`old` and `new` are the same"),
        ("list_files", {"depth": 21}, "`depth`"),
        ("search_files", {"pattern": ""}, "`pattern`"),
        ("search_files", {"pattern": "a", "globs": "*"}, "`globs` is not an argument"),
    ],
)
def test_a_complaint_names_the_argument(
    files: Files, tool: str, arguments: dict[str, object], complaint: str
) -> None:
    assert complaint in (files.tools[tool].complaint_about(json.dumps(arguments)) or "")


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


async def test_lines_are_read_with_their_numbers(files: Files) -> None:
    (files.workdir / "notes.txt").write_text("one\ntwo\nthree")

    assert await files.run("read_file", path="notes.txt") == {
        "status": "ok",
        "path": "notes.txt",
        "bytes": 13,
        "total_lines": 3,
        "content": "1\tone\n2\ttwo\n3\tthree\n",
    }


async def test_a_part_is_read_and_says_where_to_go_on(files: Files) -> None:
    (files.workdir / "notes.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))

    part = await files.run("read_file", path="notes.txt", offset=4, limit=2)
    rest = await files.run("read_file", path="notes.txt", offset=9, limit=2)
    beyond = await files.run("read_file", path="notes.txt", offset=11)

    assert (part["content"], part["next_offset"]) == ("4\tline 4\n5\tline 5\n", 6)
    assert (rest["content"], rest["total_lines"]) == ("9\tline 9\n10\tline 10\n", 10)
    assert "next_offset" not in rest
    assert (beyond["content"], beyond["total_lines"]) == ("", 10)


async def test_an_empty_file_has_no_lines(files: Files) -> None:
    (files.workdir / "empty").touch()

    empty = await files.run("read_file", path="empty")

    assert (empty["total_lines"], empty["content"]) == (0, "")


async def test_a_binary_file_is_not_shown(files: Files) -> None:
    (files.workdir / "picture").write_bytes(b"\x89PNG\0\0\0")

    assert (await files.run("read_file", path="picture"))["status"] == "binary"


async def test_a_long_line_is_cut(files: Files) -> None:
    (files.workdir / "long").write_text("x" * 5_000 + "\n" + "y" * 2_000 + "\nend\n")

    read = await files.run("read_file", path="long")

    first, second, third, _ = read["content"].split("\n")
    assert first == "1\t" + "x" * 2_000 + " … 3000 more bytes"
    assert second == "2\t" + "y" * 2_000
    assert third == "3\tend"
    assert read["total_lines"] == 3


async def test_a_result_is_bounded_and_the_rest_can_be_asked_for(files: Files) -> None:
    (files.workdir / "large").write_text(("z" * 999 + "\n") * 500)

    read = await files.run("read_file", path="large")

    assert len(read["content"]) < 70_000
    assert read["next_offset"] == 61
    assert read["total_lines"] == 500


async def test_of_a_huge_file_only_a_part_is_read(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "SCANNED_BYTES_MAX", 1_000)
    (files.workdir / "huge").write_text("1234567\n" * 1_000)

    read = await files.run("read_file", path="huge", limit=1)

    assert "total_lines" not in read
    assert read["next_offset"] == 2
    assert "only 1000 bytes were read" in read["note"]


async def test_what_is_not_seen_is_written_out(files: Files) -> None:
    (files.workdir / "odd").write_bytes(
        "a\u202eb\x1b[31mc\r\nd\udcffe\n".encode("utf-8", "surrogateescape")
    )

    read = await files.run("read_file", path="odd")

    assert read["content"] == "1\ta<U+202E>b<U+001B>[31mc\n2\td\ufffde\n"
    assert "carriage return" in read["note"]
    assert "not UTF-8" in read["note"]


@pytest.mark.parametrize("folder", ["", "."])
async def test_files_outside_the_working_folder_can_be_read(files: Files, folder: str) -> None:
    outside = files.root / "outside.txt"
    outside.write_text("seen\n")

    absolute = await files.run("read_file", path=str(outside))
    relative = await files.run("read_file", path=os.path.join(folder, "../outside.txt"))

    assert absolute["content"] == relative["content"] == "1\tseen\n"
    assert absolute["path"] == str(outside)


async def test_a_missing_file_and_a_folder_are_named(files: Files) -> None:
    (files.workdir / "src").mkdir()
    (files.workdir / "file").touch()

    assert await files.failure("read_file", path="no.txt") == "no.txt does not exist"
    assert await files.failure("read_file", path="no/no.txt") == "no does not exist"
    assert await files.failure("read_file", path="src") == "src is a folder"
    assert await files.failure("read_file", path="file/x") == "file is not a folder"
    assert "name that is too long" in await files.failure("read_file", path="x" * 300)


# ── what is off limits ──────────────────────────────────────────────────────────────────────────


def ways_home(files: Files) -> list[str]:
    """Every way we know to spell a file of the gateway."""
    inside = files.workdir / "inside"
    inside.symlink_to(files.home)
    straight = files.workdir / "token"
    straight.symlink_to(files.home / "web-token")
    chain = files.workdir / "chain"
    chain.symlink_to("inside/web-token")
    hard = files.workdir / "hard"
    hard.hardlink_to(files.home / "web-token")
    return [
        str(files.home / "web-token"),
        "../home/web-token",
        "inside/web-token",
        "./inside/../home/web-token",
        "token",
        "chain",
        "hard",
        f"/proc/self/root{files.home}/web-token",
        f"//{files.home}//web-token",
    ]


async def test_the_home_of_the_gateway_is_never_opened(files: Files) -> None:
    """Closing a second descriptor of the database would drop the locks of the store."""
    for path in ways_home(files):
        for tool, more in [
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("edit_file", {"old": "secret", "new": "x"}),
            ("search_files", {"pattern": "secret"}),
        ]:
            failure = await files.failure(tool, path=path, **more)
            assert "belongs to the gateway itself" in failure, (tool, path)
    assert (files.home / "web-token").read_text() == "secret\n"
    assert sorted(os.listdir(files.home)) == ["koboshi.db", "web-token"]


async def test_the_home_is_not_listed_nor_searched_from_above(files: Files) -> None:
    ways_home(files)
    (files.root / "notes").write_text("secret too\n")

    listed = await files.run("list_files", path="..", depth=5)
    found = await files.run("search_files", path="..", pattern="secret")
    assert "off limits" in await files.failure("list_files", path="../home")

    paths = [entry["path"] for entry in listed["entries"]]
    assert "home/" in paths
    assert not any("web-token" in path for path in paths)
    assert [match["path"] for match in found["matches"]] == ["notes"]


async def test_a_home_inside_the_working_folder_is_off_limits(tmp_path: Path) -> None:
    files = Files(tmp_path.resolve())
    files.tools = {tool.spec.name: tool for tool in file_tools(workdir=files.root, home=files.home)}

    assert "off limits" in await files.failure("read_file", path="home/web-token")
    assert "off limits" in await files.failure("write_file", path="home/x", content="x")
    assert (await files.run("write_file", path="work/x", content="x"))["status"] == "written"


async def test_a_working_folder_inside_the_home_can_be_used(tmp_path: Path) -> None:
    files = Files(tmp_path.resolve())
    inside = files.home / "work"
    inside.mkdir()
    files.tools = {tool.spec.name: tool for tool in file_tools(workdir=inside, home=files.home)}

    assert (await files.run("write_file", path="x", content="y"))["status"] == "written"
    assert (await files.run("read_file", path="x"))["content"] == "1\ty\n"
    assert "off limits" in await files.failure("read_file", path="../web-token")


@pytest.mark.parametrize("path", [".ssh/id_rsa", "a/.aws/credentials", ".GNUPG/x", "/etc/shadow"])
async def test_keys_are_left_to_commands_that_a_person_approves(files: Files, path: str) -> None:
    target = files.workdir / path
    if not path.startswith("/"):
        target.parent.mkdir(parents=True)
        target.write_text("key\n")

    for tool, more in [("read_file", {}), ("write_file", {"content": "x"})]:
        assert "may hold keys" in await files.failure(tool, path=path, **more)
    assert (await files.run("search_files", pattern="key"))["matches"] == []


@pytest.mark.parametrize(
    "path",
    [
        "/proc/self/environ",
        "/proc/kmsg",
        "/proc/self/mem",
        "/dev/zero",
        "/dev/stdin",
        "/sys/kernel",
    ],
)
async def test_what_the_system_makes_up_is_not_read(files: Files, path: str) -> None:
    with anyio.fail_after(60):
        assert await files.failure("read_file", path=path)


async def test_a_pipe_or_a_socket_does_not_keep_us_waiting(files: Files) -> None:
    os.mkfifo(files.workdir / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(files.workdir / "socket"))

    with anyio.fail_after(60):
        for name in ("pipe", "socket"):
            for tool, more in [
                ("read_file", {}),
                ("write_file", {"content": "x"}),
                ("edit_file", {"old": "a", "new": "b"}),
                ("search_files", {"pattern": "x"}),
            ]:
                failure = await files.failure(tool, path=name, **more)
                assert failure == f"{name} is not a regular file", tool
        assert (await files.run("search_files", pattern="x"))["status"] == "no_match"
        listed = await files.run("list_files")
    assert listed["entries"] == [
        {"path": "pipe", "kind": "other"},
        {"path": "socket", "kind": "other"},
    ]


async def test_links_that_go_round_in_circles_are_told(files: Files) -> None:
    (files.workdir / "a").symlink_to("b")
    (files.workdir / "b").symlink_to("a")

    assert await files.failure("read_file", path="a")
    assert (await files.run("list_files", depth=20))["status"] == "ok"


async def test_a_folder_that_becomes_a_link_while_it_is_opened_is_not_followed(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between resolving and opening, a command of the agent can put a link in the way."""
    (files.workdir / "folder").mkdir()
    (files.workdir / "folder" / "web-token").write_text("mine\n")
    resolve = FilePlaces.resolve

    def resolve_and_lose(places: FilePlaces, path: str) -> str:
        real = resolve(places, path)
        (files.workdir / "folder").rename(files.workdir / "away")
        (files.workdir / "folder").symlink_to(files.home)
        return real

    monkeypatch.setattr(FilePlaces, "resolve", resolve_and_lose)

    assert await files.failure("read_file", path="folder/web-token") == "folder is not a folder"


# ── the event loop ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "tool,arguments",
    [
        ("read_file", {"path": "x"}),
        ("list_files", {}),
        ("write_file", {"path": "y", "content": "y"}),
        ("edit_file", {"path": "x", "old": "a", "new": "b"}),
    ],
)
async def test_files_are_touched_beside_the_event_loop(
    files: Files, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, object]
) -> None:
    (files.workdir / "x").write_text("a")
    threads: set[int] = set()

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            threads.add(get_ident())
            return function(*arguments, **more)

        return call

    for name in ("open", "stat", "fsync"):
        monkeypatch.setattr(os, name, noted(getattr(os, name)))

    await files.run(tool, **arguments)

    assert threads
    assert get_ident() not in threads
