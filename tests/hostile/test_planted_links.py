"""Issue 15, V11: a download goes where it belongs, whatever was planted there; and nothing that
the gateway itself reads leads out by a link of the agent."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.app.boundary import enclosure_of
from koboshi.app.builders.tools import skills_of
from koboshi.boundary.enclosure import ON_HOST
from koboshi.boundary.probe import Probe
from koboshi.channels.common.received import receiving
from koboshi.config import Config
from koboshi.config.loading import load
from koboshi.domain.approval import seal_of
from koboshi.domain.errors import FileNotHad
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.ports.tool import ToolFailed
from koboshi.tools.asking import Asking
from tests.fakes.commands import exited
from tests.fakes.files import CONTEXT
from tests.harness.terminals import Terminal

PLACE = "received/telegram-main/7-10-notes.txt"


def keep(root: Path, content: bytes = b"new") -> None:
    with receiving(root, PLACE) as received:
        received.file.write(content)
        received.keep()


def test_a_planted_part_is_not_followed(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("precious")
    folder = tmp_path / "work" / "received" / "telegram-main"
    folder.mkdir(parents=True)
    (folder / ".7-10-notes.txt.part").symlink_to(canary)
    (folder / "7-10-notes.txt").symlink_to(canary)

    keep(tmp_path / "work")

    assert canary.read_text() == "precious"
    assert (folder / "7-10-notes.txt").read_text() == "new"
    assert not (folder / "7-10-notes.txt").is_symlink()
    assert os.listdir(folder) == ["7-10-notes.txt"]


@pytest.mark.parametrize("link", ["received", "received/telegram-main"])
def test_a_planted_folder_is_not_entered(tmp_path: Path, link: str) -> None:
    elsewhere, work = tmp_path / "elsewhere", tmp_path / "work"
    elsewhere.mkdir()
    (work / link).parent.mkdir(parents=True)
    (work / link).symlink_to(elsewhere)

    with pytest.raises(FileNotHad, match="stands in the way"):
        keep(work)

    assert list(elsewhere.rglob("*")) == []


@pytest.mark.parametrize("place", ["../out", "received/../../out", "/etc/out"])
def test_a_place_outside_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(FileNotHad), receiving(tmp_path / "work", place):
        pass

    assert not (tmp_path / "out").exists()


def test_what_is_not_whole_leaves_nothing(tmp_path: Path) -> None:
    with receiving(tmp_path, PLACE) as received:
        received.file.write(b"half")

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_planted_skill_leads_nowhere(tmp_path: Path) -> None:
    """Skills may lie in the work folder. There a link is no longer the owner's word."""
    skills = tmp_path / "work" / "skills"
    (skills / "news").mkdir(parents=True)
    (skills / "news" / "SKILL.md").write_text("Read them.")
    (tmp_path / "shelf" / "kept").mkdir(parents=True)
    (tmp_path / "shelf" / "kept" / "SKILL.md").write_text("Keep it.")
    config = load_with(tmp_path, f'[memory]\nskills = "{skills}"')
    (tmp_path / "home" / "web-token").write_text("precious")
    (skills / "x").symlink_to(tmp_path / "home")
    (skills / "kept").symlink_to(tmp_path / "shelf" / "kept")

    assert skills_of(config).read("x", "web-token") is None
    assert [each.name for each in skills_of(config).all()] == ["news"]
    owners = load_with(tmp_path, f'[memory]\nskills = "{tmp_path / "linked"}"')
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "kept").symlink_to(tmp_path / "shelf" / "kept")
    assert skills_of(owners).read("kept", "") == "Keep it."


@pytest.mark.parametrize("key", ["writable", "cwd"])
def test_what_an_agent_of_another_maker_may_write_shows_no_command_more(
    tmp_path: Path, key: str
) -> None:
    shared, person = tmp_path / "shared", tmp_path / "person"
    shared.mkdir()
    person.mkdir()
    (shared / "books").symlink_to(person)
    named = f'["{shared}"]' if key == "writable" else f'"{shared}"'
    config = load_with(
        tmp_path,
        f'[tools]\nreadable = ["{shared}/books"]\n'
        f'[agents.other]\ncommand = ["true"]\n{key} = {named}',
    )
    enclosure = enclosure_of(config, {}, Probe(bubblewrap="", landlock=""))
    view = None if enclosure is None else enclosure.view_of("s1")

    assert view is not None
    assert not view.may_read(str(person))


async def test_a_command_outside_runs_where_the_person_was_shown(tmp_path: Path) -> None:
    """The agent makes links in the work folder. The card names where they lead, and a yes counts
    for that place alone."""
    work, person, other = (tmp_path / name for name in ("work", "person", "other"))
    for folder in (work, person, other):
        folder.mkdir()
    (work / "build").symlink_to(person)
    terminal = Terminal()
    asking = Asking(sandbox=Sandbox.WORKSPACE, boundary=Boundary.BUBBLEWRAP)
    enclosure = replace(ON_HOST, boundary=Boundary.BUBBLEWRAP, sandbox=Sandbox.WORKSPACE)
    tool = replace(terminal.tool, asking=asking, enclosure=enclosure, workdir=str(work))
    asked = {"command": "rm -rf letters", "workdir": "build", "outside": True, "reason": "clean"}
    arguments = json.dumps(asked)

    approval = await tool.approval_of(arguments)
    assert f"in {person}?" in approval.lead
    sealed = replace(CONTEXT, seal=seal_of("terminal", arguments, approval))
    (work / "build").unlink()
    (work / "build").symlink_to(other)
    with pytest.raises(ToolFailed, match="has changed since it was allowed"):
        await tool.run(arguments, sealed)

    (work / "build").unlink()
    (work / "build").symlink_to(person)
    terminal.runners.ends_at_start = exited()
    await tool.run(arguments, sealed)
    assert terminal.row().workdir == str(person)


def load_with(root: Path, text: str) -> Config:
    home = root / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "koboshi.toml").write_text(f'[gateway]\nworkdir = "{root / "work"}"\n{text}\n')
    return load(home, None, {"HOME": str(root)}, needs_secrets=False)
