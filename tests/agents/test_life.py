"""The life of agents: stopped, begun anew, idle, too many."""

import json
from functools import partial

from anyio import create_task_group

from tests.agents.agency import Agency
from tests.harness.polling import until


async def test_a_stop_cancels_the_agent_and_it_stays_stopped(agency: Agency) -> None:
    agency.start()
    runs = json.dumps({"command": "sleep 600"})
    await agency.say("say a", f"ask terminal/create {runs}", "wait go", "say b")
    await agency.until_done("wait go")
    alive = "SELECT 1 FROM processes WHERE command = 'sleep 600' AND ended_ms IS NULL"
    assert agency.rows(alive)

    await agency.person().say("/stop", "s1")
    await agency.until_done("stop 1 cancelled")
    await until(lambda: not agency.rows(alive), "its terminal is ended", otherwise=agency.told)
    await agency.say("say c", key="k2")

    assert await agency.until_answered() == ["c"]
    assert "prompt 2 first" in agency.log
    assert len(set(agency.pids)) == 1, "the same process goes on"
    await agency.person().say("/new", "s2")
    await until(lambda: not agency.agent_pids(), "the agent is ended", otherwise=agency.told)
    await agency.say("say d", key="k3")
    assert await agency.until_answered(2) == ["c", "d"]
    assert [line for line in agency.log if line.startswith(("new", "load"))] == [
        "new session-1",
        "new session-2",
    ]
    assert agency.is_right()


async def test_an_agent_that_does_not_hear_is_ended_with_its_group(agency: Agency) -> None:
    agency.options = ("--deaf",)
    agency.start()
    await agency.say("wait go")
    await agency.until_done("wait go")

    await agency.person().say("/stop", "s1")
    await until(lambda: not agency.agent_pids(), "the agent is ended", otherwise=agency.told)
    await agency.say("say c", key="k2")

    assert await agency.until_answered() == ["c"]
    assert "load session-1" in agency.log


async def test_an_idle_agent_is_ended_and_loaded_again(agency: Agency) -> None:
    agency.more = "max_agents = 1"
    agency.idle_minutes = 0.001
    agency.start()
    await agency.say("say a")
    await agency.until_answered()
    await until(lambda: not agency.agent_pids(), "the agent is ended", otherwise=agency.told)

    await agency.say("say b", key="k2")

    assert await agency.until_answered(2) == ["a", "b"]
    assert "load session-1" in agency.log
    assert agency.is_right()


async def test_at_the_cap_a_person_hears_why_it_waits_once_over_restarts(agency: Agency) -> None:
    agency.more = "max_agents = 1"
    agency.start()
    await agency.say("wait go", "say a", chat="ann")
    await agency.until_done("wait go")

    await agency.say("say b", chat="bob")
    await until(lambda: waits_told(agency), "it is told", otherwise=agency.told)
    await agency.person("bob").say("/why", "w1")
    why = await until(
        lambda: [each for each in agency.delivered() if "gateway.max_agents" in each],
        "it is told why",
        otherwise=agency.told,
    )
    assert "as many foreign agents live as may at once (1" in why[0]
    agency.gateway.kill()
    agency.start()
    again = "SELECT 1 FROM turns WHERE turn_id = 2 AND epoch = 2"
    await until(lambda: agency.rows(again), "it is taken up again", otherwise=agency.told)
    (agency.workdir / "go").touch()

    assert await agency.until_answered(2) == ["a", "b"]
    assert len(waits_told(agency)) == 1
    assert agency.is_right()


def waits_told(agency: Agency) -> list[str]:
    return [each for each in agency.delivered() if "is not started yet" in each]


async def test_no_more_agents_begin_than_may_though_many_people_write_at_once(
    agency: Agency,
) -> None:
    agency.more = "max_agents = 1"
    agency.start()
    await agency.gateway.wait_ready()
    people = ("ann", "bob", "cat")
    async with create_task_group() as tasks:
        for name in people:
            tasks.start_soon(partial(agency.say, f"say {name}", chat=name))

    assert sorted(await agency.until_answered(len(people))) == sorted(people)
    at_once = (
        "SELECT a.process_id, b.process_id FROM processes AS a JOIN processes AS b "
        "ON a.process_id < b.process_id AND b.started_ms < ifnull(a.ended_ms, b.started_ms + 1)"
    )
    assert agency.rows(at_once) == []
    assert agency.is_right()
