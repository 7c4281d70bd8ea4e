"""A foreign agent is shown what is remembered, as the built-in one is."""

import json

from tests.agents.agency import Agency
from tests.harness.polling import until


def prompts(agency: Agency) -> list[str]:
    """What the agents were asked, in their order."""
    found = agency.rows(
        "SELECT body FROM agent_messages WHERE kind = 'prompt' ORDER BY process_id, number"
    )
    return [str(json.loads(str(body))) for (body,) in found]


async def test_what_is_remembered_is_shown_and_the_same_after_a_death_of_both(
    agency: Agency,
) -> None:
    """A hand edit comes in between; the turn goes on with what it was shown."""
    agency.start()
    await agency.person().say("/agent koboshi", "a1")
    call = {"tool": "memory", "arguments": {"action": "add", "content": "the key is green"}}
    script = json.dumps([{"calls": [call]}, {"text": "noted"}])
    await agency.person().say(f"script: {script}", "a2")
    await agency.until_answered()
    await agency.person().say("/agent fake", "a3")
    await agency.say("wait go", "say done", key="k1")
    await agency.until_done("wait go")
    (file,) = agency.home.glob("memory/*/MEMORY.md")
    file.write_text(file.read_text().replace("green", "red"))

    agency.gateway.kill()
    agency.kill_agents()
    agency.start()
    await until(lambda: len(prompts(agency)) > 1, "it is prompted again", otherwise=agency.told)
    (agency.workdir / "go").touch()
    await agency.until_answered(2)
    await agency.say("say more", key="k4")
    await agency.until_answered(3)

    first, again, last = prompts(agency)
    assert "- the key is green" in first
    assert "- the key is green" in again
    assert "- the key is red" in last
    assert agency.is_right()
