"""Deliveries to Slack: shown letter by letter, refused for a reason, and found by their key."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from koboshi.channels.slack.api import SlackApi
from koboshi.channels.slack.channel import SlackChannel
from koboshi.channels.slack.receiving import CAN_READ_KEYS
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import OutFile
from koboshi.domain.outbox import Delivery, Later, Near, Refused, Sent, Unsure
from koboshi.domain.phrases import DUPLICATE_LABEL
from koboshi.domain.route import Route
from koboshi.domain.transcript import Choice
from koboshi.http_pool import HttpPool
from tests.channels.fakes import FakeClock, FakeGateway, until
from tests.channels.slack_rig import NOTHING_NEAR, SlackRig, receiving, slack_rig_at
from tests.channels.telegram_rig import owed
from tests.fakes.slack.limits import DISTRIBUTED
from tests.fakes.slack.server import serving
from tests.fakes.slack.state import Post
from tests.harness.polling import until_asked

KEY = "0123456789-7"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with serving() as fake, slack_rig_at(fake, home=tmp_path) as made:
        yield made


def due(rig: SlackRig, text: str = "hello", **fields: Any) -> Delivery:
    return owed(rig.route, text, **{"send_key": KEY, **fields})


def said(rig: SlackRig) -> list[Post]:
    return rig.fake.world.said(rig.place)


async def sent(channel: SlackChannel, delivery: Delivery) -> Sent:
    outcome = await channel.send(delivery)
    assert isinstance(outcome, Sent), outcome
    return outcome


async def test_markdown_is_shown_and_every_letter_is_itself(rig: SlackRig) -> None:
    text = "**bold** and `code` <!channel> &amp; <@U1>\n\n```sh\nrm -rf <dir>\n```\n\n- [here](https://example.org)"
    await sent(rig.channel, due(rig, text))
    (post,) = said(rig)
    assert "<!channel>" not in post.text
    assert "&lt;!channel&gt;" in post.text
    leaves = [
        leaf
        for block in post.body["blocks"]
        for element in block["elements"]
        for leaf in element["elements"]
    ]
    assert {"type": "text", "text": "bold", "style": {"bold": True}} in leaves
    assert {"type": "link", "url": "https://example.org", "text": "here"} in leaves
    kinds = [element["type"] for element in post.body["blocks"][0]["elements"]]
    assert "rich_text_preformatted" in kinds
    assert "rm -rf <dir>" in post.shown


async def test_what_a_person_approves_is_shown_letter_by_letter(rig: SlackRig) -> None:
    command = "echo '*not bold*' `date` <https://example.org|harmless> :smile: &lt;"
    text = f"May I run this?\n{command}\nin the folder *x*"
    begin = text.index(command)
    choices = (Choice(choice_id="yes", label="Yes"), Choice(choice_id="no", label="No"))
    await sent(
        rig.channel,
        due(rig, text, literal=(begin, begin + len(command)), choices=choices, question=4),
    )
    (post,) = said(rig)
    (shown,) = [
        element
        for element in post.body["blocks"][0]["elements"]
        if element["type"] == "rich_text_preformatted"
    ]
    assert shown["elements"] == [{"type": "text", "text": command}]
    assert post.labels == ["Yes", "No"]
    assert "*x*" in post.shown


async def test_words_in_what_is_approved_cannot_pass_for_ours_without_blocks(rig: SlackRig) -> None:
    """Issue 15: Slack refuses the blocks, and notifications show none."""
    command = "ls\n\nIt stays inside the boundary.\n\nrm -rf ~"
    text = f"May I run this?\n\n{command}\n\nAsked by Ann."
    begin = text.index(command)
    rig.fake.faults.add("status", "chat.postMessage", description="invalid_blocks")
    await sent(rig.channel, due(rig, text, literal=(begin, begin + len(command))))

    (post,) = said(rig)
    lines = post.text.replace("&gt;", ">").split("\n")
    assert [line[2:] for line in lines if line.startswith("> ")] == command.split("\n")
    assert [line for line in lines if not line.startswith("> ")] == [
        *("May I run this?", "", "", "Asked by Ann."),
    ]


async def test_a_thread_is_kept_and_the_key_goes_along(rig: SlackRig) -> None:
    root = rig.fake.world.say(rig.place, rig.ann, "begin")
    route = replace(rig.route, thread=root.ts)
    await sent(rig.channel, replace(due(rig), route=route))
    (post,) = said(rig)
    assert post.thread_ts == root.ts
    assert post.metadata == {"event_type": "koboshi_delivery", "event_payload": {"key": KEY}}


async def test_a_duplicate_says_so(rig: SlackRig) -> None:
    await sent(rig.channel, due(rig, may_be_duplicate=True))
    assert said(rig)[0].shown.startswith(DUPLICATE_LABEL.strip())


@pytest.mark.parametrize(
    "error, kind",
    [
        ("channel_not_found", Refused),
        ("is_archived", Refused),
        ("msg_too_long", Refused),
        ("invalid_auth", Later),
        ("missing_scope", Later),
        ("service_unavailable", Later),
        ("internal_error", Unsure),
        ("fatal_error", Unsure),
    ],
)
async def test_each_answer_has_its_meaning(rig: SlackRig, error: str, kind: type) -> None:
    rig.fake.faults.add("status", "chat.postMessage", description=error)
    assert isinstance(await rig.channel.send(due(rig)), kind)
    assert not said(rig)


@pytest.mark.parametrize(
    "act, moment, status",
    [
        ("drop", "before", 0),
        ("drop", "after", 0),
        ("garble", "after", 0),
        ("status", "before", 503),
        ("status", "before", 404),
    ],
)
async def test_an_answer_that_is_lost_is_an_unknown_outcome(
    rig: SlackRig, act: str, moment: str, status: int
) -> None:
    """Slack itself answers with 200, also where it refuses: a page is of what stands before it."""
    rig.fake.faults.add(act, "chat.postMessage", moment=moment, status=status)
    assert isinstance(await rig.channel.send(due(rig)), Unsure)


async def test_quiet_is_kept_for_as_long_as_slack_asks(rig: SlackRig) -> None:
    rig.fake.faults.add("too_many", "chat.postMessage", seconds=30)
    outcome = await rig.channel.send(due(rig))
    assert isinstance(outcome, Later)
    assert outcome.wait_ms == 30_000


async def test_blocks_that_are_refused_are_sent_as_plain_words(rig: SlackRig) -> None:
    rig.fake.faults.add("status", "chat.postMessage", description="invalid_blocks")
    await sent(rig.channel, due(rig, "**bold** <x>"))
    (post,) = said(rig)
    assert post.text == "bold &lt;x&gt;"


async def test_a_place_that_is_none_is_refused(rig: SlackRig) -> None:
    route = Route(channel=rig.route.channel, chat="-100", thread="")
    assert isinstance(await rig.channel.send(replace(due(rig), route=route)), Refused)
    assert not rig.fake.history.of("chat.postMessage")


async def test_a_send_whose_answer_was_lost_is_found_by_its_key(rig: SlackRig) -> None:
    """S146: also on a page behind many others, and in a thread."""
    async with receiving(rig.channel, FakeGateway().accept):
        before = rig.fake.world.say(rig.place, rig.ann, "before")
        near = Near(before=(before.ts,), known=(), is_alone=True)
        rig.fake.faults.add("drop", "chat.postMessage", moment="after")
        assert isinstance(await rig.channel.send(due(rig)), Unsure)
        (post,) = said(rig)
        for number in range(40):
            rig.fake.world.say(rig.place, rig.ann, f"{number}")
        rig.fake.tiers.history = replace(DISTRIBUTED, per_minute=50)
        assert await rig.channel.find(due(rig), near) == Sent(platform_id=post.ts)
        thread = replace(rig.route, thread=before.ts)
        in_thread = replace(due(rig, send_key="other-8"), route=thread)
        assert isinstance(await rig.channel.send(in_thread), Sent)
        found = await rig.channel.find(in_thread, near)
        assert found == Sent(platform_id=said(rig)[-1].ts)


async def test_a_send_that_never_arrived_is_certainly_not_there(
    rig: SlackRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("koboshi.channels.slack.channel.SETTLE_SECONDS", 0)
    async with receiving(rig.channel, FakeGateway().accept):
        rig.fake.faults.add("drop", "chat.postMessage")
        assert isinstance(await rig.channel.send(due(rig)), Unsure)
        assert isinstance(await rig.channel.find(due(rig), NOTHING_NEAR), Later)


async def test_a_look_goes_on_where_the_limit_stopped_it(rig: SlackRig) -> None:
    async with receiving(rig.channel, FakeGateway().accept):
        await sent(rig.channel, due(rig))
        for number in range(20):
            rig.fake.world.say(rig.place, rig.ann, f"{number}")
        rig.fake.tiers.history, rig.fake.tiers.is_on = DISTRIBUTED, True
        rig.fake.tiers.minute_s = 1
        outcome = await rig.channel.find(due(rig), NOTHING_NEAR)
        assert isinstance(outcome, Unsure)
        assert outcome.wait_ms > 0
        rig.fake.tiers.is_on = False

        async def looked() -> Sent | None:
            found = await rig.channel.find(due(rig), NOTHING_NEAR)
            return found if isinstance(found, Sent) else None

        await until_asked(looked, "the time that Slack asked for is over")
        first, refused, last = rig.fake.history.of("conversations.history")
        assert (first.args.get("latest"), refused.error) == (None, "ratelimited")
        assert last.args["latest"] == refused.args["latest"]


async def test_without_the_scope_nothing_is_known(rig: SlackRig) -> None:
    """What cannot be read must not be taken for absent: that would be said twice."""
    rig.fake.world.scopes.discard(CAN_READ_KEYS)
    async with receiving(rig.channel, FakeGateway().accept):
        await sent(rig.channel, due(rig))
        assert await rig.channel.find(due(rig), NOTHING_NEAR) is None


async def test_files_go_out_with_their_words_and_are_found(rig: SlackRig, tmp_path: Path) -> None:
    (tmp_path / "answer.md").write_text("the whole answer")
    file = OutFile(path="answer.md", name="answer.md", size=16)
    async with receiving(rig.channel, FakeGateway().accept):
        rig.fake.faults.add("drop", "files.completeUploadExternal", moment="after")
        delivery = due(rig, "here it is", file=file)
        assert isinstance(await rig.channel.send(delivery), Unsure)
        (post,) = said(rig)
        assert (post.text, post.body["files"][0]["name"]) == ("here it is", "answer.md")
        found = await rig.channel.find(delivery, NOTHING_NEAR)
        assert found == Sent(platform_id=post.ts)
        with_others = replace(NOTHING_NEAR, is_alone=False)
        assert await rig.channel.find(delivery, with_others) is None


async def test_an_upload_that_fails_was_certainly_not_sent(rig: SlackRig, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words")
    file = OutFile(path="a.txt", name="a.txt", size=5)
    rig.fake.faults.add("drop", "files.getUploadURLExternal")
    assert isinstance(await rig.channel.send(due(rig, file=file)), Later)
    gone = OutFile(path="gone.txt", name="gone.txt", size=5)
    assert isinstance(await rig.channel.send(due(rig, file=gone)), Refused)


async def test_files_of_people_are_fetched(rig: SlackRig, tmp_path: Path) -> None:
    gateway = FakeGateway()
    async with receiving(rig.channel, gateway.accept):
        upload = rig.fake.world.upload(rig.ann, "notes.txt", b"my notes")
        event = rig.fake.world.event_of(rig.fake.world.say(rig.place, rig.ann, "", files=[upload]))
        await until(lambda: event.is_over)
    ((_, inbound),) = gateway.stored.values()
    (attachment,) = inbound.words.files
    assert attachment.size == 8
    path = tmp_path / attachment.path
    await rig.channel.fetch(attachment, path)
    assert path.read_bytes() == b"my notes"
    rig.fake.world.scopes.discard("files:read")
    with pytest.raises(FileNotHad):
        await rig.channel.fetch(attachment, tmp_path / "again" / attachment.path)


async def test_the_token_goes_to_no_other_host() -> None:
    lanes = HttpPool(count_max=1, timeout=httpx2.Timeout(5))
    api = SlackApi(lanes=lanes, base="https://slack.com/api", token="xoxb", clock=FakeClock())
    for address in ("http://files.slack.com/x", "https://slack.com.example.org/x", "file:///x"):
        with pytest.raises(FileNotHad):
            async with api.download(address, is_page=False):
                pass
    await lanes.aclose()


async def test_work_is_shown_in_threads_and_edits_replace(rig: SlackRig) -> None:
    root = rig.fake.world.say(rig.place, rig.ann, "begin")
    await rig.channel.typing(replace(rig.route, thread=root.ts))
    assert rig.place.status == {root.ts: "is working…"}
    arrived = await sent(rig.channel, due(rig))
    await rig.channel.edit(rig.route, arrived.platform_id, "other *words*")
    assert said(rig)[0].shown == "other *words*"
