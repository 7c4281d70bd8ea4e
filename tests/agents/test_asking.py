"""What an agent asks of us: permissions, files and terminals."""

import json

from tests.agents.agency import Agency
from tests.harness.polling import until

ALWAYS = '\n[tools.terminal]\napproval = "always"\n'


async def test_inside_the_boundary_a_permission_is_given_once_and_recorded(agency: Agency) -> None:
    agency.start()
    read = json.dumps({"path": "note.txt", "line": 2, "limit": 1})
    write = json.dumps({"path": "made.txt", "content": "made"})
    escape = json.dumps({"path": "../home/koboshi.toml"})
    agency.workdir.mkdir(exist_ok=True)
    (agency.workdir / "note.txt").write_text("one\ntwo\nthree\n")

    await agency.say(
        "permit rm -rf x",
        f"ask fs/write_text_file {write}",
        f"ask fs/read_text_file {read}",
        f"ask fs/read_text_file {escape}",
        "ask of/the_future {}",
    )
    (answer,) = await agency.until_answered()

    assert answer.startswith("[allow_once-id]")
    assert '"content": "two\\n"' in answer
    assert "agent =" not in answer
    assert answer.count('"error"') == 2
    assert (agency.workdir / "made.txt").read_text() == "made"
    assert agency.rows("SELECT note FROM agent_requests ORDER BY spool_offset")[0] == (
        "allowed once, inside the boundary",
    )
    assert agency.is_right()


async def test_a_terminal_of_the_agent_outlives_the_gateway(agency: Agency) -> None:
    agency.start()
    made = json.dumps(
        {"command": "echo ran >> ran; while [ ! -e go ]; do sleep 0.02; done; echo x"}
    )
    named = json.dumps({"terminalId": "p2"})

    await agency.say(
        f"ask terminal/create {made}",
        f"ask terminal/wait_for_exit {named}",
        f"ask terminal/output {named}",
        f"ask terminal/release {named}",
        'ask terminal/output {"terminalId": "p1"}',
    )
    await until(
        lambda: (agency.workdir / "ran").exists(), "the command runs", otherwise=agency.told
    )
    agency.gateway.kill()
    (agency.workdir / "go").touch()
    agency.start()
    (answer,) = await agency.until_answered()

    assert '{"exitCode": 0, "signal": null}' in answer
    assert '"output": "x\\n"' in answer
    assert "there is no such terminal" in answer, "the agent itself is none"
    assert (agency.workdir / "ran").read_text() == "ran\n"
    assert agency.is_right()


async def test_where_everything_is_asked_the_owner_decides_even_after_a_restart(
    agency: Agency,
) -> None:
    agency.more = ALWAYS
    agency.start()
    person = agency.person()
    await agency.say("hide 30000", "permit make it", "permit break it", "say done")
    question = await until_asked(agency, 1)
    assert "These are the agent's words" in question
    assert "make it" in question

    agency.gateway.kill()
    agency.start()
    await person.say("yes", "r1")
    await until_asked(agency, 2)
    await person.say("no", "r2")

    said = ["[reject_once-id][allow_once-id][reject_once-id]done"]
    assert await agency.until_answered() == said, "what is too long to be shown is not asked"
    assert agency.is_right()


async def test_a_permission_of_a_dead_agent_says_so(agency: Agency) -> None:
    agency.more = ALWAYS
    agency.start()
    person = agency.person()
    await agency.say("permit make it", "say done")
    await until_asked(agency, 1)

    agency.kill_agents()
    await person.say("yes", "r3")
    await until_asked(agency, 2)
    await person.say("yes", "r4")

    assert await agency.until_answered() == ["went on from 0. [allow_once-id]done"]
    assert [line for line in agency.log if line.startswith("permission")] == [
        "permission make it allow_once-id"
    ]


async def until_asked(agency: Agency, times: int) -> str:
    def look() -> str | None:
        found = agency.rows("SELECT body FROM steps WHERE kind = 'question' ORDER BY seq")
        waits = agency.rows("SELECT 1 FROM turns WHERE state = 'waiting'")
        return str(found[-1][0]) if waits and len(found) >= times else None

    return await until(look, f"question {times}", otherwise=agency.told)
