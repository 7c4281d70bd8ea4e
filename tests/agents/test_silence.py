"""An agent that does not answer when it is to begin: ended after a bound that outlives the gateway,
told with what helps, and ended by a stop."""

import os
import sqlite3
from contextlib import closing

from tests.agents.agency import Agency
from tests.cli.process import koboshi
from tests.harness.polling import until

HOUR = 3_600


async def test_why_says_what_an_agent_does_not_answer_and_a_stop_ends_it(agency: Agency) -> None:
    agency.options, agency.start_seconds = ("--silent=initialize",), HOUR
    agency.start()
    await agency.say("say a")
    await agency.until_done("silent initialize")

    await agency.person().say("/why", "w1")
    (why,) = await until_told(agency, "rule agent-silent")
    await agency.person().say("/stop", "s1")
    await until(lambda: not agency.agent_pids(), "the agent is ended", otherwise=agency.told)

    assert "has not answered initialize" in why
    assert agency.rows("SELECT state FROM turns") == [("stopped",)]


async def test_an_agent_that_does_not_load_in_time_is_ended_and_told_over_restarts(
    agency: Agency,
) -> None:
    """The gateway is dead while the time passes."""
    agency.start()
    await agency.say("say a")
    await agency.until_answered()
    agency.gateway.kill()
    agency.kill_agents()
    agency.options, agency.start_seconds = ("--silent=session/load",), HOUR
    agency.start()
    await agency.say("say b", key="k2")
    await agency.until_done("silent session/load")

    agency.gateway.kill()
    pass_time(agency, 2 * HOUR)
    agency.start()

    (told,) = await until_told(agency, "does not answer session/load")
    assert "`koboshi agents try fake`" in told
    assert "/new begins without its earlier session" in told
    assert "the fake agent begins" in told, "its last words"
    await until(lambda: not agency.agent_pids(), "the agent is ended", otherwise=agency.told)
    assert agency.rows("SELECT count(*) FROM agent_processes") == [(2,)], agency.told()
    assert "agent-silent" in koboshi("explain", "t2", home=agency.home).out
    await agency.person().say("/new", "n1")
    await agency.say("say c", key="k3")
    assert await agency.until_answered(2) == ["a", "c"]


def pass_time(agency: Agency, seconds: int) -> None:
    """As if what the agents have to answer had been fed to them long ago."""
    with closing(sqlite3.connect(agency.home / "koboshi.db")) as database:
        change = "UPDATE agent_messages SET made_ms = made_ms - ? WHERE settled_ms IS NULL"
        database.execute(change, (seconds * 1_000,))
        database.commit()
    for mark in (agency.home / "processes").glob("*/in/*.begun"):
        at = mark.stat().st_mtime - seconds
        os.utime(mark, (at, at))


async def until_told(agency: Agency, words: str) -> list[str]:
    return await until(
        lambda: [each for each in agency.delivered() if words in each],
        f"it is told: {words}",
        otherwise=agency.told,
    )
