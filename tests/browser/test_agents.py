"""The work of a foreign agent on the page: its plan, its tool calls, and changes of files."""

import json
import sys
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.visit import link_of, visiting
from tests.cli.process import gateway, koboshi, until
from tests.fakes.acp import agent as fake

SCRIPT = """
> think <b>hm</b>
> plan completed:look around|in_progress:change <b>it</b>|pending:tell
> call c1 make test
> end c1 all passed
> edit c2 notes.txt
> say Done.
"""


def test_the_page_shows_plan_calls_and_changes_of_a_foreign_agent(
    browser: Browser, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    command = json.dumps([sys.executable, str(Path(fake.__file__))])
    text = f'[gateway]\nagent = "fake"\n[agents.fake]\ncommand = {command}\n'
    (home / "koboshi.toml").write_text(text)
    work = str(tmp_path / "work")
    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=work) as one, visiting(browser) as visit:
        visit.open(link_of(one))
        visit.say(SCRIPT)
        expect(visit.answers.filter(has_text="Done.").last).to_be_visible()
        calls = visit.page.locator(".call")
        expect(calls.filter(has_text="make test")).to_contain_text("all passed")
        edit = calls.filter(has_text="edit notes.txt")
        edit.locator("summary").click()
        expect(edit.locator(".diff-new")).to_have_text("+c")
        expect(edit.locator(".diff-old")).to_have_text("-b")
        visit.picture("agent-chat")

        visit.go("#/turns/t1")
        plan = visit.page.locator(".plan li")
        expect(plan).to_have_text(["look around", "change <b>it</b>", "tell"])
        expect(plan.nth(0).get_by_role("img", name="done")).to_be_visible()
        expect(plan.nth(1).get_by_role("img", name="under way")).to_be_visible()
        thoughts = visit.page.locator("details.told")
        thoughts.locator("summary").click()
        expect(thoughts).to_contain_text("<b>hm</b>")
        expect(visit.page.locator(".timeline .diff-new")).to_have_text("+c")
        visit.picture("agent-turn")

        visit.go("#/health")
        living = visit.page.locator(".agents li")
        expect(living).to_contain_text("fake")
        expect(living).to_contain_text("MB")
        expect(living).to_contain_text("idle")
        visit.picture("agent-health")
        listed = koboshi("agents", "list", home=home).out
        assert "fake (p1 of s1): idle" in listed
        assert " MB" in listed

        assert "plan: «[completed] look around" in koboshi("explain", "t1", home=home).out
        visit.go("#/chat/main")
        visit.say("/new")
        ended = home / "processes" / "1" / "exit.json"
        until(ended.exists, "the agent is ended with its session", otherwise=lambda: one.err)
