"""The first five minutes, and the operator's view, as a person at a browser meets them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.visit import (
    ENDLESS,
    Visit,
    link_of,
    new_link,
    visiting,
    works_on,
)
from tests.cli.process import Gateway, gateway, until
from tests.harness.ports import free_port

HOSTILE = (
    "echo <img src=x onerror=alert(1)><script>alert(2)</script> "
    "[click](javascript:alert(3)) ![see](http://127.0.0.1:1/x.png) **bold** `code`\n"
    "\n```js\n</code><script>alert(4)</script>\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"
)
SLOW = " ".join(f"word{number}" for number in range(1, 61))
SCRIPT = f'script: [{{"text":"{SLOW}","word_ms":100}}]'
JOB = "in background for i in $(seq 12); do echo line $i; sleep 1; done"
IS_AT_END = "log => log.scrollTop > 0 && log.scrollTop + log.clientHeight > log.scrollHeight - 8"
PAGES = ("questions", "activity", "health", "settings", "turns/t1", "inbox/m1", "outbox/d1")


def work_of(folder: Path) -> Path:
    """Where the commands of a gateway run: they see nothing else of the folder."""
    return folder / "work"


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Gateway]:
    work = str(work_of(tmp_path))
    with gateway(tmp_path / "home", KOBOSHI__GATEWAY__WORKDIR=work) as made:
        yield made


def test_a_link_lets_one_browser_in(browser: Browser, one: Gateway) -> None:
    link = link_of(one)
    with visiting(browser) as visit:
        visit.open(link)

        assert "login" not in visit.page.url
        visit.page.reload()
        expect(visit.message_box).to_be_visible()
        visit.press("Log out")
        expect(visit.page.get_by_text("This browser is not logged in")).to_be_visible()
    with visiting(browser) as other:
        other.page.goto(link)
        expect(other.page.get_by_role("alert")).to_contain_text("was used already")
        other.picture("not-let-in")
        other.page.get_by_label("Login link").fill(new_link(one.home))
        other.press("Log in")
        expect(other.message_box).to_be_visible()


def test_words_are_shown_and_never_obeyed(browser: Browser, one: Gateway) -> None:
    with visiting(browser) as visit:
        visit.open(link_of(one))
        visit.say(HOSTILE)
        answer = visit.answers.first

        expect(answer.locator("strong")).to_have_text("bold")
        expect(answer.locator("table td")).to_have_text(["1", "2"])
        expect(answer.locator("pre")).to_have_text("</code><script>alert(4)</script>")
        expect(answer).to_contain_text("<img src=x onerror=alert(1)>")
        assert visit.page.locator(".items img, .items script").count() == 0
        assert visit.page.locator(".items a[href^='javascript']").count() == 0


def test_tools_questions_and_several_chats(browser: Browser, one: Gateway) -> None:
    with visiting(browser) as visit:
        visit.open(link_of(one))
        visit.say("run echo out of the tool")
        expect(visit.answers.first).to_contain_text("It exited with code 0.")
        call = visit.page.locator("details.call")
        call.locator("summary").click()
        expect(call.locator("pre").last).to_have_text("out of the tool")

        visit.press("New chat")
        expect(visit.items).to_have_count(0)
        visit.press("Ask me a question")
        visit.page.get_by_role("button", name="coffee", exact=True).click()
        expect(visit.answers.last).to_contain_text("You said: coffee.")
        expect(visit.mine).to_have_count(2)
        expect(visit.page.get_by_role("button", name="coffee", exact=True)).to_be_disabled()
        visit.picture("question")

        visit.page.get_by_role("link", name="run echo out of the tool").click()
        expect(visit.answers).to_have_count(1)
        look_at_the_dashboard(visit)


def test_one_who_is_asked_about_a_command_sees_it_letter_by_letter(
    browser: Browser, one: Gateway
) -> None:
    with visiting(browser) as visit:
        visit.open(link_of(one))
        wants = {"command": "rm -rf *a* _b_ `c` \u202ed", "outside": True, "reason": "to try it"}
        call = {"tool": "terminal", "arguments": wants}
        visit.say(f"script: {json.dumps([{'calls': [call]}, {'text': 'through'}])}")
        question = visit.page.locator(".question.open")

        expect(question).to_contain_text("rm -rf *a* _b_ `c` ")
        assert "\u202e" not in question.inner_text()
        question.get_by_role("button", name="No").click()
        expect(visit.page.locator(".question.open")).to_have_count(0)


def look_at_the_dashboard(visit: Visit) -> None:
    """Every page shows what has just happened; answering a question there is live everywhere."""
    body = visit.page.locator(".board-body")
    visit.go("#/turns/t1")
    expect(body.locator(".timeline")).to_contain_text("Work began (boot 1)")
    expect(body.locator(".timeline")).to_contain_text("terminal")
    visit.picture("turn")
    for place, words in {
        "#/sessions/s1": "run echo out of the tool",
        "#/turns": "Turn t1",
        "#/inbox": "coffee",
        "#/outbox": "Delivered",
        "#/boots": "The first boot in this home",
        "#/health": "Everything is well.",
        "#/processes": "Nothing matches.",
        "#/questions": "No open questions.",
        "#/settings": "[channels.web.main]",
    }.items():
        visit.go(place)
        expect(body).to_contain_text(words)


def test_the_dashboard_is_live(browser: Browser, one: Gateway) -> None:
    with visiting(browser) as visit:
        visit.open(link_of(one))
        visit.go("#/questions")
        body = visit.page.locator(".board-body")
        expect(body).to_contain_text("No open questions.")

        one.say("elsewhere", "ask me which way: left or right")
        body.get_by_role("button", name="left", exact=True).click()
        expect(body).to_contain_text("No open questions.")

        visit.go("#/chat/elsewhere")
        expect(visit.answers.last).to_contain_text("You said: left.")


def test_it_survives_a_kill_in_the_middle_of_an_answer_and_of_a_job(
    browser: Browser, tmp_path: Path
) -> None:
    """Nothing twice, nothing lost, and the page is never loaded again."""
    # The same in each life: a page comes back to where it was.
    port = {"KOBOSHI__CHANNELS__WEB__MAIN__PORT": str(free_port())}
    home = tmp_path / "home"
    with gateway(home, "--supervise", **port) as parent, visiting(browser) as visit:
        visit.open(link_of(parent))
        visit.page.evaluate("window.isTheSamePage = true")
        visit.say(JOB)
        expect(visit.page.locator(".job .log")).to_contain_text("line 1")
        visit.say(SCRIPT)
        expect(visit.page.locator(".draft")).to_contain_text("word3")

        visit.press("kill -9 the gateway now")
        expect(visit.page.get_by_text("Reconnecting…")).to_be_visible()
        visit.say("echo typed while no gateway ran")
        visit.picture("killed")

        expect(visit.answers.filter(has_text="word60")).to_have_count(1)
        expect(visit.answers.filter(has_text="typed while no gateway ran")).to_have_count(1)
        log = visit.page.locator(".job .log")
        expect(log).to_contain_text("line 12")
        expect(visit.page.locator(".job-state")).to_contain_text("exited with 0")
        expect(visit.page.locator(".timeline")).to_contain_text("Boot 1 was killed")
        expect(visit.page.locator(".timeline")).to_contain_text("fresh")
        expect(visit.page.get_by_text("Reconnecting…")).not_to_be_visible()
        visit.picture("back")
        assert visit.page.locator(".draft, .unsent").count() == 0
        assert visit.mine.count() == 3
        said = visit.answers.locator(".words").all_inner_texts()
        assert len(said) == len(set(said)), said
        assert visit.page.evaluate("window.isTheSamePage") is True
        # Elsewhere and back: the newest lines are in sight. Red before, it stood at the first one.
        visit.go("#/chat/elsewhere")
        expect(visit.page.locator(".empty")).to_be_visible()
        visit.page.go_back()
        expect(log).to_contain_text("line 12")
        until(lambda: log.evaluate(IS_AT_END), "the end of the output is shown")


def test_it_fits_a_phone_and_follows_the_system_into_the_dark(
    browser: Browser, one: Gateway
) -> None:
    with visiting(browser, width=375, height=740, is_dark=True) as visit:
        visit.open(link_of(one))
        visit.say(HOSTILE)
        expect(visit.answers.first).to_be_visible()
        visit.picture("phone-chat")
        visit.press("Try me")
        expect(visit.page.get_by_role("button", name="Ask me a question")).to_be_visible()
        visit.press("Close this panel")
        visit.press("Menu")
        expect(visit.page.get_by_role("button", name="New chat")).to_be_visible()
        visit.page.locator(".find input").press("Escape")
        expect(visit.page.get_by_role("button", name="New chat")).not_to_be_visible()
        for name in PAGES:
            visit.go(f"#/{name}")
            expect(visit.page.locator(".board-body > *").first).not_to_have_text("Loading…")
            assert visit.page.evaluate("document.documentElement.scrollWidth") == 375, name
        visit.picture("phone-health")
        colour = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(int(each) for each in colour[4:-1].split(",")) < 60


def test_a_command_shows_its_output_while_it_runs(
    browser: Browser, one: Gateway, tmp_path: Path
) -> None:
    go = work_of(tmp_path) / "go"
    with visiting(browser) as visit:
        visit.open(link_of(one))
        visit.say(f"run echo under way; until [ -e {go} ]; do sleep 0.1; done; echo over")
        expect(visit.page.locator(".job .log")).to_have_text("under way")
        expect(visit.page.locator("details.call .mark")).to_have_attribute("aria-label", "running")
        visit.picture("tool-running")
        go.touch()
        expect(visit.answers.first).to_contain_text("over")
        expect(visit.page.locator(".job")).to_have_count(0)


def test_after_many_deaths_the_page_says_what_is_held_back_and_goes_on_when_told(
    browser: Browser, tmp_path: Path
) -> None:
    """A person who kills it again and again meets the boot breaker; it must not look like a bug.

    Issue 13, B8: red before, the list of chats had it in the colour of work, and so had its calls.
    """
    home = tmp_path / "home"
    told = {
        "KOBOSHI__RECOVERY__BOOT_BREAKER": "true",
        "KOBOSHI__CHANNELS__WEB__MAIN__PORT": str(free_port()),
    }
    deaths, message = 5, ""
    for death in range(deaths):
        with gateway(home, **told) as dying:
            message = dying.say(f"chat-{death}", ENDLESS)
            works_on(dying, message)
            dying.kill()
    with gateway(home, **told) as one, visiting(browser) as visit:
        visit.open(link_of(one))
        trouble = visit.page.locator("#troubles")
        said = trouble.locator("p")
        expect(said).to_have_text(re.compile(r"^The gateway keeps dying \(5 [^.]+ as usual\.$"))
        expect(trouble.get_by_role("button", name="Resume now")).to_have_count(1)
        visit.go(f"#/chat/chat-{deaths - 1}")
        expect(visit.page.locator(".held")).to_contain_text("Paused. The gateway keeps dying")
        expect(visit.page.locator(".dots")).to_have_count(0)
        expect(visit.page.locator(".chats .state-running")).to_have_count(0)
        expect(visit.page.locator(".chats .state-held-back")).to_have_count(deaths)
        visit.picture("held-back")
        turn = one.explained(message)["turn"]["turn_id"]
        visit.go(f"#/turns/t{turn}")
        expect(visit.page.get_by_role("button", name="Resume", exact=True)).to_be_visible()
        visit.go(f"#/chat/chat-{deaths - 1}")
        visit.page.locator(".held").get_by_role("button", name="Resume", exact=True).click()
        expect(visit.page.locator(".held")).to_have_count(0)
        works_on(one, message)


def test_it_can_be_used_with_the_keys_alone(browser: Browser, one: Gateway) -> None:
    with visiting(browser) as visit:
        visit.open(link_of(one))
        keys, focused = visit.page.keyboard, visit.page.locator(":focus")
        expect(focused).to_have_attribute("aria-label", "Message")
        keys.type("ask me which way: left or right")
        keys.press("Enter")
        choice = visit.page.get_by_role("button", name="right", exact=True)
        expect(choice).to_be_enabled()
        reach(visit, "Shift+Tab", choice)
        keys.press("Enter")
        expect(visit.answers.last).to_contain_text("You said: right.")
        reach(visit, "Shift+Tab", visit.page.get_by_role("link", name="Activity"))
        keys.press("Enter")
        first = visit.page.locator(".rows a").first
        expect(first).to_be_visible()
        reach(visit, "Tab", first)
        keys.press("Enter")
        expect(visit.page.locator("h1")).to_have_text(re.compile(r"(Delivery|Message|Turn) \w\d"))


def reach(visit: Visit, key: str, wanted: Locator) -> None:
    """Press the key until the focus is there, as a person does who has no mouse."""
    for _ in range(60):
        visit.page.keyboard.press(key)
        if wanted.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"{wanted} is not reached with {key}")


def test_a_file_that_the_agent_sends_can_be_saved(
    browser: Browser, one: Gateway, tmp_path: Path
) -> None:
    """Issue 13, B15: it was a bare grey word. Its name is a link that saves it."""
    report = work_of(tmp_path) / "report.html"
    report.write_text("<script>alert(1)</script>")
    call = {"tool": "send_file", "arguments": {"path": str(report), "caption": "the figures"}}
    script = json.dumps([{"calls": [call]}, {"text": "sent"}])
    with visiting(browser) as visit:
        visit.open(link_of(one))
        visit.say(f"script: {script}")
        link = visit.page.get_by_role("link", name="report.html")
        expect(link).to_be_visible()
        visit.picture("sent-file")

        with visit.page.expect_download() as coming:
            link.click()

        assert coming.value.suggested_filename == "report.html"
        saved = tmp_path / "saved"
        coming.value.save_as(saved)
        assert saved.read_text() == report.read_text()
        # Issue 13, B15: a tab of its own brings the cookie, and nothing else.
        answer = visit.page.context.request.get(link.evaluate("link => link.href"))
        assert (answer.status, answer.text()) == (200, report.read_text())
        assert answer.headers["content-disposition"].startswith("attachment;")
