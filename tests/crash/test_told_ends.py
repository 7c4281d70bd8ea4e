"""A background job that ends while a turn of a real gateway is open: the person hears of it once,
by the model or by the gateway, whatever process is killed."""

from pathlib import Path

import pytest

from tests.crash.stories import CHAT, WAITS, run, script
from tests.harness.holds import MODEL
from tests.harness.invariants import check_rows
from tests.harness.jobs import UNTIL_GO, Scene, process, saying, scene, terminal
from tests.harness.polling import until
from tests.harness.rows import glance

TOPIC = "topic"
NOTICE = "Background process p1"
JOB = terminal(f"{UNTIL_GO}; exit 3", notify_on_complete=True)
HOLDS_ON: dict[str, object] = {"calls": [run(WAITS.format("on"))]}
"""A turn that works until the file `on` is there."""


async def ends_inside_a_turn(place: Scene, *behind: dict[str, object]) -> None:
    """A job is left running in a topic, and ends while the next turn there is at work. The model of
    that turn goes on with `behind`."""
    person = place.person(CHAT)
    await place.says(CHAT, script(JOB, {"text": "left"}), thread=TOPIC)
    await person.hears("left")
    await place.says(CHAT, script(HOLDS_ON, *behind), thread=TOPIC)
    await until(lambda: _is_at_work(place), "the turn is at work")
    place.touch()
    await place.settles(1, "exited")
    place.touch("on")


def _is_at_work(place: Scene) -> bool:
    calls = glance(place.gateway.home).of("calls", tool="terminal")
    return [call["finished_ms"] is None for call in calls if call["started_ms"]] == [False, True]


@pytest.mark.parametrize("kills", [False, True], ids=["alive", "killed"])
async def test_an_end_that_the_answer_does_not_name_is_told_by_the_gateway(
    home: Path, kills: bool
) -> None:
    """Issue 13, B11: once, in the topic of the job, behind the answer; also when the gateway is
    killed after the model was told, and once more after the answer."""
    async with scene(home) as place:
        with place.hold(MODEL) as thinks:
            thinks.let(3)
            await ends_inside_a_turn(place, {"text": "four"})
            person = place.people[CHAT]
            await place.comes_to(thinks, times=4)
            if kills:
                place.gateway.kill()
                await place.restarts()
        await person.hears("four")
        told = await person.hears(NOTICE)
        assert (told.kind, told.fields["thread"]) == ("notice", TOPIC)
        assert "exited with code 3" in told.fields["text"]
        if kills:
            place.gateway.kill()
            await place.restarts()
        await place.says(CHAT, "echo last", thread=TOPIC)
        await person.hears("last")
        heard = person.heard()
        rows = place.rows()

    check_rows(rows)
    assert len(saying(person, NOTICE)) == 1
    assert heard.index("four") < heard.index(told.fields["text"]) < heard.index("last")


@pytest.mark.parametrize(
    "behind",
    [({"text": "four, and p1 failed"},), (process("poll"), {"text": "four"})],
    ids=["named", "looked"],
)
async def test_an_end_that_the_model_tells_or_has_looked_at_is_not_told_again(
    home: Path, behind: tuple[dict[str, object], ...]
) -> None:
    """Issue 13, B11."""
    async with scene(home) as place:
        await ends_inside_a_turn(place, *behind)
        person = place.people[CHAT]
        await person.hears("four")
        await place.says(CHAT, "echo last", thread=TOPIC)
        await person.hears("last")
        rows = place.rows()

    check_rows(rows)
    assert saying(person, NOTICE) == []
    (report,) = rows.of("inbox", kind="report")
    assert report["state"] == "attached"


@pytest.mark.parametrize("way", ["failed", "stopped"])
async def test_an_end_in_a_turn_without_an_answer_is_told_by_the_gateway(
    home: Path, way: str
) -> None:
    """Issue 13, B11: the model was told, and the person was not."""
    async with scene(home) as place:
        with place.hold(MODEL) as thinks:
            thinks.let(3)
            await ends_inside_a_turn(place, {"refuse": "it will not"})
            person = place.people[CHAT]
            await place.comes_to(thinks, times=4)
            if way == "stopped":
                await place.says(CHAT, "/stop", thread=TOPIC)
        await person.hears(NOTICE)
        place.gateway.kill()
        await place.restarts()
        await place.says(CHAT, "echo last", thread=TOPIC)
        await person.hears("last")
        rows = place.rows()

    check_rows(rows)
    assert rows.turns[1]["state"] == ("failed" if way == "failed" else "stopped")
    assert len(saying(person, NOTICE)) == 1
