"""A database that went back in time, while the agents of the later time live."""

from tests.agents.agency import Agency
from tests.cli.process import koboshi


async def test_after_a_restore_no_answer_of_the_time_that_is_gone_is_given(agency: Agency) -> None:
    """The agent lives on, and has answered a message that the rows do not know: the next one gets
    the same number."""
    agency.options = ("--forget",)
    agency.start()
    await agency.say("say a")
    await agency.until_answered()
    backup = agency.home.parent / "backup.db"
    assert koboshi("backup", "create", "--to", str(backup), home=agency.home).code == 0
    await agency.say("say b", key="k2")
    assert await agency.until_answered(2) == ["a", "b"]
    agency.gateway.kill()
    assert len(agency.agent_pids()) == 1

    assert koboshi("restore", str(backup), home=agency.home).code == 0
    agency.start()
    await agency.say("say c", key="k3")

    assert await agency.until_answered(2) == ["a", "c"]
    assert agency.log[-3:] == ["load session-1", "prompt 2 first", "stop 2 end_turn"]
    assert len(agency.agent_pids()) == 1
    assert agency.is_right()
