"""An agent that dies at work: what is sent again, what is told, and that each answer comes once."""

import pytest

from tests.agents.agency import Agency
from tests.harness.polling import until


def talk(agency: Agency) -> list[str]:
    """What reached agents of the wire, in order."""
    return [line for line in agency.log if line.startswith(("new", "load", "prompt"))]


async def test_an_agent_that_dies_in_a_tool_is_continued_by_load_with_a_note(
    agency: Agency,
) -> None:
    agency.start()

    await agency.say("say a ", "call c1 rm x", "die one", "say b")

    assert await agency.until_answered() == ["went on from 2. b"]
    assert talk(agency) == [
        "new session-1",
        "prompt 1 first",
        "load session-1",
        "prompt 1 again",
    ]
    assert agency.rows("SELECT rule FROM agent_messages WHERE rule IS NOT NULL") == [
        ("agent-died",)
    ]
    assert agency.rows("SELECT outcome FROM calls") == [("unknown",)]
    assert agency.rows("SELECT count(*) FROM steps WHERE cause = 'agent:agent-died'") == [(1,)]
    assert agency.is_right()


@pytest.mark.parametrize("option", ["--refuse-load", "--cannot-load"])
async def test_an_agent_that_cannot_load_begins_anew_and_the_person_is_told(
    agency: Agency, option: str
) -> None:
    agency.options = (option,)
    agency.start()

    await agency.say("say a ", "die one", "say b")

    assert await agency.until_answered() == ["went on from 0. ab"]
    assert talk(agency)[-2:] == ["new session-2", "prompt 1 again"]
    assert any("its own memory of this conversation is gone" in each for each in agency.delivered())
    assert agency.is_right()


async def test_a_prompt_that_was_not_received_is_sent_again(agency: Agency) -> None:
    """The agent told nothing after it, and its own record lacks it."""
    agency.options = ("--forget",)
    agency.start()

    await agency.say("die one", "say b")

    assert await agency.until_answered() == ["b"]
    assert talk(agency)[-2:] == ["load session-1", "prompt 1 first"]
    assert agency.rows("SELECT rule FROM agent_messages WHERE rule IS NOT NULL") == [
        ("not-received",)
    ]


async def test_an_agent_that_dies_each_time_is_given_up_with_its_last_words(
    agency: Agency,
) -> None:
    agency.start()

    await agency.say("die one", "die two", "die three", "say never")
    await agency.until_done("die three")

    told = await until(
        lambda: [each for each in agency.delivered() if "died each time" in each],
        "it is told",
        otherwise=agency.told,
    )
    assert "the fake agent begins" in told[0]
    assert agency.answers() == []
    assert agency.rows("SELECT state FROM turns") == [("failed",)]
