"""A model provider that is down for a while, and a gateway that is killed meanwhile."""

from functools import partial
from pathlib import Path

from tests.crash.telling import checked
from tests.fakes.model_servers.server import Answer
from tests.harness.lives import DOWN_S, KILLED_BY_HAND
from tests.harness.modelled import Modelled, modelled, modelled_by
from tests.harness.moved_clock import Wall
from tests.harness.polling import until
from tests.harness.rows import read_rows
from tests.models.forms import OPENAI

TOLD = "The model provider does not answer. I keep trying for up to 10 minutes. /stop ends it."


def down(it: Modelled, seconds: int | None = None) -> Answer:
    named = {} if seconds is None else {"Retry_After": f"{seconds}"}
    return it.form.error(503, "down for maintenance", **named)


async def test_a_provider_that_is_down_for_several_tries_is_ridden_out(home: Path) -> None:
    """Issue 12, B13: the same request again and again, and one answer. No notice is sent of a
    failure of a few seconds."""
    async with modelled(home, OPENAI) as it:
        it.server.answers += [down(it), down(it), down(it), it.says("here I am")]
        await it.person.say("are you there?", "1")
        await it.person.hears("here I am")
        rows = await checked(it.life)

    assert it.person.heard()[:-1] == ["here I am"]
    assert len(it.server.requests) == 4
    assert rows.one("turns")["state"] == "done"


async def test_an_outage_across_kills_is_told_once_and_answered_once(
    home: Path, tmp_path: Path
) -> None:
    """Issue 12, B13: killed twice while the provider is down. What was waited is kept, the person
    is told once, and when the provider is back they get one answer."""
    wall = Wall(tmp_path / "ahead")
    async with modelled_by(wall, home, OPENAI) as it:
        it.server.answers += [down(it, DOWN_S), down(it, DOWN_S), down(it), it.says("here I am")]
        await it.person.say("are you there?", "1")
        await it.person.hears(TOLD)
        for tries in (1, 2):
            await until(partial(_postponed, it, tries), "the wait is stored")
            await it.end(KILLED_BY_HAND)
            (turn,) = read_rows(home).turns
            assert (turn["model_tries"], turn["model_failure"] is not None) == (tries, True)
            assert turn["model_waited_ms"] >= tries * DOWN_S * 1000
            wall.move(seconds=DOWN_S)
            it.gateway.start()
        await it.person.hears("here I am")
        rows = await checked(it.life)

    assert it.person.heard()[:-1] == [TOLD, "here I am"]
    assert len(it.server.requests) == 4
    (turn,) = rows.turns
    assert (turn["state"], turn["recoveries"], turn["crash_streak"]) == ("done", 0, 0)
    assert not rows.of("steps", kind="note")


async def test_an_outage_is_explained_and_can_be_stopped(home: Path) -> None:
    """Issue 12, B13: `/why` says how long it has tried and what the provider said; `/stop` ends
    it, and the model is not asked again."""
    async with modelled(home, OPENAI) as it:
        it.server.answers += [down(it, 300)]
        await it.person.say("are you there?", "1")
        await it.person.hears(TOLD)
        await until(lambda: _postponed(it), "the wait is stored")
        await it.person.say("/why", "2")
        why = (await it.person.hears("Why: ")).fields["text"]
        await it.person.say("/stop", "3")
        await it.person.hears("Stopped: «are you there?»")
        rows = await checked(it.life)

    assert "the model provider has not answered for" in why
    assert "the provider is not available at the moment" in why
    assert len(it.server.requests) == 1
    assert rows.one("turns")["event"] == "cut"


async def test_a_reminder_is_told_at_its_time_while_the_provider_is_down(home: Path) -> None:
    """Issue 18: it is plain text. Neither the model nor the turn that waits for it is asked."""
    async with modelled(home, OPENAI) as it:
        it.server.answers += [down(it, 300)]
        await it.person.say("are you there?", "1")
        await it.person.hears(TOLD)
        await it.person.say("/remind in 1 second the tea is ready", "2")
        await it.person.hears("Reminder: the tea is ready")
        await it.person.say("/stop", "3")
        rows = await checked(it.life)

    assert len(it.server.requests) == 1
    assert len(rows.of("outbox", text="Reminder: the tea is ready")) == 1
    assert len(rows.turns) == 1


def _postponed(it: Modelled, times: int = 1) -> bool:
    """Whether the turn was set down so often, as far as the person's program was told."""
    return [event.fields.get("event") for event in it.person.events].count("postponed") >= times
