"""An approval in a browser: what is shown is what runs, whole and letter by letter."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from koboshi.domain.text import exactly
from tests.browser.visit import Visit, link_of, visiting
from tests.cli.process import Gateway, gateway
from tests.harness.rows import read_rows

HOSTILE = (
    "printf '%s\\n' '**b** [notes](https://x.test/$(rm)) *c* `d` <i>e</i>' >> ran "
    "# \u202efr- mr\u202c\u200b\u00a0😀\nkill -0 $$ # </pre><script>alert(1)</script>"
)
LONG = "kill -0 $$ && echo " + "".join(f"{number:04d}," for number in range(8_000)) + " > ran"


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Gateway]:
    with gateway(tmp_path / "home") as made:
        yield made


def wants(command: str) -> str:
    # Asked about with a boundary, which it leaves, and without one, where it is on the list.
    arguments = {"command": command, "outside": True, "reason": "to try it"}
    call = {"tool": "terminal", "arguments": arguments}
    items = [{"calls": [call]}, {"text": "through"}]
    return f"script: {json.dumps(items, ensure_ascii=False)}"


def shown_in(visit: Visit, place: str) -> str:
    return str(visit.page.locator(place).first.evaluate("each => each.textContent"))


@pytest.mark.parametrize("command", [HOSTILE, LONG], ids=["hostile", "forty-kilobytes"])
def test_what_is_shown_is_what_runs(browser: Browser, one: Gateway, command: str) -> None:
    """Issue 15, must show: Markdown, 40 kB, invisible characters, in the chat and on the page of
    questions. The text of the block is the command, with what cannot be seen written out."""
    with visiting(browser) as visit:
        visit.open(link_of(one))
        visit.say(wants(command))
        block = visit.page.locator(".question pre.literal")
        expect(block).to_have_count(1)
        assert shown_in(visit, ".question pre.literal") == exactly(command)
        assert block.locator("*").count() == 0
        box = block.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 1280
        assert block.evaluate("each => each.scrollWidth <= each.clientWidth + 1")
        visit.picture("approval" if command == HOSTILE else "approval-long")

        visit.go("#/questions")
        expect(visit.page.locator("li pre.literal")).to_have_count(1)
        assert shown_in(visit, "li pre.literal") == exactly(command)
        expect(visit.page.locator(".row-foot").first).to_contain_text("by web")
        expect(visit.page.locator(".row-foot").first).to_contain_text("expires in")
        visit.press("Yes")
        expect(visit.page.get_by_text("No open questions.")).to_be_visible()
        visit.go("#/")
        expect(visit.answers.last).to_contain_text("through")

    one.stop()
    (process,) = read_rows(one.home).of("processes")
    assert process["command"] == command
    assert process["state"] == "exited"


def test_what_no_person_could_read_is_not_asked_about(browser: Browser, one: Gateway) -> None:
    """Issue 15, must show: or it is refused. Written out, it is longer than anything that is shown;
    the model is told, and nothing ran."""
    with visiting(browser) as visit:
        visit.open(link_of(one))
        visit.say(wants("echo ran > ran # " + "\u200b" * 20_000))
        expect(visit.answers.last).to_contain_text("through")
        expect(visit.page.locator(".question")).to_have_count(0)

    one.stop()
    rows = read_rows(one.home)
    assert rows.of("processes") == []
    assert "too long to be shown whole" in str(rows.of("steps"))


def test_a_program_with_the_token_approves_nothing_on_the_page(one: Gateway) -> None:
    """Issue 15, V4: the token is a program's, and the agent may find it."""
    one.wait_serving()
    token = (one.home / "web-token").read_text(encoding="ascii").strip()
    address = link_of(one).partition("/login")[0]
    for how in ("approve", "always", "deny"):
        answer = httpx2.post(
            f"{address}/api/v1/questions/1/{how}", headers={"Authorization": f"Bearer {token}"}
        )
        assert (answer.status_code, answer.json()["error"]["type"]) == (
            403,
            "approval-needs-person",
        )
