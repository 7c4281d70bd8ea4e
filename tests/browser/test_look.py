"""How the page looks and what it weighs: at a desk and on a phone, in light and dark."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visit import ENDLESS, LOOKS, Visit, link_of, named, visiting
from tests.cli.process import Gateway, gateway

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / ".npm-neighbours/node_modules/axe-core/axe.min.js"
FIRST_VIEW_BYTES_MAX = 150_000
PLACES = {
    "empty": "#/chat/never-used",
    "chat": "#/chat/seen",
    "activity": "#/activity",
    "questions": "#/questions",
    "schedules": "#/schedules",
    "health": "#/health",
    "settings": "#/settings",
    "turn": "#/turns/t1",
}
READY = ".board-body > *, .items > *, .empty"
ANSWER = (
    'script: [{"calls": [{"tool": "terminal", "arguments": {"command": "ls /not-there"}}]}, '
    '{"text": "# Heading\\n\\n```python\\ndef f():\\n    return 42  # why\\n```\\n\\n'
    '| a | b |\\n|---|---|\\n| 1 | 2 |\\n\\n- [x] done\\n\\n> quoted `code` and a [link](https://example.test)"}]'
)


@dataclass(frozen=True, slots=True)
class Scene:
    one: Gateway
    browser: Browser


@pytest.fixture(scope="module")
def scene(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    home = tmp_path_factory.mktemp("look") / "home"
    with gateway(home) as one:
        one.wait_serving()
        one.wait_state(one.say("seen", ANSWER), "done")
        one.wait_state(one.say("failed", 'script: [{"refuse": "no such model"}]'), "failed")
        one.wait_state(one.say("asked", "ask me which way: left or right"), "waiting")
        yield Scene(one, browser)


def show(visit: Visit, place: str) -> None:
    visit.go(place)
    name = place.split("/")[1]
    is_chat = name == "chat"
    expect(visit.page.locator(".chat" if is_chat else ".board")).to_be_visible()
    if not is_chat:
        expect(visit.page.locator("#bar h1")).to_contain_text(name[:4].capitalize())
    expect(visit.page.locator(READY).first).to_be_visible()
    expect(visit.page.get_by_text("Loading…")).to_have_count(0)


def violations(page: Page) -> list[str]:
    """What axe finds, with where."""
    found: list[dict[str, Any]] = page.evaluate("axe.run().then((told) => told.violations)")
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found
        for node in each["nodes"]
    ]


@pytest.fixture(scope="module")
def axe() -> str:
    made = subprocess.run(
        [ROOT / "scripts/npm_environment.sh"], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"axe is not at hand: {made.stderr.strip()[:200]}")
    return AXE.read_text(encoding="utf-8")


@pytest.mark.parametrize("width, is_dark", [(1400, False), (1400, True), (390, False), (390, True)])
def test_axe_finds_nothing_and_nothing_is_cut_off(
    scene: Scene, axe: str, width: int, is_dark: bool
) -> None:
    with visiting(scene.browser, width=width, height=844, is_dark=is_dark) as visit:
        visit.open(link_of(scene.one))
        # As a browser's own tools do: the policy of the page lets no page do this.
        visit.page.evaluate(axe)
        for name, place in PLACES.items():
            show(visit, place)
            assert violations(visit.page) == [], name
            assert visit.page.evaluate("document.documentElement.scrollWidth") == width, name
            visit.picture(f"{name}-{named(width, is_dark)}")


def test_it_works_at_360_pixels_and_with_letters_of_twice_the_size(scene: Scene) -> None:
    with visiting(scene.browser, width=360, height=740) as visit:
        visit.open(link_of(scene.one))
        for name, place in PLACES.items():
            show(visit, place)
            assert visit.page.evaluate("document.documentElement.scrollWidth") == 360, name
    with visiting(scene.browser, width=720, height=800) as visit:
        visit.open(link_of(scene.one))
        visit.page.evaluate("document.documentElement.style.fontSize = '200%'")
        for name, place in PLACES.items():
            show(visit, place)
            assert visit.page.evaluate("document.documentElement.scrollWidth") == 720, name
            visit.picture(f"large-{name}")
        visit.go("#/chat/seen")
        visit.say("echo large")
        expect(visit.answers.last).to_contain_text("large")


def test_a_finger_hits_what_it_means_on_a_phone(scene: Scene) -> None:
    """What is pressed is at least 40 px high and wide, and nothing in the composer is cut off."""
    with visiting(scene.browser, width=390, height=844, is_touched=True) as visit:
        visit.open(link_of(scene.one))
        for name, place in PLACES.items():
            show(visit, place)
            small = visit.page.evaluate(
                """() => [...document.querySelectorAll("button, select, .places a, .side-foot a")]
                  .map((each) => [each.ariaLabel ?? each.textContent, each.getBoundingClientRect()])
                  .filter(([, box]) => box.width && (box.width < 32 || box.height < 40))
                  .map(([words, box]) => `${words}: ${box.width} x ${box.height}`)"""
            )
            assert small == [], name
        show(visit, PLACES["chat"])
        box = visit.message_box
        assert box.evaluate("each => each.scrollHeight <= each.clientHeight + 1")
        visit.press("Menu")
        expect(visit.page.locator(".side")).to_have_css("transform", "none")
        visit.picture("phone-menu-390")


def test_the_first_view_is_light(scene: Scene) -> None:
    """What a browser loads before a person can write, as it is on the wire."""
    with visiting(scene.browser, width=1400) as visit:
        client = visit.page.context.new_cdp_session(visit.page)
        client.send("Network.enable")
        loaded: list[float] = []
        client.on("Network.loadingFinished", lambda told: loaded.append(told["encodedDataLength"]))
        visit.open(link_of(scene.one))
        expect(visit.page.locator(".empty, .items > *").first).to_be_visible()

    assert 50_000 < sum(loaded) < FIRST_VIEW_BYTES_MAX


@pytest.mark.parametrize("width, is_dark", LOOKS)
def test_nothing_moves_when_a_banner_comes(scene: Scene, width: int, is_dark: bool) -> None:
    """CLS is 0, and the button under the mouse stays where it is."""
    with visiting(scene.browser, width=width, height=844, is_dark=is_dark) as visit:
        visit.open(link_of(scene.one))
        show(visit, "#/chat/seen")
        # The page is whole: a font or a list that comes later moves things by itself.
        visit.page.evaluate("document.fonts.ready.then(() => true)")
        expect(visit.page.locator(".chats a").first).to_be_attached()
        expect(visit.page.locator("body")).to_have_attribute("data-link", "live")
        visit.page.evaluate(
            """() => {
              window.shifts = 0;
              new PerformanceObserver((list) => {
                // The list of chats tells how long ago each was, and moves by itself.
                const isOwn = (source) => source.node?.parentElement?.closest(".chats");
                for (const each of list.getEntries())
                  if (!each.sources.every(isOwn)) window.shifts += each.value;
              }).observe({ type: "layout-shift", buffered: false });
            }"""
        )
        before = visit.message_box.bounding_box()
        trouble = {"words": "Restarted 3 times.", "remedy": "", "kind": "breaker"}
        reply = {"ok": True, "troubles": [trouble, trouble | {"words": "x " * 200}], "questions": 7}
        visit.page.route("**/api/v1/troubles", lambda route: route.fulfill(json=reply))
        banner = visit.page.locator(".trouble")
        expect(banner).to_have_count(2)
        expect(banner.first.get_by_role("button", name="Resume now")).to_be_visible()
        # Beside the button on a phone, the words would be a narrow column.
        words = banner.first.locator("p").bounding_box()
        assert words is not None
        assert words["width"] > 250
        visit.picture(f"banner-{named(width, is_dark)}")
        banner.last.get_by_role("button", name="Dismiss").click()
        expect(banner).to_have_count(1)
        assert visit.message_box.bounding_box() == before
        assert visit.page.evaluate("window.shifts") == 0


@pytest.mark.parametrize("width, is_dark", LOOKS)
def test_keyboard_help_and_reduced_motion(scene: Scene, width: int, is_dark: bool) -> None:
    with visiting(scene.browser, width=width, height=844, is_dark=is_dark) as visit:
        visit.page.emulate_media(reduced_motion="reduce")
        visit.open(link_of(scene.one))
        show(visit, "#/health")
        visit.page.keyboard.press("?")
        expect(visit.page.get_by_role("dialog", name="Keyboard help")).to_be_visible()
        visit.picture(f"help-{named(width, is_dark)}")
        visit.page.keyboard.press("Escape")
        expect(visit.page.get_by_role("dialog")).to_have_count(0)
        visit.page.keyboard.press("n")
        expect(visit.page.locator(".empty")).to_be_visible()
        visit.say(ENDLESS)
        dots = visit.page.locator(".dots i").first
        expect(dots).to_have_css("animation-name", "none")
        visit.press("Stop the turn")
