"""What an operator looks at and does on the page: one gateway and one page for all of it."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from tests.browser.visit import LOOKS, Visit, link_of, named, visiting
from tests.cli.knocking import strangers_knock
from tests.cli.process import Gateway, gateway
from tests.harness.backends import nth_code

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Scene:
    one: Gateway
    visit: Visit
    look: str
    """How wide the window is, and whether it is dark."""

    def picture(self, name: str) -> None:
        self.visit.picture(f"{name}-{self.look}")

    @property
    def body(self) -> Locator:
        return self.visit.page.locator(".board-body")

    @property
    def rows(self) -> Locator:
        return self.body.locator(".rows > li")


def speaker_of(one: Gateway, text: str) -> str:
    """The id of the person who said this."""
    (said,) = [
        each for each in one.asked(ask="list", kind="message")["messages"] if text in str(each)
    ]
    return str(said["sender"])


@pytest.fixture(scope="module", params=LOOKS, ids=lambda look: named(*look))
def scene(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Scene]:
    width, is_dark = request.param
    home = tmp_path_factory.mktemp("operating") / "home"
    home.mkdir(mode=0o700)
    # The browser has a loop of its own in this thread.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, strangers_knock(home, "111", "222")).result()
    with gateway(home) as one, visiting(browser, width=width, height=900, is_dark=is_dark) as visit:
        one.wait_state(one.say("green", "echo a garden"), "done")
        one.wait_state(one.say("red", 'script: [{"refuse": "no such model"}]'), "failed")
        visit.open(link_of(one))
        yield Scene(one, visit, named(width, is_dark))


def test_people_are_approved_by_their_code_and_revoked(scene: Scene) -> None:
    """Issue 15, item 6, and issue 19, item 3. What they call themselves is text, nothing else, and
    the page does not tell their codes."""
    page = scene.visit.page
    scene.visit.go("#/settings")
    people = scene.rows.filter(has_text="telegram:main")
    expect(people.locator(".chip")).to_have_text(["asks", "asks"])
    assert nth_code(1) not in page.content()
    code = page.get_by_role("textbox", name="Code")
    code.fill("NOTACODE")
    scene.visit.press("Approve")
    expect(page.locator(".toast")).to_contain_text("Unknown code")
    expect(code).to_have_value("NOTACODE")

    code.fill(nth_code(1))
    page.get_by_label("Role").select_option("owner")
    scene.visit.press("Approve")
    ann = people.filter(has_text="telegram:main 111")
    expect(ann.locator(".chip")).to_have_text("owner")
    expect(code).to_have_value("")
    code.fill(nth_code(2))
    scene.visit.press("Deny")
    expect(people.filter(has_text="telegram:main 222")).to_contain_text("Gets no code")
    scene.picture("people")

    def agree(button: str, yes: str) -> None:
        ann.get_by_role("button", name=button).click()
        page.get_by_role("dialog").get_by_role("button", name=yes).click()

    agree("Make telegram:main 111 member", "Make member")
    expect(ann.locator(".chip")).to_have_text("member")
    agree("Revoke", "Revoke")
    expect(ann).to_have_count(0)
    assert scene.one.asked(ask="pairing-list")["people"] == []


def test_what_is_typed_outlives_what_happens_meanwhile(scene: Scene) -> None:
    """The page is drawn anew when the journal grows; a code is told letter by letter."""
    scene.visit.go("#/settings")
    code = scene.visit.page.get_by_role("textbox", name="Code")
    code.press_sequentially("AB")
    scene.visit.page.evaluate("document.querySelector('.checks').dataset.old = 'yes'")
    scene.one.wait_state(scene.one.say("meanwhile", "echo x"), "done")
    expect(scene.visit.page.locator(".checks[data-old]")).to_have_count(0)
    code.press_sequentially("CD")
    expect(code).to_have_value("ABCD")
    expect(code).to_be_focused()


def test_settings_list_the_tools_by_where_they_come_from(scene: Scene) -> None:
    scene.visit.go("#/settings")
    tools = scene.body.locator("details", has_text="Tools: built in")
    expect(tools).not_to_have_attribute("open", "")
    tools.locator("summary").click()
    expect(tools.locator("th", has_text=re.compile("^terminal$"))).to_be_visible()


def test_activity_is_filtered_by_kind_state_channel_time_and_text(scene: Scene) -> None:
    page = scene.visit.page
    scene.visit.go("#/activity")
    expect(scene.body.locator(".day-head").first).to_have_text("Today")
    scene.visit.press("Turns")
    expect(scene.rows.filter(has_text="Message m")).to_have_count(0)
    page.get_by_label("State").select_option("failed")
    expect(scene.rows).to_have_count(1)
    expect(scene.rows).to_contain_text("refuse")
    assert page.url.endswith("#/activity?kind=turn&state=failed")
    page.get_by_label("State").select_option("")
    page.get_by_label("Text").fill("garden")
    scene.visit.press("Filter")
    expect(scene.rows).to_have_count(1)
    page.get_by_label("Text").fill("")
    scene.visit.press("Filter")
    scene.visit.press("All")
    page.get_by_label("Channel").fill("telegram:main")
    page.get_by_label("Channel").press("Enter")
    expect(scene.rows.filter(has_text="web:main")).to_have_count(0)
    expect(scene.rows.filter(has_text="let me in")).to_have_count(2)
    page.get_by_label("Time").select_option("dates")
    page.get_by_label("From").fill("2020-01-01")
    page.get_by_label("To", exact=True).fill("2020-01-02")
    expect(scene.body).to_contain_text("Nothing matches.")
    scene.picture("activity-dates")
    page.get_by_label("To", exact=True).fill("2199-01-02")
    expect(scene.rows.filter(has_text="let me in")).to_have_count(2)


def test_a_job_that_failed_is_red_in_the_list_and_on_its_page(scene: Scene) -> None:
    """Issue 19, item 2: an exit code that is not 0 is red. Before, it had the colour of done."""
    scene.one.wait_state(scene.one.say("job", "in background exit 4"), "done")
    scene.visit.go("#/activity?kind=process")
    job = scene.rows.filter(has_text="exit code 4")
    expect(job.locator(".chip")).to_have_class(re.compile("state-failed"))
    job.get_by_role("link").first.click()
    expect(scene.rows.first.locator(".chip")).to_have_text("exit 4")
    expect(scene.rows.first.locator(".chip")).to_have_class(re.compile("state-failed"))


def minutes(now_ms: int) -> dict[str, object]:
    """A day that two models worked in, one of them without a price."""
    first = now_ms // MINUTE_MS - 600
    made = [
        {
            "minute": first + number,
            "messages": 2,
            "errors": 0,
            "latency_p50_ms": 1_500,
            "latency_p95_ms": 4_000,
            "tokens": [["openai:big", 1_000], ["ollama:small", 10]],
            "costs": [["openai:big", 25_000]],
            "memory_bytes": 90_000_000,
            "store_bytes": 5_000_000,
        }
        for number in range(100)
    ]
    heard = now_ms - 5 * MINUTE_MS
    return {"ok": True, "now_ms": now_ms, "minutes": made, "channels": [["web:main", heard]]}


def test_health_draws_the_last_day_with_tokens_and_cost_by_model(scene: Scene) -> None:
    page = scene.visit.page
    now_ms = int(time.time() * 1000)
    # A model that was refused once is well when it answers again.
    scene.one.wait_state(scene.one.say("well", "echo well", key=f"well-{scene.look}"), "done")
    page.route("**/api/v1/minutes", lambda route: route.fulfill(json=minutes(now_ms)))
    scene.visit.go("#/health")
    expect(scene.body.locator(".verdict-box")).to_have_text("Everything is well.")
    charts = scene.body.locator(".chart")
    expect(charts).to_have_count(8)
    expect(charts.filter(has_text="Messages").locator("b")).to_have_text("200")
    expect(charts.filter(has_text="p95").locator("b")).to_have_text("4.0 s")
    expect(charts.filter(has_text="Estimated cost").locator("b")).to_have_text("$2.50")
    models = scene.body.locator(".models tbody tr")
    expect(models.filter(has_text="openai:big")).to_contain_text("$2.50")
    expect(models.filter(has_text="ollama:small")).to_contain_text("no price known")
    expect(scene.body.locator(".checks", has_text="web:main").last).to_contain_text("5 min ago")

    # The quarter of an hour under the pointer.
    # Twelve hours ago, there is none.
    charts.first.locator("svg").hover()
    expect(charts.first.locator("figcaption b")).to_have_text("–")
    page.mouse.move(0, 0)
    expect(charts.first.locator("figcaption b")).to_have_text("200")
    scene.picture("health-day")
    page.unroute("**/api/v1/minutes")


def test_health_says_first_what_is_not_well(scene: Scene) -> None:
    page = scene.visit.page
    ready = {
        "ok": False,
        "checks": [{"name": "store", "ok": False, "reason": "the disk is full"}],
        "neighbours": [],
    }
    page.route("**/api/v1/ready", lambda route: route.fulfill(json=ready))
    scene.visit.go("#/activity")
    scene.visit.go("#/health")
    told = scene.body.locator(".verdict-box.bad")
    expect(told).to_contain_text("One thing needs attention.")
    expect(told).to_contain_text("The disk is full.")
    page.unroute("**/api/v1/ready")


def test_what_the_agent_remembers_is_listed_and_removed(scene: Scene) -> None:
    """Issue 21, section 3: words of people are text, nothing else."""
    page, text = scene.visit.page, "likes <b>tea</b>"
    calls = [{"tool": "memory", "arguments": {"action": "add", "target": "user", "content": text}}]
    script = json.dumps([{"calls": calls}, {"text": "noted"}])
    scene.one.wait_state(scene.one.say("green", f"script: {script}"), "done")
    scene.visit.go("#/settings")
    memory = page.locator("details", has_text="(its owner)")
    memory.locator("summary").click()
    expect(memory).to_contain_text(text)
    memory.get_by_role("button", name="Remove n1").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("n1 is removed")
    expect(page.locator(".board-body")).to_contain_text("Nothing is remembered yet")


def test_the_providers_trouble_is_shown_in_the_chat_while_it_is_retried(
    scene: Scene, tmp_path: Path
) -> None:
    there = tmp_path / "back"
    scene.visit.go("#/chat/trouble")
    item = {"text": "here again", "busy_until": {"file": str(there), "retry_after_ms": 300}}
    scene.visit.say(f"script: {json.dumps([item])}")
    held = scene.visit.page.locator(".held")
    expect(held).to_contain_text("Still trying.")
    expect(held).to_contain_text("model")
    scene.picture("provider-trouble")
    there.touch()
    expect(scene.visit.answers.last).to_contain_text("here again")
    expect(held).to_have_count(0)


def test_the_try_me_panel_is_closed_for_good_and_gone_with_a_real_model(scene: Scene) -> None:
    """And there, the button that kills the gateway asks first."""
    page, panel = scene.visit.page, scene.visit.page.locator(".try")
    scene.visit.go("#/chat/tried")
    page.reload()
    expect(panel).to_have_count(1)  # it is loaded late, and only then is it shown or not
    if not panel.is_visible():
        scene.visit.press("Try me")
    scene.visit.press("Close this panel")
    expect(panel).to_be_hidden()
    page.reload()
    expect(page.get_by_role("button", name="Try me", exact=True)).to_be_visible()
    expect(panel).to_be_hidden()

    def real(route: Route) -> None:
        route.fulfill(json=route.fetch().json() | {"model": "openai:big", "can_kill": True})

    killed = []
    page.on("request", lambda asked: killed.append(asked.url) if "try/kill" in asked.url else None)
    page.route("**/api/v1/page", real)
    page.reload()
    expect(page.locator("#bar .model")).to_have_text("openai:big")
    expect(page.get_by_role("button", name="Try me", exact=True)).to_have_count(0)
    expect(panel).to_have_count(0)
    scene.visit.go("#/health")
    scene.visit.press("Kill the gateway…")
    expect(page.get_by_role("dialog")).to_contain_text("Kill the gateway with SIGKILL?")
    scene.picture("kill-asks")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert killed == []
    page.unroute("**/api/v1/page")
    page.reload()


def test_what_a_person_said_is_erased_after_a_question_that_names_them(scene: Scene) -> None:
    """Issue 19: as `koboshi people erase` does. A person of a list by a button, any other by id."""
    visit, page, said = scene.visit, scene.visit.page, "echo the secret word"
    scene.one.wait_state(scene.one.say("secret", said), "done")
    visit.go("#/settings")
    asked = page.get_by_role("dialog")
    page.get_by_role("button", name="Erase telegram:main 222").click()
    expect(asked).to_contain_text("Erase everything that telegram:main 222 said?")
    scene.picture("erase-asks")
    asked.get_by_role("button", name="Cancel").click()
    expect(asked).to_have_count(0)
    page.locator("summary", has_text="Erase what a person said").click()
    form = page.get_by_role("form", name="Erase a person")
    channel, person = form.get_by_label("Channel"), form.get_by_label("Id of the person")
    channel.fill("web:main")
    form.get_by_role("button", name="Erase").click()
    expect(asked).to_have_count(0)
    expect(person).to_be_focused()
    who = speaker_of(scene.one, said)
    person.fill(who)
    scene.picture("erase-form")
    form.get_by_role("button", name="Erase").click()
    expect(asked).to_contain_text(f"Erase everything that web:main {who} said?")
    assert said in str(scene.one.asked(ask="list", kind="message"))
    asked.get_by_role("button", name="Erase").click()
    expect(page.locator(".toast")).to_contain_text("Erased")
    expect(channel).to_have_value("")
    assert said not in str(scene.one.asked(ask="list", kind="message"))
