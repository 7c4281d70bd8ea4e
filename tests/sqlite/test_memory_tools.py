"""`memory`, `recall` and `skill` as the model calls them."""

import json
from datetime import UTC
from pathlib import Path

import pytest

from koboshi.domain.ids import CallId
from koboshi.domain.memory import Scope, ScopeKind
from koboshi.domain.route import Route
from koboshi.domain.talk_elsewhere import FOLDER, SaidElsewhere, file_of, lines_of
from koboshi.domain.transcript import Effect, Need
from koboshi.domain.turn import Claim
from koboshi.ports.tool import Tool, ToolContext, ToolFailed
from koboshi.runtime.erasing import Erasing
from koboshi.tools.elsewhere import TalksElsewhere
from koboshi.tools.memory import memory_tool, recall_tool, skill_tool
from koboshi.tools.skills import SkillFolder
from tests.harness.homes import WEB, Home
from tests.harness.open_files import open_below


async def run(tool: Tool, claim: Claim, call: str = "1.0", **arguments: object) -> str:
    context = ToolContext(claim=claim, call_id=CallId(call), route=Route(channel=WEB, chat="ann"))
    said = json.dumps(arguments)
    assert tool.complaint_about(said) is None
    assert tool.need_of(said) is Need.NOBODY
    return (await tool.run(said, context)).text


async def test_a_call_that_is_run_again_after_a_kill_says_the_same(home: Home) -> None:
    claim = await home.work_on()
    tool = memory_tool(home.store.memory)
    assert tool.effect_of("{}") is Effect.REPEATABLE
    first = await run(tool, claim, action="add", target="user", content="likes tea")
    assert await run(tool, claim, action="add", target="user", content="likes tea") == first
    assert "likes tea" in first
    with pytest.raises(ToolFailed, match="no entry has"):
        await run(tool, claim, "1.1", action="remove", old_text="coffee")
    await run(tool, claim, "1.2", action="replace", old_text="tea", content="likes mate")
    await run(tool, claim, "1.3", action="remove", old_text="likes mate")
    (view,) = await home.store.memory.views(9)
    assert (view.entries, view.revision) == ((), 3)
    assert tool.complaint_about('{"action": "drop"}') is not None


async def test_recall_gives_passages_with_their_times(home: Home) -> None:
    await home.answer(await home.work_on("the plum is ripe"), "good to know about the plum")
    await home.deliver()
    claim = await home.work_on("what was ripe?")
    tool = recall_tool(home.store.memory, lambda: UTC)
    assert tool.effect_of("{}") is Effect.NONE
    told = await run(tool, claim, query="plum")
    found = json.loads(told)["found"]
    assert [(each["by"], each["said"]) for each in found] == [
        ("you", "good to know about the plum"),
        ("person", "the plum is ripe"),
    ]
    assert "nothing found" in await run(tool, claim, query="pear")


async def test_recall_finds_what_its_person_said_with_another_gateway(
    home: Home, tmp_path: Path
) -> None:
    """Issue 21: read-only, for this person alone, never in a group, and gone when it is erased."""
    await home.answer(await home.work_on("the plum is ripe"), "a plum")
    await home.deliver()
    claim = await home.work_on("what was ripe?")
    scope = (await home.store.memory.look(claim)).scope
    for place, person, words in (
        (scope.channel, scope.name, f"my plum {'and ' * 2_000}"),
        (scope.channel, "eve", "the plum of eve"),
    ):
        file = tmp_path / file_of("hermes", place, person)
        file.parent.mkdir(exist_ok=True)
        said = SaidElsewhere(gateway="", at_ms=1_780_000_000_000, is_persons=True, text=words)
        file.write_text(f"no line\n{lines_of([said])}[1, 2, 3]\n")
    tool = recall_tool(home.store.memory, lambda: UTC, TalksElsewhere(home=tmp_path))

    *own, before = json.loads(await run(tool, claim, query="plum"))["found"]
    assert len(own) == 2
    assert (before["from"], before["by"]) == ("Hermes", "person")
    assert before["on"] == "2026-05-28"
    assert before["said"].startswith("my plum and")
    assert len(before["said"]) < 700
    assert len(json.loads(await run(tool, claim, query="plum", limit=2))["found"]) == 2
    group = Scope(channel=scope.channel, kind=ScopeKind.CHAT, name=scope.name)
    assert TalksElsewhere(home=tmp_path).find(group, "plum", 9) == ()

    await home.store.erasures.erase(scope.channel, scope.name, "operator")
    assert await Erasing(store=home.store, workdir=tmp_path / "work", home=tmp_path).finish()
    assert TalksElsewhere(home=tmp_path).find(scope, "plum", 9) == ()
    left = [each.name for each in (tmp_path / FOLDER).iterdir()]
    assert left == [Path(file_of("hermes", scope.channel, "eve")).name]


async def test_a_skill_is_read_by_its_name(home: Home, tmp_path: Path) -> None:
    (tmp_path / "skills" / "news").mkdir(parents=True)
    (tmp_path / "skills" / "news" / "SKILL.md").write_text("Read them.\x1b[31m")
    claim = await home.work_on()
    tool = skill_tool(SkillFolder(folder=tmp_path / "skills"))
    assert await run(tool, claim, name="news") == "Read them."
    with pytest.raises(ToolFailed, match="skills: news"):
        await run(tool, claim, name="other")


async def test_a_folder_of_a_skill_is_no_file_and_costs_no_descriptor(
    home: Home, tmp_path: Path
) -> None:
    (tmp_path / "skills" / "news" / "notes").mkdir(parents=True)
    (tmp_path / "skills" / "news" / "SKILL.md").write_text("Read them.")
    claim = await home.work_on()
    tool = skill_tool(SkillFolder(folder=tmp_path / "skills"))
    await run(tool, claim, name="news")
    for _ in range(5):
        with pytest.raises(ToolFailed):
            await run(tool, claim, name="news", file="notes")
    assert open_below(tmp_path / "skills") == 0


@pytest.mark.parametrize("file", ["a\0b", "loop", "../../secret", "x" * 500])
async def test_odd_names_of_files_and_links_in_a_circle_keep_no_skill_away(
    home: Home, tmp_path: Path, file: str
) -> None:
    """Skills are listed in each turn of an owner: what cannot be read is none."""
    news = tmp_path / "skills" / "news"
    news.mkdir(parents=True)
    (news / "SKILL.md").write_text("Read them.")
    (news / "loop").symlink_to("loop")
    (tmp_path / "skills" / "circle").symlink_to("circle")
    (tmp_path / "secret").write_text("canary")
    claim = await home.work_on()
    tool = skill_tool(SkillFolder(folder=tmp_path / "skills"))
    with pytest.raises(ToolFailed, match=r"skills: news$"):
        await run(tool, claim, name="news", file=file)
