"""Why was it not answered? Five reasons, each brought about for real, told by the command line and
on the page in the same words, with what helps."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.visit import ENDLESS, Visit, new_link, visiting, works_on
from tests.cli.process import Gateway, gateway, koboshi, until
from tests.fakes.telegram.remote import Remote
from tests.fakes.telegram.server import TOKEN
from tests.harness.moved_clock import Wall
from tests.harness.polling import WITHIN_S

SECTION = "KOBOSHI__CHANNELS__TELEGRAM__MAIN__"


class Platform:
    """Telegram, as a program that can be ended like a cable can be cut."""

    def __init__(self) -> None:
        self.program = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.telegram"], stdout=subprocess.PIPE, text=True
        )
        assert self.program.stdout is not None
        self.url = self.program.stdout.readline().split()[1]
        self.remote = Remote(self.url)
        self.ann: int = self.remote.call("user", first_name="Ann")["id"]

    def say(self, person: int, text: str) -> None:
        self.remote.call("private_chat", user=person)
        self.remote.call("say", chat=person, user=person, text=text)

    def end(self) -> None:
        self.remote.close()
        self.program.kill()
        self.program.communicate(timeout=WITHIN_S)


@dataclass(frozen=True, slots=True)
class Scene:
    one: Gateway
    platform: Platform
    visit: Visit
    work: Path

    def newest(self, text: str) -> dict[str, Any]:
        """The message that holds these words, when it has arrived."""

        def look() -> dict[str, Any] | None:
            listed = self.one.asked(ask="list", kind="message")["messages"]
            return next((each for each in listed if text in each["text"]), None)

        return until(look, f"{text!r} has arrived", otherwise=lambda: self.one.err)


@pytest.fixture(scope="module")
def scene(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    platform = Platform()
    home = tmp_path_factory.mktemp("why") / "home"
    work = home.with_name("work")
    settings = {
        "KOBOSHI__GATEWAY__WORKDIR": str(work),
        f"{SECTION}API_BASE": platform.url,
        f"{SECTION}ALLOW": f"[{platform.ann}]",
        f"{SECTION}RATE_PER_SECOND": "0",
        "TELEGRAM_BOT_TOKEN": TOKEN,
    }
    try:
        with gateway(home, **settings) as one, visited(browser, one) as visit:
            yield Scene(one, platform, visit, work)
    finally:
        platform.end()


@contextmanager
def visited(browser: Browser, one: Gateway) -> Iterator[Visit]:
    with visiting(browser, width=1000) as visit:
        visit.open(new_link(one.home))
        yield visit


def told(one: Gateway, what: str) -> str:
    """What the command line says of it."""
    return koboshi("explain", what, home=one.home).out


def shows(visit: Visit, place: str, *words: str) -> None:
    """Whether a page says all of that."""
    visit.go(place)
    for each in words:
        # A sentence of its own begins with a capital there.
        expect(visit.page.locator(".board-body")).to_contain_text(each, ignore_case=True)


def test_not_allowed(scene: Scene) -> None:
    """A person whom no one has let in writes to the bot."""
    stranger = scene.platform.remote.call("user", first_name="Bob")["id"]
    scene.platform.say(stranger, "let me in, please")
    message = f"m{scene.newest('let me in')['entry_id']}"

    said = told(scene.one, message)

    words = "its sender is not allowed to use this gateway"
    assert words in said
    assert "remedy    to let them in, ask them for the code" in said
    assert f"add {stranger} to `allow` of [channels.telegram.main]" in said
    shows(scene.visit, "#/inbox", words, "koboshi pairing approve CODE")
    scene.visit.picture("why-not-allowed")
    shows(scene.visit, f"#/inbox/{message}", words, "What helps:", f"add {stranger} to allow")


def test_stopped(scene: Scene) -> None:
    message = scene.one.say("stopping", "count to 100 slowly")
    turn = scene.one.wait_state(message, "running")["turn"]["turn_id"]
    behind = scene.one.say("stopping", "echo behind it")
    scene.one.say("stopping", "/stop")

    words = "stopped by the person, with /stop or /new"
    said = told(scene.one, message)
    assert f"why       {words}" in said
    assert "remedy    write it again" in said
    assert "dropped: the person cut the conversation with /stop or /new" in told(scene.one, behind)
    scene.one.say("stopping", "/why")
    shows(scene.visit, f"#/turns/t{turn}", words, "write it again")
    shows(scene.visit, "#/inbox", words, "the person cut the conversation")
    scene.visit.go("#/chat/stopping")
    expect(scene.visit.page.locator(".notice").last).to_contain_text(f"Why: {words}.")
    scene.visit.page.get_by_role("link", name="Why?").click()
    expect(scene.visit.page.locator(".why")).to_contain_text("the person cut the conversation")


def test_waiting_for_an_answer(scene: Scene) -> None:
    message = scene.one.say("asking", "ask me which drink: tea or coffee")
    turn = f"t{scene.one.wait_state(message, 'waiting')['turn']['turn_id']}"
    behind = scene.one.say("asking", "/queue echo behind it")

    words = "it asked «Which drink?» and waits for the answer"
    said = told(scene.one, message)
    assert words in said
    assert "remedy    answer in the chat" in said
    assert f"waiting behind turn {turn}" in told(scene.one, behind)
    shows(scene.visit, "#/inbox", "waiting for an answer")
    shows(scene.visit, f"#/inbox/{message}", words)
    shows(scene.visit, f"#/inbox/{behind}", f"waiting behind {turn}, which has to end first")
    page = scene.visit.page
    page.get_by_role("button", name=f"Drop {behind}").click()
    expect(page.locator(".board-body")).to_contain_text("the operator dropped it while it waited")
    scene.visit.go("#/inbox")
    page.get_by_role("button", name=f"Retry {behind}").click()
    expect(page.get_by_text(f"{behind} is asked again.")).to_be_visible()
    shows(scene.visit, f"#/turns/{turn}", words, "What helps: answer in the chat")
    scene.visit.picture("why-waiting")
    scene.visit.page.get_by_role("link", name="Answer it under Questions").click()
    scene.visit.page.get_by_role("button", name="tea", exact=True).click()
    scene.one.wait_state(message, "done")


def test_channel_down(scene: Scene) -> None:
    """The platform goes away while the agent works. This test is the last one of the scene."""
    go = scene.work / "go"
    command = f"run until [ -e {go} ]; do sleep 0.1; done; echo too late"
    scene.platform.say(scene.platform.ann, command)
    message = f"m{scene.newest('too late')['entry_id']}"
    scene.platform.end()
    go.touch()
    turn = scene.one.wait_state(message, "answered")["turn"]["turn_id"]

    words = "the answer is stored, but telegram:main cannot be reached: "
    until(lambda: words in scene.one.explained(message)["reason"]["words"], "it is known")
    # For the moment of another try it says "being sent now" instead.
    said = until(lambda: now if words in (now := told(scene.one, message)) else None, "it is told")
    assert "it is sent by itself as soon as that works" in said
    status = koboshi("status", home=scene.one.home).out
    assert "trouble    telegram:main cannot be reached: " in status
    assert "not connected" not in status, "what went wrong is told"
    shows(scene.visit, f"#/turns/t{turn}", words, "koboshi doctor --online")
    shows(scene.visit, "#/health", "telegram:main")
    trouble = scene.visit.page.locator(".trouble").filter(has_text="telegram:main")
    expect(trouble).to_contain_text("cannot be reached")
    scene.visit.go("#/outbox")
    scene.visit.page.locator(".rows a").first.click()
    expect(scene.visit.page.locator(".why")).to_contain_text("telegram:main cannot be reached")
    scene.visit.picture("why-channel-down")


def test_given_up_after_three_deaths(browser: Browser, tmp_path: Path) -> None:
    """Each life dies over the same step; the waits between them pass on the clock on the wall."""
    home, wall, message = tmp_path / "home", Wall(tmp_path / "ahead"), ""
    wall.move(seconds=0)
    for wait_s in (0, 5, 40):
        wall.move(seconds=wait_s)
        with gateway(home, command=wall.command, **wall.environment) as one:
            message = message or one.say("a", ENDLESS)
            works_on(one, message)
            one.kill()
    with (
        gateway(home, command=wall.command, **wall.environment) as one,
        visited(browser, one) as visit,
    ):
        turn = one.wait_state(message, "failed")["turn"]["turn_id"]
        one.say("a", "/why")

        words = "given up: the gateway died 3 times in a row over this"
        said = told(one, message)
        assert f"why       {words}" in said
        assert "remedy    /retry in the chat tries it once more" in said
        shows(visit, "#/inbox", words)
        shows(visit, f"#/turns/t{turn}", words, "What helps: /retry in the chat", "exhausted")
        visit.picture("why-given-up")
        visit.go("#/chat/a")
        expect(visit.page.locator(".notice").last).to_contain_text(f"Why: {words}")
        expect(visit.page.locator(".failure")).to_be_visible()
        visit.picture("why-in-the-chat")
