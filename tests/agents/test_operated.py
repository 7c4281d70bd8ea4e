"""What an operator does with agents: a stop of the gateway, a trial, a login."""

from tests.agents.agency import Agency
from tests.cli.process import koboshi


async def test_a_stop_of_the_gateway_leaves_the_agent_at_work(agency: Agency) -> None:
    agency.start()
    await agency.say("wait go", "say a")
    await agency.until_done("wait go")

    assert koboshi("stop", home=agency.home).code == 0
    await agency.gateway.wait_exit()
    (pid,) = agency.agent_pids()
    (agency.workdir / "go").touch()
    await agency.until_done("stop 1 end_turn")
    agency.start()

    assert await agency.until_answered() == ["a"]
    assert agency.agent_pids() == [pid]
    assert [line for line in agency.log if line.startswith("prompt")] == ["prompt 1 first"]
    assert agency.is_right()


async def test_an_agent_is_tried_and_logged_in_where_it_works(agency: Agency) -> None:
    agency.configure()
    place = {"KOBOSHI__GATEWAY__WORKDIR": str(agency.workdir)}
    prompt = "> say hi\n[koboshi turn 7]"
    login = ("agents", "login", "fake", "--", "/bin/sh", "-c", "echo in > $HOME/key; exit 3")

    tried = koboshi("agents", "try", "fake", "--prompt", prompt, home=agency.home, **place)
    ended = koboshi(*login, home=agency.home, **place)
    unknown = koboshi("agents", "try", "other", home=agency.home, **place)

    assert tried.code == 0, tried
    for words in ("can load its sessions", "it opened session", "it says: hi", "end_turn, 20 + 10"):
        assert words in tried.out
    assert not agency.agent_pids(), "a trial leaves nothing"
    assert ended.code == 3, ended
    assert (agency.home / "inside/home/agent-fake-main/key").read_text() == "in\n"
    assert "known: fake" in unknown.err
