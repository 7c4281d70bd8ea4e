"""A turn with a foreign agent, from the message to the answer, over the deaths of the gateway."""

from tests.agents.agency import Agency


async def test_a_message_is_answered_by_the_agent(agency: Agency) -> None:
    agency.start()

    await agency.say("say hello ", "call c1 make it", "end c1 made", "say world")

    assert await agency.until_answered() == ["world"]
    assert agency.is_right()


async def test_the_agent_works_on_while_the_gateway_is_dead_and_answers_once(
    agency: Agency,
) -> None:
    """Kill -9 in the middle of a tool: no load, no second prompt, and the command runs once."""
    agency.start()
    work = ("call c1 work", "run echo ran >> ran", "wait go", "end c1 done")
    await agency.say("say a ", *work, "say b")
    await agency.until_done("wait go")

    agency.gateway.kill()
    (agency.workdir / "go").touch()
    await agency.until_done("stop 1 end_turn")
    agency.start()

    assert await agency.until_answered() == ["b"]
    assert (agency.workdir / "ran").read_text() == "ran\n"
    assert [line for line in agency.log if line.startswith(("prompt", "load", "new"))] == [
        "new session-1",
        "prompt 1 first",
    ]
    assert agency.is_right()
