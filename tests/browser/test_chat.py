"""The chat, as a person at a browser uses it: one gateway and one page for all of it."""

import json
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Route, expect

from tests.browser.visit import ENDLESS, LOOKS, Visit, link_of, named, visiting
from tests.cli.process import Gateway, gateway, until

CODE = "def hello(name):\n    # a comment\n    return 'hello ' + name * 42"
ANSWER = (
    f"```python\n{CODE}\n```\n\n- [x] done\n- [ ] to do\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n\n"
    "![a picture](https://example.test/x.png)"
)
COMMANDS = ("echo one", "ls /not-there", "sleep 0.3; echo three")


@dataclass(frozen=True, slots=True)
class Scene:
    one: Gateway
    visit: Visit
    work: Path
    look: str
    """How wide the window is, and whether it is dark."""

    def picture(self, name: str) -> None:
        self.visit.picture(f"{name}-{self.look}")

    def fresh(self, name: str) -> None:
        self.visit.go(f"#/chat/{name}")
        expect(self.visit.page.locator(".empty")).to_be_visible()


def script(*steps: object) -> str:
    return f"script: {json.dumps(steps)}"


def calls(*commands: str) -> list[object]:
    made = ({"tool": "terminal", "arguments": {"command": command}} for command in commands)
    return [{"calls": [call]} for call in made]


def png() -> bytes:
    """A picture of one red point."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    point = zlib.compress(b"\0\xff\0\0")
    parts = ((b"IHDR", head), (b"IDAT", point), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in parts)


@pytest.fixture(scope="module", params=LOOKS, ids=lambda look: named(*look))
def scene(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Scene]:
    width, is_dark = request.param
    home = tmp_path_factory.mktemp("chat") / "home"
    work = home.with_name("work")
    with (
        gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(work)) as one,
        visiting(browser, width=width, height=900, is_dark=is_dark) as visit,
    ):
        visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        visit.open(link_of(one))
        yield Scene(one, visit, work, named(width, is_dark))


def test_an_empty_chat_offers_three_ways_to_begin(scene: Scene) -> None:
    scene.fresh("begin")
    ideas = scene.visit.page.locator(".idea")
    expect(ideas).to_have_count(3)
    scene.picture("empty")
    ideas.filter(has_text="Run a command").click()
    expect(scene.visit.answers.last).to_contain_text("It exited with code 0.")
    expect(scene.visit.page.locator(".empty")).to_have_count(0)
    expect(scene.visit.page.locator("#bar h1")).to_have_text("run uname -a")


def test_tool_calls_stand_together_with_their_time_and_a_red_exit_code(scene: Scene) -> None:
    scene.fresh("tools")
    scene.visit.say(script(*calls(*COMMANDS), {"text": "through"}))
    expect(scene.visit.answers.last).to_contain_text("through")
    group = scene.visit.page.locator("details.calls")
    expect(group.locator("> summary")).to_contain_text("3 steps")
    expect(group.locator("> summary")).to_contain_text("1 failed")
    expect(group).not_to_have_attribute("open", "")
    group.locator("> summary").click()
    rows = group.locator("details.call")
    expect(rows).to_have_count(3)
    expect(rows.nth(1).locator(".exit")).to_have_text("exit 2")
    expect(rows.nth(0).locator(".exit")).to_have_count(0)
    expect(rows.nth(2).locator("summary small")).to_contain_text("s")
    scene.picture("tools")
    scene.visit.answers.last.locator(".why-link").click()
    ended = scene.visit.page.locator(".timeline .result")
    expect(ended).to_have_count(3)
    expect(ended.nth(1).locator(".bad")).to_have_text("exit 2")
    expect(ended.locator(".bad")).to_have_count(1)


def test_code_is_coloured_and_copied_and_nothing_is_loaded_from_elsewhere(scene: Scene) -> None:
    scene.fresh("code")
    asked: list[str] = []
    scene.visit.page.on("request", lambda request: asked.append(request.url))
    scene.visit.say(script({"text": ANSWER}))
    answer = scene.visit.answers.last
    expect(answer.locator(".t-keyword").first).to_have_text("def")
    expect(answer.locator(".t-comment")).to_have_text("# a comment")
    expect(answer.locator("pre")).to_have_text(CODE)
    expect(answer.get_by_role("checkbox")).to_have_count(2)
    expect(answer.get_by_role("checkbox").first).to_be_checked()
    expect(answer.locator("td")).to_have_text(["1", "2"])
    expect(answer.locator("td").first).to_have_css("text-align", "left")
    expect(answer.locator("td").last).to_have_css("text-align", "right")
    assert answer.locator("img").count() == 0
    answer.get_by_role("button", name="Copy the code").click()
    assert scene.visit.page.evaluate("navigator.clipboard.readText()") == CODE
    answer.get_by_role("button", name="Copy", exact=True).click()
    until(
        lambda: scene.visit.page.evaluate("navigator.clipboard.readText()") == ANSWER,
        "the answer is copied",
    )
    assert not [url for url in asked if "127.0.0.1" not in url]
    scene.picture("code")


def test_files_are_sent_by_button_paste_and_drop_and_the_agent_reads_them(scene: Scene) -> None:
    scene.fresh("files")
    page = scene.visit.page
    notes = FilePayload(name="my notes.txt", mimeType="text/plain", buffer=b"bring milk")
    page.locator("input[type=file]").set_input_files([notes])
    expect(page.locator(".shelf li")).to_contain_text("my notes.txt")
    drop = """([bytes, kind]) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(bytes)], "point.png", { type: "image/png" }));
      const target = document.querySelector(kind === "drop" ? ".chat" : "textarea");
      const made = kind === "drop"
        ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
        : new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
      target.dispatchEvent(made);
    }"""
    page.evaluate(drop, [list(png()), "drop"])
    page.evaluate(drop, [list(png()), "paste"])
    expect(page.locator(".shelf li small")).to_have_count(3)
    expect(page.locator(".shelf").get_by_text("uploading…")).to_have_count(0)
    scene.visit.say("run cat received/web-main/*notes.txt")

    expect(scene.visit.answers.last).to_contain_text("bring milk")
    mine = scene.visit.mine.last
    expect(mine.locator(".file a").first).to_have_text("my_notes.txt")
    expect(mine.locator("img.picture")).to_have_count(2)
    assert mine.locator("img.picture").first.evaluate("each => each.decode().then(() => true)")
    with page.expect_download() as coming:
        mine.locator(".file a").first.click()
    assert Path(coming.value.path()).read_bytes() == b"bring milk"
    expect(page.locator(".shelf li")).to_have_count(0)
    scene.picture("files")


def test_a_file_of_the_agent_is_shown_if_its_content_is_a_picture(scene: Scene) -> None:
    (scene.work / "shown.png").write_bytes(png())
    (scene.work / "lie.png").write_text("<script>alert(1)</script>")
    scene.fresh("pictures")
    send = [{"tool": "send_file", "arguments": {"path": name}} for name in ("shown.png", "lie.png")]
    scene.visit.say(script({"calls": send}, {"text": "sent"}))
    cards = scene.visit.page.locator(".file-card")
    expect(cards).to_have_count(2)
    expect(cards.filter(has_text="shown.png").locator("img")).to_have_count(1)
    expect(cards.filter(has_text="lie.png").locator("img")).to_have_count(0)
    # Without words of its own, a file is named once.
    expect(scene.visit.answers.locator(".words", has_text="lie.png")).to_have_count(0)
    # In words of the agent, a picture of ours is shown; what is none is not.
    ours = cards.filter(has_text="shown.png").locator("img").get_attribute("src")
    lie = cards.filter(has_text="lie.png").locator("a").get_attribute("href")
    text = f"![a point]({ours}) ![a lie]({lie}) ![away](/api/v1/status) through"
    scene.visit.say(script({"text": text}))
    answer = scene.visit.answers.last
    expect(answer).to_contain_text("a lie ![away](/api/v1/status) through")
    expect(answer.locator("img")).to_have_count(1)
    assert answer.locator("img").evaluate("each => each.decode().then(() => each.alt)") == "a point"
    scene.picture("pictures")


def test_a_message_is_edited_and_sent_again(scene: Scene) -> None:
    scene.fresh("edited")
    scene.visit.say("echo one")
    expect(scene.visit.answers.last).to_contain_text("one")
    scene.visit.mine.first.get_by_role("button", name="Edit and send again").click()
    expect(scene.visit.message_box).to_have_value("echo one")
    expect(scene.visit.message_box).to_be_focused()
    scene.visit.message_box.press_sequentially(" more")
    scene.visit.message_box.press("Enter")
    expect(scene.visit.answers.last).to_contain_text("one more")
    expect(scene.visit.mine).to_have_count(2)


def test_commands_are_completed_as_they_are_typed(scene: Scene) -> None:
    scene.fresh("slash")
    page, box = scene.visit.page, scene.visit.message_box
    box.press_sequentially("/st")
    offered = page.get_by_role("option")
    expect(offered.first).to_contain_text("/stop")
    expect(box).to_have_attribute("aria-activedescendant", "command-0")
    scene.picture("slash")
    box.press("ArrowDown")
    box.press("Tab")
    expect(box).to_have_value("/status ")
    expect(offered).to_have_count(0)
    box.press("Enter")
    expect(page.locator(".notice").last).to_be_visible()


def test_a_message_behind_a_turn_looks_queued_and_can_be_dropped(scene: Scene) -> None:
    scene.fresh("queued")
    scene.visit.say(ENDLESS)
    expect(scene.visit.page.locator(".dots")).to_be_visible()
    scene.visit.say("echo behind it")
    queued = scene.visit.page.locator(".queued")
    expect(queued).to_contain_text("Queued")
    scene.picture("queued")
    queued.get_by_role("button", name="Drop").click()
    expect(queued).to_have_count(0)
    expect(scene.visit.mine.last).to_contain_text("Not answered.")
    scene.visit.press("Stop the turn")
    expect(scene.visit.page.locator(".dots")).to_have_count(0)


def test_a_queued_message_stands_below_the_running_turn_until_its_own_begins(scene: Scene) -> None:
    """Red before: it stood above the dots and the calls of the turn that it waits for."""
    scene.fresh("order")
    page, go = scene.visit.page, scene.work / "go"
    scene.visit.say(f"run until [ -e {go} ]; do sleep 0.1; done; echo over")
    expect(page.locator("details.call .mark")).to_have_attribute("aria-label", "running")
    scene.visit.say("echo behind it")
    expect(page.locator(".tail:has(.dots) ~ .queue .queued")).to_contain_text("behind it")
    scene.picture("queued-below")
    go.touch()
    expect(page.locator(".queued")).to_have_count(0)
    said = page.locator(".items .mine .said, .items .agent .words")
    expect(said).to_have_text(
        [re.compile("^run until"), re.compile("over"), "echo behind it", "behind it"]
    )


def test_a_failure_stands_out_and_can_be_retried(scene: Scene) -> None:
    scene.fresh("failing")
    scene.visit.say(script({"refuse": "no such model"}))
    failure = scene.visit.page.locator(".failure")
    expect(failure).to_have_count(1)
    scene.picture("failure")
    failure.get_by_role("button", name="Retry").click()
    expect(failure.first).to_contain_text("Asked again.")
    expect(failure).to_have_count(2)


def test_an_answered_message_can_be_asked_again(scene: Scene) -> None:
    """Issue 19, item 2: copy, retry, why. Retry is a new turn with the same words, once."""
    scene.fresh("anew")
    scene.visit.say("echo once more")
    expect(scene.visit.answers).to_have_count(1)
    foot = scene.visit.answers.first.locator("footer")
    expect(foot.get_by_role("button")).to_have_count(2)
    expect(foot.get_by_role("button", name="Copy")).to_have_count(1)
    expect(foot.locator(".why-link")).to_have_count(1)
    scene.visit.answers.first.hover()
    scene.picture("answer-actions")
    foot.get_by_role("button", name="Retry").click()
    expect(foot).to_contain_text("Asked again.")
    expect(scene.visit.answers).to_have_count(2)
    expect(scene.visit.answers.last).to_contain_text("once more")
    expect(scene.visit.mine).to_have_count(2)
    scene.picture("asked-anew")
    scene.visit.page.reload()
    expect(scene.visit.answers).to_have_count(2)
    scene.visit.answers.first.get_by_role("button", name="Retry").click()
    expect(scene.visit.answers.first).to_contain_text("was asked again as")
    expect(scene.visit.answers).to_have_count(2)


def test_chats_are_renamed_pinned_archived_and_deleted(scene: Scene) -> None:
    scene.fresh("kept")
    page, chats = scene.visit.page, scene.visit.page.locator(".chats")
    scene.visit.say("echo keep me")
    expect(scene.visit.answers.last).to_contain_text("keep me")
    item = chats.locator("li.here")

    def choose(words: str) -> None:
        scene.visit.show_rail()
        item.get_by_role("button").click()
        page.get_by_role("menuitem", name=words).click()

    choose("Rename")
    page.get_by_label("Name of the chat").fill("The garden")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(page.locator("#bar h1")).to_have_text("The garden")
    choose("Pin")
    expect(chats.locator("h2").first).to_have_text("Pinned")
    choose("Archive")
    expect(chats.locator("summary")).to_have_text("Archived (1)")
    scene.visit.show_rail()
    chats.locator("summary").click()
    choose("Unarchive")
    scene.picture("chats")
    choose("Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(chats.get_by_text("The garden")).to_have_count(0)
    assert "keep me" not in str(scene.one.asked(ask="list", kind="message"))


def test_what_was_said_is_found(scene: Scene) -> None:
    scene.fresh("found")
    scene.visit.say("echo a rare xylophone")
    expect(scene.visit.answers.last).to_contain_text("xylophone")
    scene.fresh("elsewhere")
    search = scene.visit.page.get_by_label("Search chats")
    scene.visit.show_rail()
    search.fill("xylo")
    hits = scene.visit.page.locator(".hits li")
    expect(hits).to_have_count(2)
    expect(hits.first.locator("mark")).to_have_text("xylophone")
    scene.picture("search")
    hits.first.get_by_role("link").click()
    expect(scene.visit.answers.last).to_contain_text("xylophone")
    scene.visit.show_rail()
    search.fill("")
    expect(hits).to_have_count(0)


@pytest.mark.parametrize("rare, lines", [("zither", 200), ("lute", 20)])
def test_a_hit_is_scrolled_to_and_stands_out(scene: Scene, rare: str, lines: int) -> None:
    """Also one that is so old that the page has not loaded it: then the whole chat is loaded."""
    chat = f"hit-{rare}"
    for number in range(14):
        words = rare if number == 2 else "garden"
        scene.one.wait_state(scene.one.say(chat, f"echo {words} {number}"), "done")
    scene.fresh(f"before-{chat}")
    page = scene.visit.page

    def newest(route: Route) -> None:
        seen = scene.one.asked(ask="list", kind="line", limit=lines)["lines"][-1]["seq"]
        route.continue_(url=route.request.url.replace("from=recent", f"after={seen}"))

    if lines < 100:
        page.route("**/events?*from=recent", newest)
    search = page.get_by_label("Search chats")
    scene.visit.show_rail()
    search.fill(rare)
    hits = page.locator(".hits li").filter(has_text=rare)
    expect(hits).to_have_count(2)
    for hit, kind in ((hits.nth(1), "mine"), (hits.nth(0), "agent")):
        scene.visit.show_rail()
        hit.get_by_role("link").click()
        found = page.locator(f".item.found.{kind}")
        expect(found).to_contain_text(f"{rare} 2")
        expect(found).to_be_in_viewport()
        expect(scene.visit.answers.last).not_to_be_in_viewport()
    page.unroute("**/events?*from=recent")
    scene.visit.show_rail()
    search.fill("")


def test_questions_are_counted_in_the_rail(scene: Scene) -> None:
    scene.fresh("asking")
    scene.visit.say("ask me which way: left or right")
    count = scene.visit.page.locator(".count")
    expect(count).to_contain_text("1")
    scene.visit.page.get_by_role("button", name="left", exact=True).click()
    expect(scene.visit.answers.last).to_contain_text("You said: left.")


def test_the_model_is_named_and_leads_to_the_settings(scene: Scene) -> None:
    scene.fresh("model")
    scene.visit.page.locator(".model").click()
    body = scene.visit.page.locator(".board-body")
    expect(body).to_contain_text("[gateway]")
    expect(body.locator("tr.is-set", has_text="workdir")).to_contain_text(
        "KOBOSHI__GATEWAY__WORKDIR"
    )
    scene.picture("settings")


def test_a_long_turn_that_ends_out_of_sight_is_notified(scene: Scene) -> None:
    """The page is told that a minute has passed; the notice of the browser is caught."""
    page = scene.visit.page
    page.evaluate(
        """async () => {
          window.told = [];
          window.Notification = class {
            static permission = "granted";
            constructor(title, { body }) { window.told.push([title, body]); }
          };
          Object.defineProperty(document, "hidden", { value: true, configurable: true });
          localStorage.setItem("koboshi.notify", "yes");
          const { turnEnded } = await import("/static/notify.js");
          turnEnded({ title: "short", words: "no word", lasted: 1000 });
          turnEnded({ title: "The garden", words: "It is green.", lasted: 60000 });
          delete document.hidden;
        }"""
    )
    assert page.evaluate("window.told") == [["The garden", "It is green."]]

    # And as the chat tells of it: here, a moment of a turn counts as a minute.
    scene.fresh("long")
    page.evaluate(
        """() => {
          const parse = Date.parse;
          const begun = Date.now();
          Date.parse = (text) => begun + (parse(text) - begun) * 10000;
          Object.defineProperty(document, "hidden", { value: true, configurable: true });
          window.told.length = 0;
        }"""
    )
    scene.visit.say("echo a long turn")
    until(lambda: page.evaluate("window.told"), "the browser is told")
    assert page.evaluate("window.told") == [["echo a long turn", "a long turn"]]
    page.reload()
    expect(scene.visit.message_box).to_be_visible()
