"""Schedules and goals by the loops that work on them, in virtual time."""

from dataclasses import dataclass, field
from pathlib import Path

import apsw
import pytest
from anyio import Event

from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.models.scripted import ScriptedModel
from koboshi.ports.model import ModelReply, OnText, Request
from tests.harness.home_file import opened
from tests.runtime.gateway import Life, Setting, living

BUSY = ModelBusy("the provider could not be reached", None)


@dataclass(slots=True)
class JudgedModel:
    """The scripted model, whose verdicts are as a test says."""

    trouble: Exception | None = None
    """What comes instead of a verdict."""
    verdict: str = ""
    """What comes as a verdict, if not that of the scripted model."""
    is_held: bool = False
    """A verdict is thought about until `go` is set."""
    asked: int = 0
    thinks: Event = field(default_factory=Event)
    go: Event = field(default_factory=Event)

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        if not request.wants_verdict:
            return await ScriptedModel().respond(request, on_text)
        self.asked += 1
        if self.is_held:
            self.thinks.set()
            await self.go.wait()
        if self.trouble is not None:
            raise self.trouble
        said = await ScriptedModel().respond(request, on_text)
        return ModelReply(text=self.verdict) if self.verdict else said


def goals(setting: Setting) -> list[tuple[str, str, int]]:
    with opened(setting.home) as connection:
        rows = connection.execute("SELECT state, rule, step FROM goals ORDER BY goal_id")
        return [(str(state), str(rule), int(str(step))) for state, rule, step in rows]


async def begins(life: Life, model: JudgedModel) -> None:
    await life.says("room", "/goal echo MORE")
    await life.until(lambda: model.asked, "it is judged")


def turns(setting: Setting) -> int:
    with opened(setting.home, apsw.SQLITE_OPEN_READONLY) as connection:
        return int(str(connection.execute("SELECT count(*) FROM turns").get))


@pytest.mark.parametrize(
    "trouble, verdict, stands",
    [
        (BUSY, "", ("judging", "answered", 1)),
        (ModelRefused("no credit"), "", ("judging", "answered", 1)),
        (RuntimeError("a bug"), "", ("judging", "answered", 1)),
        (None, "It is done, I think!", ("paused", "verdict-unreadable", 1)),
        (None, '{"verdict": "done", "reason": "it is"}', ("done", "judged", 1)),
    ],
)
async def test_a_judge_that_cannot_judge_makes_no_step_and_does_not_end_the_goal(
    home: Path, trouble: Exception | None, verdict: str, stands: tuple[str, str, int]
) -> None:
    """It never fails open. The last case shows what a verdict does."""
    model = JudgedModel(trouble=trouble, verdict=verdict)
    setting = Setting(home=home, model=model)
    async with living(setting) as life:
        await begins(life, model)
        await life.passes(30)
        assert model.asked == (1 if stands[0] == "done" else 2), "it is asked again after a wait"
        assert (goals(setting), turns(setting)) == ([stands], 1)


async def test_a_stop_while_the_judge_thinks_holds_over_restarts(home: Path) -> None:
    """Issue 18, must show: the verdict comes too late, and three more lives are silent."""
    model = JudgedModel(is_held=True)
    setting = Setting(home=home, model=model)
    async with living(setting) as life:
        await begins(life, model)
        await life.says("room", "/stop")
        model.go.set()
        await life.passes(15)
        assert goals(setting) == [("paused", "by-person", 1)]
        await life.rests()
    told = setting.platform.texts("room")
    for _ in range(3):
        setting.time_passes(minutes=90)
        async with living(setting) as life:
            await life.passes(15)
    assert goals(setting) == [("paused", "by-person", 1)]
    assert (turns(setting), setting.platform.texts("room")) == (1, told)


async def test_a_reminder_is_told_at_its_time_once_by_the_timer(home: Path) -> None:
    setting = Setting(home=home)
    async with living(setting) as life:
        await life.says("room", "/remind in 2 minutes tea")
        await life.until(lambda: setting.platform.texts("room"), "it is ordered")
        await life.passes(110)
        assert len(setting.platform.texts("room")) == 1
        await life.passes(20)
        assert setting.platform.texts("room")[1:] == ["Reminder: tea"]
    async with living(setting) as life:
        await life.passes(15)
    assert setting.platform.texts("room")[1:] == ["Reminder: tea"]
