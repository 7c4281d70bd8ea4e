"""Schedules, goals and channels have a foreign agent as they have the built-in one."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.agency import Agency
from tests.agents.conftest import cleared
from tests.fakes.telegram.remote import Remote
from tests.fakes.telegram.server import TOKEN
from tests.harness.polling import until
from tests.harness.process import GatewayProcess


async def test_a_schedule_is_worked_on_by_the_agent_also_after_a_kill(agency: Agency) -> None:
    agency.start()
    person = agency.person()
    await person.say("/cron add every 30 minutes > wait go", "c1")
    added = "SELECT 1 FROM schedules"
    await until(lambda: agency.rows(added), "it is ordered", otherwise=agency.told)
    await person.say("/cron run c1", "r1")
    await agency.until_done("wait go")

    agency.gateway.kill()
    (agency.workdir / "go").touch()
    agency.start()
    (answer,) = await agency.until_answered()

    assert answer == "(the agent ended without words)"
    assert [line for line in agency.log if line.startswith("prompt")] == ["prompt 1 first"]
    assert agency.rows("SELECT rule, entry_id IS NOT NULL FROM occasions") == [("run-now", 1)]
    assert agency.is_right()


async def test_a_goal_goes_on_step_by_step_with_the_agent(agency: Agency) -> None:
    agency.start()

    await agency.person().say("/goal tidy up", "g1")
    waits = "SELECT 1 FROM turns WHERE turn_id = 2 AND state = 'waiting'"
    await until(lambda: agency.rows(waits), "the judge is unsure", otherwise=agency.told)
    await agency.person().say("yes", "y1")
    await agency.until_answered(2)

    prompts = [line for line in agency.log if line.startswith("prompt")]
    assert prompts[:2] == ["prompt 1 first", "prompt 2 first"]
    assert len([line for line in agency.log if line.startswith("new")]) == 1
    tokens = agency.rows(
        "SELECT json_extract(body, '$.tokens_in') FROM steps WHERE kind = 'answer'"
    )
    assert tokens[0] == (20,), "what the agent says that it used is counted"
    assert agency.is_right()


BUDGET = '\n[budget]\nunit = "tokens"\nday = 40\n'
"""Of the fake agent, each turn uses 30."""


async def test_what_the_agent_uses_counts_in_the_budget_and_the_next_turn_waits(
    agency: Agency,
) -> None:
    """Counted once, though the gateway is killed before it reads it; and a turn that waits for the
    budget goes on when an owner allows more."""
    agency.more = BUDGET
    agency.start()
    await agency.say("wait go", "say a")
    await agency.until_done("wait go")
    agency.gateway.kill()
    (agency.workdir / "go").touch()
    await agency.until_done("stop 1 end_turn")
    agency.start()
    await agency.until_answered()
    await agency.say("say b", key="k2")
    await agency.until_answered(2)
    assert agency.rows("SELECT used, reserved FROM purses") == [(60, 0)]

    await agency.say("say c", key="k3")
    asked = "SELECT 1 FROM outbox WHERE text LIKE '%waits.' AND state = 'delivered'"
    await until(lambda: agency.rows(asked), "the owner is asked", otherwise=agency.told)
    assert "prompt 3 first" not in agency.log
    for number in range(3):
        await agency.person().say("/budget more", f"m{number}")

    assert await agency.until_answered(3) == ["a", "b", "c"]
    assert agency.rows("SELECT used, reserved FROM purses") == [(90, 0)]
    assert agency.is_right()


@pytest.fixture
def telegram() -> Iterator[tuple[str, Remote]]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.telegram"], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        url = program.stdout.readline().split()[1]
        remote = Remote(url)
        yield url, remote
        remote.close()
        program.kill()


def reached(url: str, allow: str) -> dict[str, str]:
    section = "KOBOSHI__CHANNELS__TELEGRAM__MAIN__"
    return {
        f"{section}API_BASE": url,
        f"{section}ALLOW": allow,
        f"{section}RATE_PER_SECOND": "0",
        "TELEGRAM_BOT_TOKEN": TOKEN,
    }


async def test_a_person_on_a_platform_talks_with_the_agent(
    tmp_path: Path, telegram: tuple[str, Remote]
) -> None:
    url, remote = telegram
    ann: int = remote.call("user", first_name="Ann")["id"]
    settings = reached(url, f"[{ann}]")
    async with cleared(Agency(GatewayProcess(tmp_path / "home", env=settings))) as agency:
        agency.start()
        await agency.gateway.wait_ready()
        remote.call("private_chat", user=ann)
        script = "> call c1 work\n> wait go\n> end c1 done\n> say hello"
        remote.call("say", chat=ann, user=ann, text=script)
        await agency.until_done("wait go")
        agency.gateway.kill()
        (agency.workdir / "go").touch()
        agency.start()
        assert await agency.until_answered() == ["hello"]
        assert agency.is_right()


async def test_agents_of_different_people_share_neither_home_nor_history(
    tmp_path: Path, telegram: tuple[str, Remote]
) -> None:
    url, remote = telegram
    people = [remote.call("user", first_name=name)["id"] for name in ("Bob", "Cat")]
    settings = reached(url, '["*"]')
    async with cleared(Agency(GatewayProcess(tmp_path / "home", env=settings))) as agency:
        agency.start()
        await agency.gateway.wait_ready()
        for person in people:
            remote.call("private_chat", user=person)
            keep = f"cat $HOME/mine .acp/* > seen; echo {person} >> $HOME/mine"
            remote.call("say", chat=person, user=person, text=f"> run {keep}\n> say {person}")
        await agency.until_answered(2)

        folders = sorted((agency.workdir / "people").iterdir())
        seen = [(folder / "seen").read_text() for folder in folders]
        assert len(folders) == 2
        known = [[person for person in people if str(person) in text] for text in seen]
        assert sorted(known) == sorted([person] for person in people), "each its own alone"
        homes = sorted((agency.home / "inside" / "home").glob("agent-fake-s*/mine"))
        assert sorted(int(home.read_text()) for home in homes) == sorted(people)
