"""The web through a real gateway: what the model is offered, and what it is shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.modelled import Modelled, modelled
from tests.harness.pages import page, serving
from tests.models.forms import FORMS

pytestmark = pytest.mark.crash

OPENAI = next(form for form in FORMS if form.name == "openai")


def fetch(url: str) -> tuple[str, str, tuple[str, ...]]:
    return "call_1", "web_fetch", (json.dumps({"url": url}),)


def offered(it: Modelled) -> set[str]:
    tools: list[dict[str, Any]] = it.server.last["tools"]
    return {tool["function"]["name"] for tool in tools}


async def test_a_page_that_the_owner_allows_is_read_and_this_machine_is_not(
    tmp_path: Path,
) -> None:
    async with serving(a=page()) as wiki, serving(secret=page()) as other:
        hosts = json.dumps([f"127.0.0.1:{wiki.port}"])
        async with modelled(tmp_path / "home", OPENAI, KOBOSHI__TOOLS__WEB__HOSTS=hosts) as it:
            own = await it.gateway.wait_listening()
            it.server.answers += [
                it.proposes(fetch(f"http://127.0.0.1:{wiki.port}/a")),
                it.says("it is about dolls"),
                it.proposes(fetch(f"http://127.0.0.1:{other.port}/secret")),
                it.says("it is closed"),
                it.proposes(fetch(f"{own}/healthz")),
                it.says("so is mine"),
            ]
            await it.person.say("read it", "1")
            await it.person.hears("it is about dolls")
            (first,) = it.results()
            await it.person.say("and that", "2")
            await it.person.hears("it is closed")
            await it.person.say("and yours", "3")
            await it.person.hears("so is mine")
            results = it.results()

    assert "dolls that get up again" in first["text"]
    assert all("not an address of the public Internet" in str(each) for each in results[1:])
    assert (len(wiki.asked), len(other.asked)) == (1, 0)


async def test_without_network_for_programs_the_agent_has_no_web(tmp_path: Path) -> None:
    async with modelled(tmp_path / "home", OPENAI, KOBOSHI__TOOLS__SANDBOX="locked") as it:
        it.server.answers.append(it.says("hello"))
        await it.person.say("hello", "1")
        await it.person.hears("hello")

    assert not offered(it) & {"web_fetch", "web_search"}
    assert "terminal" in offered(it)
