"""What an agent sees, by whose chat it works in: no two people share its home, and in a group it
has no more than a member may have."""

import json
import os
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from koboshi.agents.acp.language import AcpLanguage
from koboshi.app.agent_trial import run_inside
from koboshi.app.builders.agents import LocalPrograms
from koboshi.boundary.enclosure import Enclosure, Exceptions
from koboshi.boundary.probe import probe
from koboshi.config import AgentConfig, Config, GatewayConfig, McpConfig
from koboshi.config.secret import Secret
from koboshi.domain.agent import MessageKind
from koboshi.domain.ids import SessionId
from koboshi.domain.role import Role, RoleStanding
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.runner.landlock import KEYRING_CALLS, SET_CONSOLE, TYPE_INTO

OWNER = RoleStanding(role=Role.OWNER)
ANN = RoleStanding(role=Role.MEMBER, folder="people/s2")
BOB = RoleStanding(role=Role.MEMBER, folder="people/s3")
GROUP = RoleStanding(role=Role.OWNER, folder="people/s4")
"""A group in which an owner writes."""


def programs(place: Path, boundary: Boundary = Boundary.BUBBLEWRAP) -> LocalPrograms:
    workdir = place / "work"
    workdir.mkdir(exist_ok=True)
    (place / "books").mkdir(exist_ok=True)
    config = Config(
        home=place / "home",
        gateway=GatewayConfig(workdir=workdir),
        agents=(AgentConfig(name="fake", command=("sh",)), AgentConfig(name="b", command=("sh",))),
    )
    enclosure = Enclosure(
        sandbox=Sandbox.WORKSPACE,
        boundary=boundary,
        workdirs=(str(workdir),),
        kept=str(place / "kept"),
        touchable=(str(workdir),),
        exceptions=Exceptions(readable=(str(place / "books"),)),
    )
    return LocalPrograms(config=config, enclosure=enclosure)


def test_no_two_chats_of_different_people_share_a_home_or_a_folder(tmp_path: Path) -> None:
    found = [
        inside
        for standing in (OWNER, ANN, BOB, GROUP)
        for name in ("fake", "b")
        if (inside := programs(tmp_path).surroundings(name, standing)) is not None
    ]

    assert len({each.enclosure.workspace for each in found}) == 8
    assert len({each.workdir for each in found}) == 4


def test_an_agent_in_a_group_sees_no_more_when_an_owner_writes(tmp_path: Path) -> None:
    """One process serves all who write there."""
    books = str(tmp_path / "books" / "x")
    seen = {}
    for name, standing in {"owner": OWNER, "group": GROUP}.items():
        inside = programs(tmp_path).surroundings("fake", standing)
        assert inside is not None
        view = inside.enclosure.view_of("s4")
        assert view is not None
        seen[name] = view.may_read(books)

    assert seen == {"owner": True, "group": False}


def test_without_a_boundary_an_agent_works_in_chats_of_owners_alone(tmp_path: Path) -> None:
    on_host = programs(tmp_path, Boundary.NONE)

    assert not isinstance(on_host.program("fake", SessionId(1), OWNER), str)
    refused = on_host.program("fake", SessionId(4), GROUP)
    assert isinstance(refused, str)
    assert "it needs one" in refused


def test_a_login_cannot_type_into_the_terminal_that_it_runs_at(tmp_path: Path) -> None:
    """It would type what the owner's own shell reads next, outside. Nor has it the owner's keys."""
    if probe().best is Boundary.NONE or os.uname().machine not in KEYRING_CALLS:
        pytest.skip(f"no sandbox holds here, or its calls are not known: {probe().reasons}")
    config = programs(tmp_path).config
    keys = KEYRING_CALLS[os.uname().machine][0][1]
    code = f"""
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
with open("seen", "w") as file:
    for request in ({TYPE_INTO}, {SET_CONSOLE}, 0x5413):
        print(libc.ioctl(0, request, b"x" * 64), ctypes.get_errno(), file=file)
    print(libc.syscall({keys}, 0, -3, 0), ctypes.get_errno(), file=file)
"""

    assert run_inside(config, "fake", ("python3", "-I", "-c", code)) == 0

    typed, set_up, asked, key = (tmp_path / "work" / "seen").read_text().splitlines()
    assert (typed, set_up, key) == ("-1 1", "-1 1", "-1 1")
    assert asked != "-1 1", "a terminal can still be asked for its size"


def test_our_mcp_servers_are_passed_on_where_that_is_wanted_alone(tmp_path: Path) -> None:
    one = programs(tmp_path)
    files = McpConfig(name="files", command="serve", args=("x",), env=(("KEY", Secret("k")),))
    web = McpConfig(name="web", url="https://example.org/mcp", token=Secret("t"))
    off = McpConfig(name="off", command="serve", enabled=False)
    told = AgentConfig(name="a", command=("sh",), mcp=True)
    untold = AgentConfig(name="b", command=("sh",))
    config = msgspec.structs.replace(one.config, agents=(told, untold), mcp=(files, web, off))
    opened = {}
    for name in ("a", "b"):
        program = replace(one, config=config).program(name, SessionId(1), OWNER)
        assert not isinstance(program, str)
        for kind in (MessageKind.NEW, MessageKind.LOAD):
            body = AcpLanguage().opening(kind, "s", program.workdir, program.servers)
            opened[name, kind] = json.loads(body)["params"]["mcpServers"]

    for standing in (ANN, GROUP):
        program = replace(one, config=config).program("a", SessionId(1), standing)
        assert not isinstance(program, str)
        assert program.servers == (), "their secrets are the owner's"
    assert opened["b", MessageKind.NEW] == opened["b", MessageKind.LOAD] == []
    assert opened["a", MessageKind.NEW] == opened["a", MessageKind.LOAD]
    first, second = opened["a", MessageKind.NEW]
    assert (first["command"], first["args"]) == ("serve", ["x"])
    assert first["env"] == [{"name": "KEY", "value": "k"}]
    assert (second["type"], second["url"]) == ("http", "https://example.org/mcp")
    assert second["headers"] == [{"name": "Authorization", "value": "Bearer t"}]
