"""MCP programs inside a boundary. Issue 15, item 2."""

import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from anyio import create_task_group

from koboshi.app.servers import open_servers
from koboshi.boundary.control_groups import find
from koboshi.boundary.probe import Probe, probe
from koboshi.boundary.program_files import files_of
from koboshi.config.loading import load
from koboshi.domain.sandbox import Boundary
from koboshi.runner.landlock import ABI_OF_SCOPES, version
from koboshi.stores.home_id import home_id
from koboshi.tools.mcp import McpServers
from tests.tools.servers import LIMITS, call, descendants_of, is_alive, told, until

pytest.importorskip("mcp")

CANARY = "canary-91c4"
LOOK = '''
import os, socket, sys, json
from mcp.server.mcpserver import MCPServer

server = MCPServer("looking")

@server.tool(structured_output=False)
def look(path: str) -> str:
    """Read a file."""
    try:
        with open(path) as file:
            return file.read(2_000)
    except OSError as error:
        return "no: " + type(error).__name__

@server.tool(structured_output=False)
def put(path: str) -> str:
    """Write a file."""
    try:
        with open(path, "w") as file:
            file.write("put")
        return "yes"
    except OSError as error:
        return "no: " + type(error).__name__

@server.tool(structured_output=False)
def reach(place: str) -> str:
    """Connect to a socket."""
    try:
        socket.socket(socket.AF_UNIX).connect("\\0" + place)
        return "yes"
    except OSError as error:
        return "no: " + type(error).__name__

@server.tool(structured_output=False)
def around() -> str:
    """Say where we are."""
    seen = {"home": os.environ["HOME"], "cwd": os.getcwd(), "variables": sorted(os.environ)}
    return json.dumps(seen)

server.run()
'''


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that does not lie in /tmp: inside, that is another one."""
    with TemporaryDirectory(dir="/var/tmp", prefix="koboshi-test-") as folder:
        yield Path(folder).resolve()


@pytest.fixture(params=["bubblewrap", "landlock"])
def boundary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Boundary:
    """What is found on the machine; Landlock where namespaces are denied."""
    found = Boundary(request.param)
    if reason := getattr(probe(), found):
        pytest.skip(f"{found}: {reason}")
    if found is Boundary.LANDLOCK:
        denied = Probe(bubblewrap="denied by the test", landlock="")
        monkeypatch.setattr("koboshi.app.boundary.probe", lambda: denied)
    return found


def servers_of(
    root: Path, monkeypatch: pytest.MonkeyPatch, *, tools: str = "", **keys: object
) -> McpServers:
    """The servers of a gateway with one section `[mcp.x]`, not connected yet."""
    for name in ("home", "work", "tools", "person"):
        (root / name).mkdir(exist_ok=True)
    (root / "home").chmod(0o700)
    (root / "person" / "token").write_text(CANARY)
    (root / "home" / "web-token").write_text(CANARY)
    (root / "work" / "notes").write_text("of a session")
    (root / "tools" / "look.py").write_text(LOOK)
    section = {"command": sys.executable, "args": [str(root / "tools" / "look.py")], **keys}
    lines = [f"{name} = {json.dumps(value)}" for name, value in section.items()]
    text = ["[gateway]", f'workdir = "{root / "work"}"', "[tools]", tools, "[mcp.x]", *lines]
    (root / "home" / "koboshi.toml").write_text("\n".join(text), encoding="utf-8")
    config = load(root / "home", None, {"HOME": str(root / "person")}, needs_secrets=False)
    monkeypatch.setattr("koboshi.app.servers._limits", lambda _: LIMITS)
    environment = {"PATH": os.environ["PATH"]}
    return open_servers(config, environment, taken=(), has_boundary=True)


@asynccontextmanager
async def kept(servers: McpServers) -> AsyncIterator[None]:
    """Kept connected until the block is left."""
    async with create_task_group() as tasks:
        tasks.start_soon(servers.keep_connected)
        yield
        tasks.cancel_scope.cancel()


async def answer_of(servers: McpServers, tool: str, **arguments: str) -> str:
    return str(told(await call(servers, tool, **arguments))["output"])


async def test_a_program_sees_itself_and_its_home_and_nothing_of_a_session(
    root: Path, monkeypatch: pytest.MonkeyPatch, boundary: Boundary
) -> None:
    """Issue 15: no session's folder unless it is named; a `$HOME` per server."""
    named = root / "named"
    named.mkdir()
    servers = servers_of(root, monkeypatch, writable=[str(named)])
    async with kept(servers):
        with socket.socket(socket.AF_UNIX) as desktop:
            desktop.bind(f"\0koboshi-test-{root.name}")
            desktop.listen()
            reached = await answer_of(servers, "x_reach", place=f"koboshi-test-{root.name}")
        seen = json.loads(await answer_of(servers, "x_around"))
        refused = [
            await answer_of(servers, "x_look", path=str(root / path))
            for path in ("person/token", "home/web-token", "home/koboshi.toml", "work/notes")
        ]
        own = await answer_of(servers, "x_look", path=str(root / "tools" / "look.py"))
        puts = {
            path: await answer_of(servers, "x_put", path=path)
            for path in (seen["home"] + "/cache", str(named / "x"), str(root / "tools" / "x"))
        }

    assert all(each.startswith("no: ") for each in refused)
    assert CANARY not in str(refused)
    assert reached == "no: PermissionError" or version() < ABI_OF_SCOPES
    assert "MCPServer" in own
    assert list(puts.values())[:2] == ["yes", "yes"]
    assert list(puts.values())[2].startswith("no: ")
    assert seen["cwd"] == seen["home"]
    assert "CREDENTIALS_DIRECTORY" not in seen["variables"]
    assert (root / "home" / "inside" / "home" / "mcp-x" / "cache").read_text() == "put"
    assert (named / "x").read_text() == "put"


async def test_a_program_dies_with_its_connection(
    root: Path, monkeypatch: pytest.MonkeyPatch, boundary: Boundary
) -> None:
    servers = servers_of(root, monkeypatch)
    # Other tests may keep processes of their own for the whole run.
    others = set(descendants_of(os.getpid()))
    async with kept(servers):
        await answer_of(servers, "x_around")
        alive = set(descendants_of(os.getpid())) - others
        assert alive

    await until(lambda: not any(is_alive(pid) for pid in alive))


async def test_a_program_that_misses_something_inside_says_the_remedy(
    root: Path, monkeypatch: pytest.MonkeyPatch, boundary: Boundary
) -> None:
    """Issue 15: told as the reason in /readyz and status."""
    script = root / "scripts" / "needs.sh"
    script.parent.mkdir()
    script.write_text(f'cat "{root}/person/token" || exit 3\n')
    servers = servers_of(root, monkeypatch, command="/bin/sh", args=[str(script)])
    async with kept(servers):
        await servers.settle()
        (reason,) = servers.standing().values()

    assert "it ended with 3" in str(reason)
    assert "`readable` or `writable` of [mcp.x]" in str(reason)
    assert CANARY not in str(reason)


async def test_a_program_has_the_limits_of_commands(
    root: Path, monkeypatch: pytest.MonkeyPatch, boundary: Boundary
) -> None:
    """Issue 15, item 4: nor can a server take the whole machine."""
    settings = "memory_mb = 700\nprocesses = 900\n"
    servers = servers_of(root, monkeypatch, tools=settings)
    groups = find(f"koboshi-{home_id(root / 'home')[:12]}").of("mcp-x")
    async with kept(servers):
        shown = await answer_of(servers, "x_look", path="/proc/self/limits")
        bounds = [Path(each, name) for each in groups for name in ("pids.max", "memory.max")]
        found = {file.name: file.read_text().strip() for file in bounds if file.exists()}

    limits = {line[:26].strip(): line[26:].split() for line in shown.splitlines()}
    assert limits["Max data size"][:2] == [str(700 << 20)] * 2
    if groups:
        assert found["pids.max"] == "900"
        assert not any(Path(each).exists() for each in groups), "nothing is left of it"
    else:
        assert limits["Max processes"][:2] == ["900", "900"]


async def test_a_program_without_network_has_none(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason := probe().bubblewrap:
        pytest.skip(reason)
    servers = servers_of(root, monkeypatch, network=False)
    async with kept(servers):
        devices = await answer_of(servers, "x_look", path="/proc/net/dev")

    assert "lo:" in devices
    assert "eth" not in devices


async def test_where_no_boundary_holds_the_server_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = Probe(bubblewrap="not installed", landlock="an old kernel")
    monkeypatch.setattr("koboshi.app.boundary.probe", lambda: nothing)
    servers = servers_of(root, monkeypatch)
    async with kept(servers):
        await servers.settle()
        (reason,) = servers.standing().values()

    assert "no sandbox holds for it on this machine" in str(reason)
    assert "install bubblewrap" in str(reason)


async def test_a_server_on_the_host_sees_everything(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = servers_of(root, monkeypatch, sandbox="host")
    async with kept(servers):
        found = await answer_of(servers, "x_look", path=str(root / "person" / "token"))

    assert found == CANARY


# ── the files of a program ──────────────────────────────────────────────────────────────────────


def found_for(home: Path, command: str, *args: str) -> tuple[str, ...]:
    return files_of(
        command, args, environment={"PATH": "/usr/bin:/bin"}, workdir="/", home=str(home)
    )


def made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    path.chmod(0o755)
    return path


def test_the_files_of_a_virtual_environment_are_its_own(root: Path) -> None:
    program = made(root / "venv" / "bin" / "server")
    made(root / "venv" / "pyvenv.cfg")

    assert str(root / "venv") in found_for(root / "person", str(program))


def test_a_copied_interpreter_brings_the_installation_that_it_was_copied_from(root: Path) -> None:
    """A virtual environment made with `--copies` has no link that leads there."""
    program = made(root / "venv" / "bin" / "python")
    made(root / "python" / "lib" / "os.py")
    made(root / "python" / "bin" / "python")
    config = made(root / "venv" / "pyvenv.cfg")
    config.write_text(f"home = {root}/python/bin\nversion = 3.12\n")

    found = found_for(root / "person", str(program))

    assert {str(root / each) for each in ("venv", "python/bin", "python/lib")} <= set(found)
    assert str(root / "python") not in found


def test_a_script_brings_its_folder_and_its_package(root: Path) -> None:
    made(root / "package" / "package.json")
    script = made(root / "package" / "dist" / "index.js")

    found = found_for(root / "person", "sh", str(script), str(made(root / "data" / "x.db")))

    assert str(root / "package") in found
    assert not any("data" in path for path in found)


def test_a_script_in_a_home_does_not_show_the_home(root: Path) -> None:
    script = made(root / "person" / "server.py")
    made(root / "person" / "package.json")

    found = found_for(root / "person", "sh", str(script))

    assert str(script) in found
    assert str(root / "person") not in found
    assert str(root) not in found


def test_a_program_in_a_home_shows_what_is_installed_there(root: Path) -> None:
    program = made(root / "person" / ".local" / "bin" / "uvx")
    made(root / "person" / ".local" / "share" / "keyrings" / "login")

    found = found_for(root / "person", str(program))

    assert str(program.parent) in found
    assert not any("share" in path for path in found)


def test_what_the_agent_may_write_does_not_say_where_a_program_is(tmp_path: Path) -> None:
    """Issue 15: a virtual environment in the work folder is the agent's own, with its links."""
    private = tmp_path / "private" / "bin"
    private.mkdir(parents=True)
    (private / "key").write_text(CANARY)
    work = tmp_path / "work"
    (work / "env" / "bin").mkdir(parents=True)
    (work / "env" / "pyvenv.cfg").write_text(f"home = {private}\n")
    program = work / "env" / "bin" / "python"
    program.symlink_to(private / "key")
    (private / "key").chmod(0o755)
    keys = {"environment": {}, "workdir": str(work), "home": "/nowhere"}

    trusted = files_of(str(program), [], **keys)  # type: ignore[arg-type]
    found = files_of(str(program), [], **keys, touchable=(str(work),))  # type: ignore[arg-type]

    assert any(str(private) in each for each in trusted)
    assert not any(str(private) in each for each in found)
    assert str(work / "env") in found
