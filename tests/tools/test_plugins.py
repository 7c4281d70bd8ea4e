"""Tools of other distributions: no act of theirs stops the gateway or the other tools."""

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import anyio.lowlevel
import pytest
from anyio import create_task_group, sleep
from msgspec import Struct
from structlog.testing import capture_logs

from koboshi.domain.errors import StoreFailed
from koboshi.domain.phrases import YES_NO
from koboshi.domain.transcript import Effect, Need
from koboshi.plugin import DeclaredTool, Tool, ToolContext, ToolFailed, ToolSetting
from koboshi.ports.plugin import Plugin
from koboshi.ports.tool import ToolAnswer
from koboshi.tools.guarded import GuardedTool, guarded
from koboshi.tools.pause import PAUSE
from koboshi.tools.plugins import PluginTools
from koboshi.tools.registry import Toolbox
from tests.harness.tool_context import CONTEXT

QUICK = {"load_s": 5, "settle_s": 5, "reach_s": 5, "call_s": 5}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A traceback takes long to be drawn."""
    with capture_logs():
        yield


class Nothing(Struct, forbid_unknown_fields=True):
    pass


async def act(_: Nothing, __: ToolContext) -> str:
    return "acted"


def a_tool(name: str = "act", effect: Effect = Effect.ONCE) -> DeclaredTool[Nothing]:
    return DeclaredTool(name=name, description="Acts.", takes=Nothing, does=act, effect=effect)


def a_plugin(name: str, load: Callable[[], object], distribution: str = "acts 1.0") -> Plugin:
    return Plugin(name=name, distribution=distribution, load=load)


def gives(made: object) -> Callable[[], object]:
    return lambda: made


def raises(error: BaseException) -> Callable[..., Any]:
    def load(*_: object) -> object:
        raise error

    return load


def source(*plugins: Plugin, **options: Any) -> PluginTools:
    return PluginTools(
        lambda: plugins,
        lambda name: ToolSetting(workdir="/w", environment={}, settings={"for": name}),
        **(QUICK | options),
    )


async def loaded(*plugins: Plugin, **options: Any) -> PluginTools:
    plugin_tools = source(*plugins, **options)
    await plugin_tools.load()
    return plugin_tools


def names(plugin_tools: PluginTools) -> list[str]:
    return [tool.spec.name for tool in plugin_tools.tools()]


# ── what an entry point may give ────────────────────────────────────────────────────────────────


class Made:
    """A class whose objects are tools: it is called to make one."""

    def __new__(cls, setting: ToolSetting) -> Any:
        return a_tool(f"made_{setting.settings['for']}")


@pytest.mark.parametrize(
    "made, expected",
    [
        (a_tool(), ["act"]),
        (lambda setting: a_tool(f"act_{setting.settings['for']}"), ["act_x"]),
        (lambda _: [a_tool("one"), a_tool("two")], ["one", "two"]),
        (lambda _: (a_tool(name) for name in ("one", "two")), ["one", "two"]),
        (lambda _: (), []),
        (Made, ["made_x"]),
    ],
    ids=["tool", "callable", "several", "generator", "none", "class"],
)
async def test_an_entry_point_gives_a_tool_or_makes_some(made: object, expected: list[str]) -> None:
    tools = await loaded(a_plugin("x", gives(made)))

    assert names(tools) == expected


async def test_a_tool_of_a_plugin_runs_like_any_other() -> None:
    tools = await loaded(a_plugin("x", gives(a_tool())))
    tool = await Toolbox([PAUSE], [tools]).reach("act")

    assert tool is not None
    assert await tool.run("{}", CONTEXT) == ToolAnswer(text="acted")
    assert (tool.effect_of("{}"), tool.need_of("{}")) == (Effect.ONCE, Need.NOBODY)
    assert tool.complaint_about('{"x": 1}') == "`x` is not an argument of this tool"


# ── what is left out, and the others that work ──────────────────────────────────────────────────


@dataclass
class Wordless:
    spec: object = None


def described(**fields: object) -> Any:
    class Spec:
        name, description, parameters = "act", "", "{}"

    for field, value in fields.items():
        setattr(Spec, field, value)
    return lambda _: Broken(spec=Spec)


@dataclass
class Broken:
    """A tool each of whose answers can be replaced."""

    spec: Any = a_tool().spec
    effect: Callable[[str], Any] = lambda _: Effect.ONCE
    need: Callable[[str], Any] = lambda _: Need.NOBODY
    complaint: Callable[[str], Any] = lambda _: None
    question: Callable[[str], Any] = lambda _: ("May I?", YES_NO)
    work: Callable[[], Any] = lambda: ToolAnswer(text="done")

    def effect_of(self, arguments: str) -> Any:
        return self.effect(arguments)

    def need_of(self, arguments: str) -> Any:
        return self.need(arguments)

    def complaint_about(self, arguments: str) -> Any:
        return self.complaint(arguments)

    def question_of(self, arguments: str) -> Any:
        return self.question(arguments)

    async def run(self, arguments: str, context: ToolContext) -> Any:
        return self.work()

    async def resume(self, arguments: str, context: ToolContext) -> Any:
        return self.work()


@pytest.mark.parametrize(
    "load, reason",
    [
        (raises(ImportError("no module named x")), "no module named x"),
        (raises(SystemExit(3)), "SystemExit"),
        (gives(raises(RuntimeError("cannot make it"))), "cannot make it"),
        (gives(5), "neither a tool nor something that makes one"),
        (gives(lambda _: None), "it made a NoneType, not a tool"),
        (gives(lambda _: [5]), "it made a int, not a tool"),
        (gives(lambda _: Wordless()), "it made a Wordless, not a tool"),
        (gives(lambda _: [a_tool(f"t{n}") for n in range(200)]), "it made 200 tools"),
        (gives(described(name="Bad Name")), '"Bad Name" cannot be the name of a tool'),
        (gives(described(name=None)), "not all texts"),
        (gives(described(parameters="[]")), "not a JSON schema"),
        (gives(described(description="x" * 20_000)), "too long"),
        (gives(lambda _: a_tool("pause")), 'the name "pause" is taken'),
        (gives(lambda _: a_tool("first")), 'the name "first" is taken'),
    ],
)
async def test_one_that_cannot_be_used_is_left_out_with_a_warning(
    load: Callable[[], object], reason: str
) -> None:
    """It names the distribution, the entry point and the remedy; those around it work."""
    with capture_logs() as lines:
        tools = await loaded(
            a_plugin("a", gives(a_tool("first"))),
            a_plugin("b", load, "broken-thing 2.0"),
            a_plugin("c", gives(a_tool("last"))),
            is_taken=lambda name: name == "pause",
        )

    assert names(tools) == ["first", "last"]
    (line,) = [line for line in lines if line["event"] == "plugin_left_out"]
    assert line["log_level"] == "warning"
    assert (line["distribution"], line["entry_point"]) == ("broken-thing 2.0", "b")
    assert reason in line["reason"]
    assert "uninstall broken-thing 2.0" in line["remedy"]


async def test_one_that_hangs_does_not_keep_the_others_waiting() -> None:
    def hang() -> object:
        time.sleep(1)  # noqa: TID251  (as a bad module would)
        return a_tool("late")

    with capture_logs() as lines:
        tools = await loaded(a_plugin("a", hang), a_plugin("b", gives(a_tool("last"))), load_s=0.05)

    assert names(tools) == ["last"]
    assert any("not loaded within 0.05 seconds" in line.get("reason", "") for line in lines)


async def test_metadata_that_cannot_be_read_leaves_the_gateway_without_plugins() -> None:
    tools = PluginTools(raises(OSError("torn")), lambda _: ToolSetting(workdir="", environment={}))
    await tools.load()

    assert (tools.tools(), tools.find("act")) == ((), None)


# ── which ones are used, and in which order ─────────────────────────────────────────────────────


async def test_no_one_looks_for_plugins_that_are_switched_off() -> None:
    tools = PluginTools(
        raises(AssertionError("a person looked")),
        lambda _: ToolSetting(workdir="", environment={}),
        only=False,
    )
    await tools.load()
    await tools.settle()

    assert tools.find("act") is None
    assert await tools.reach("act") is None


async def test_only_those_in_the_list_are_loaded_and_missing_ones_are_named() -> None:
    with capture_logs() as lines:
        tools = await loaded(
            a_plugin("a", gives(a_tool("a"))),
            a_plugin("b", raises(AssertionError("it was loaded"))),
            only=("a", "z"),
        )

    assert names(tools) == ["a"]
    assert [line["entry_points"] for line in lines if line["event"] == "plugins_missing"] == [["z"]]


async def test_of_two_with_one_name_the_same_one_has_it_whatever_the_order() -> None:
    first = a_plugin("a", gives(a_tool()), "aaa 1")
    second = a_plugin("a", gives(a_tool(effect=Effect.NONE)), "bbb 1")
    for order in ((first, second), (second, first)):
        tool = (await loaded(*order)).find("act")
        assert tool is not None
        assert tool.effect_of("{}") is Effect.ONCE


# ── while they are being loaded ─────────────────────────────────────────────────────────────────


async def test_until_they_are_loaded_a_tool_is_judged_as_the_most_dangerous() -> None:
    tools = source(a_plugin("a", gives(a_tool(effect=Effect.NONE))))
    before = tools.find("act")
    assert before is not None
    assert before.effect_of("{}") is Effect.ONCE
    with pytest.raises(ToolFailed, match="it was not started"):
        await before.run("{}", CONTEXT)
    await tools.load()

    after = tools.find("act")
    assert after is not None
    assert after.effect_of("{}") is Effect.NONE
    assert tools.find("nothing") is None


async def test_a_call_and_the_model_wait_until_they_are_loaded() -> None:
    tools = source(a_plugin("a", gives(a_tool())))
    seen: list[object] = []

    async def wait() -> None:
        await tools.settle()
        seen.append(names(tools))
        seen.append(isinstance(await tools.reach("act"), GuardedTool))
        seen.append(await tools.reach("nothing"))

    async with create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        assert seen == []
        await tools.load()

    assert seen == [["act"], True, None]


async def test_a_call_does_not_wait_for_ever() -> None:
    tools = source(settle_s=0.01, reach_s=0.01)
    await tools.settle()

    with pytest.raises(ToolFailed, match="it was not started"):
        await tools.reach("act")


# ── a tool that breaks ──────────────────────────────────────────────────────────────────────────


def guard(**answers: Any) -> GuardedTool:
    tool: Tool = Broken(**answers)
    return guarded(tool, "broken", seconds_max=0.05)


WRONG: Sequence[Callable[..., Any]] = (
    raises(RuntimeError("broken")),
    raises(SystemExit(1)),
    raises(StoreFailed("not yours to say")),
    lambda *_: 5,
)
HOW = ["raises", "leaves", "fails the store", "a number"]


@pytest.mark.parametrize("wrong", WRONG, ids=HOW)
def test_a_broken_judgement_counts_as_the_strictest(wrong: Callable[..., Any]) -> None:
    assert guard(effect=wrong).effect_of("{}") is Effect.ONCE
    assert guard(need=wrong).need_of("{}") is Need.APPROVAL
    assert "could not check the arguments" in str(guard(complaint=wrong).complaint_about("{}"))


def test_a_plain_text_is_no_effect() -> None:
    """It would be stored as one, and be something else to a reader that compares it."""
    assert guard(effect=lambda _: "none").effect_of("{}") is Effect.ONCE


@pytest.mark.parametrize(
    "wrong", [*WRONG, lambda _: ("May I?", ["yes"]), lambda _: (5, YES_NO), lambda _: ("only one",)]
)
def test_a_broken_question_is_replaced_by_a_plain_one(wrong: Callable[..., Any]) -> None:
    text, choices = guard(question=wrong).question_of('{"a": 1}')

    assert text == "May I use act with this?"
    assert choices == YES_NO


@pytest.mark.parametrize("member", ["run", "resume"])
@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize("wrong", WRONG, ids=HOW)
async def test_a_call_that_breaks_is_of_unknown_outcome_unless_it_does_no_harm(
    member: str, effect: Effect, wrong: Callable[..., Any]
) -> None:
    tool = guard(effect=lambda _: effect, work=wrong)
    work = tool.run if member == "run" else tool.resume
    if effect in (Effect.NONE, Effect.REPEATABLE):
        with pytest.raises(ToolFailed, match="it broke while it ran"):
            await work("{}", CONTEXT)
        return

    answer = await work("{}", CONTEXT)

    assert answer.is_unknown
    assert "it broke while it ran" in answer.text


@pytest.mark.parametrize("effect", Effect)
async def test_a_call_that_wants_descriptors_is_taken_up_if_it_can_be(effect: Effect) -> None:
    """Issue 12, A4: the want passes, so a call that can be taken up by its id is, and so is one
    that does no harm when it runs again."""
    want = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    tool = guard(effect=lambda _: effect, work=raises(want))
    if effect is not Effect.ONCE:
        with pytest.raises(OSError, match="open files"):
            await tool.run("{}", CONTEXT)
        return

    assert (await tool.run("{}", CONTEXT)).is_unknown


async def test_a_tool_may_say_that_it_failed() -> None:
    with pytest.raises(ToolFailed, match="no paper"):
        await guard(work=raises(ToolFailed("no paper"))).run("{}", CONTEXT)


async def test_a_call_that_takes_too_long_is_broken_off() -> None:
    async def forever(_: Nothing, __: ToolContext) -> str:
        await sleep(60)
        return "never"

    slow = DeclaredTool(name="slow", description="", takes=Nothing, does=forever)
    answer = await guarded(slow, "slow", seconds_max=0.01).run("{}", CONTEXT)

    assert answer.is_unknown
    assert "longer than 0.01 seconds" in answer.text


@pytest.mark.parametrize("said", ["done", ToolAnswer(text="done", exits_read=(5,))])  # type: ignore[arg-type]
async def test_a_plain_text_is_a_result_and_processes_are_not_theirs_to_read(said: object) -> None:
    assert await guard(work=lambda: said).run("{}", CONTEXT) == ToolAnswer(text="done")
