"""A person at a browser, in front of the page of a real gateway."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect

from tests.cli.process import Gateway, koboshi, until
from tests.harness.tally import WANTS_ALL

PICTURES = Path(__file__).resolve().parents[2] / "build" / "browser"
"""What was seen, for a developer who wants to look; no one compares them."""
WITHIN_MS = 60_000
ENDLESS = 'script: [{"text":"never said","sleep_ms":600000}]'
"""A turn that is worked on for as long as any person looks."""
LOOKS = ((1400, False), (390, True), *(((1400, True), (390, False)) if WANTS_ALL else ()))
"""How wide the window is, and whether it is dark. `make test` has a light desk and a dark phone."""

expect.set_options(timeout=WITHIN_MS)


def named(width: int, is_dark: bool) -> str:
    """A look in words: the end of a picture's name."""
    return f"{width}-{'dark' if is_dark else 'light'}"


def link_of(one: Gateway) -> str:
    """A new link that lets one browser in."""
    one.wait_serving()
    link: str = one.asked(ask="login")["link"]
    return link


def works_on(one: Gateway, message: str) -> None:
    """Wait until this life of the gateway does: the one before it may have left it running."""
    until(lambda: one.explained(message)["is_worked_on"], f"it works on {message}")


class Visit:
    """One browser window. Errors of the page's own code are kept, and fail the test."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        page.set_default_timeout(WITHIN_MS)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(f"a dialog: {dialog.message}"))
        page.on("console", lambda said: self._heard(said.type, said.text))

    def _heard(self, kind: str, text: str) -> None:
        # A browser reports each connection that a killed gateway does not take.
        if kind == "error" and "Failed to load resource" not in text:
            self.errors.append(text)

    @property
    def items(self) -> Locator:
        return self.page.locator(".items > *:not(.day)")

    @property
    def answers(self) -> Locator:
        return self.page.locator(".items .agent")

    @property
    def mine(self) -> Locator:
        return self.page.locator(".mine")

    def open(self, link: str) -> None:
        self.page.goto(link)
        expect(self.message_box).to_be_visible()

    def go(self, place: str) -> None:
        self.page.evaluate("place => { location.hash = place; }", place)

    @property
    def message_box(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message")

    def say(self, text: str) -> None:
        self.message_box.fill(text)
        self.message_box.press("Enter")

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def show_rail(self) -> None:
        """A narrow page hides it until it is wanted."""
        hidden = "innerWidth <= 860 && !document.body.classList.contains('show-side')"
        if self.page.evaluate(hidden):
            self.press("Menu")

    def place(self, name: str) -> None:
        """Go to one of the places of the rail."""
        self.show_rail()
        self.page.locator(".places").get_by_role("link", name=name).click()

    def picture(self, name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png")


@contextmanager
def visiting(
    browser: Browser,
    *,
    width: int = 1280,
    height: int = 800,
    is_dark: bool = False,
    is_touched: bool = False,
) -> Iterator[Visit]:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if is_dark else "light",
        has_touch=is_touched,
        is_mobile=is_touched,
    )
    try:
        visit = Visit(context.new_page())
        yield visit
        assert visit.errors == []
    finally:
        context.close()


def new_link(home: Path) -> str:
    """The link that `koboshi open` gives."""
    return koboshi("open", home=home).out.strip()
