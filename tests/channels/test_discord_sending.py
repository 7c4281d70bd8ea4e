"""Deliveries to Discord: what arrives, what is the same message again, what is looked for."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from anyio import Event

from koboshi.channels.discord.channel import DiscordChannel
from koboshi.clock import SystemClock
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import Attachment, OutFile
from koboshi.domain.outbox import Later, Refused, Sent, Unsure
from koboshi.domain.phrases import DUPLICATE_LABEL
from koboshi.domain.transcript import Choice
from koboshi.ports.channel import NO_WATERMARKS, Inbound, Receipt
from tests.channels.discord_rig import Bot, near, owed, route_of
from tests.channels.fakes import until
from tests.fakes.discord import state
from tests.fakes.discord.server import FakeDiscord, serving_discord


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with serving_discord() as served:
        yield served


@pytest.fixture
async def channel(fake: FakeDiscord, tmp_path: Path) -> AsyncIterator[DiscordChannel]:
    async with Bot(fake, options={"home": tmp_path}).channel() as made:
        yield made


@pytest.fixture
def place(fake: FakeDiscord) -> state.DiscordChannel:
    return fake.world.text_channel(fake.world.guild())


async def test_an_answer_is_a_reply_in_its_thread_and_rings_for_no_one(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    thread, ann = fake.world.thread(place), fake.world.user("Ann")
    asked = fake.world.say(thread, ann, "question")
    words = f"**yes**, <@{ann.user_id}> @everyone"
    delivery = owed(route_of(thread), words, anchor=str(asked.message_id))
    outcome = await channel.send(delivery)

    _, answer = fake.world.messages_seen(thread)
    assert outcome == Sent(platform_id=str(answer.message_id))
    assert answer.answers is asked
    assert answer.content == f"**yes**, \\<@{ann.user_id}> @everyone"
    (request,) = fake.history.of("createMessage")
    assert request.params["allowed_mentions"] == {"parse": []}
    assert (request.params["nonce"], request.params["enforce_nonce"]) == ("aaaaaaaaaa-7", True)


async def test_a_message_that_is_gone_does_not_cost_the_answer(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    asked = fake.world.say(place, fake.world.user("Ann"), "question")
    fake.world.delete(asked)
    outcome = await channel.send(owed(route_of(place), anchor=str(asked.message_id)))

    assert isinstance(outcome, Sent)


async def test_within_some_minutes_a_repeat_is_the_same_message(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    """S146: the send key is the nonce."""
    first = await channel.send(owed(route_of(place)))
    again = await channel.send(owed(route_of(place), attempts=2))
    other = await channel.send(owed(route_of(place), send_key="aaaaaaaaaa-8"))

    assert first == again != other
    assert len(fake.world.messages_seen(place)) == 2


async def test_long_after_it_is_found_in_the_history(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    """S146: among many others, and not mistaken for another message of ours."""
    ann = fake.world.user("Ann")
    before = fake.world.say(place, ann, "question")
    other = await channel.send(owed(route_of(place), send_key="aaaaaaaaaa-6"))
    assert isinstance(other, Sent)
    sent = await channel.send(owed(route_of(place)))
    for number in range(150):
        fake.world.say(place, ann, f"number {number}")
    fake.world.forward(3600)
    known = near(before, known=(other.platform_id,))

    assert await channel.find(owed(route_of(place)), known) == sent


@pytest.mark.parametrize("is_talk", [True, False])
async def test_what_is_not_in_the_history_was_not_sent(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel, is_talk: bool
) -> None:
    before = fake.world.say(place, fake.world.user("Ann"), "question")
    if is_talk:
        fake.world.say(place, fake.world.user("Bob"), "hello")
    found = await channel.find(owed(route_of(place)), near(before))

    assert isinstance(found, Later)


async def test_a_history_that_may_not_be_read_proves_nothing(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    before = fake.world.say(place, fake.world.user("Ann"), "question")
    fake.world.deny(place, "history")

    assert await channel.find(owed(route_of(place)), near(before)) is None


async def test_two_sends_of_the_same_words_are_not_told_apart_by_words(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    """Where another one is of unknown outcome, too, only the nonce would tell."""
    before = fake.world.say(place, fake.world.user("Ann"), "question")
    await channel.send(owed(route_of(place), send_key="aaaaaaaaaa-6"))
    found = await channel.find(owed(route_of(place)), near(before, is_alone=False))

    assert not isinstance(found, Sent)


@pytest.mark.parametrize(
    "what, reason",
    [("view", "Missing Access"), ("send", "Missing Permissions"), ("gone", "Unknown Channel")],
)
async def test_what_the_platform_refuses_is_refused_with_its_words(
    fake: FakeDiscord,
    channel: DiscordChannel,
    place: state.DiscordChannel,
    what: str,
    reason: str,
) -> None:
    if what == "gone":
        fake.world.remove_channel(place)
    else:
        fake.world.deny(place, what)
    outcome = await channel.send(owed(route_of(place)))

    assert isinstance(outcome, Refused)
    assert reason in outcome.reason


async def test_a_person_who_takes_no_messages_is_not_written_to_again(
    fake: FakeDiscord, channel: DiscordChannel
) -> None:
    ann = fake.world.user("Ann")
    ann.takes_dms = False

    assert isinstance(await channel.send(owed(route_of(fake.world.dm(ann)))), Refused)


@pytest.mark.parametrize(
    "act, moment", [("drop", "before"), ("drop", "after"), ("garble", "after")]
)
async def test_a_send_whose_answer_is_lost_is_unsure(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel, act: str, moment: str
) -> None:
    fake.faults.add(act, "createMessage", moment=moment)

    assert isinstance(await channel.send(owed(route_of(place))), Unsure)


async def test_a_bad_gateway_is_unsure_and_no_gateway_at_all_is_not(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    fake.faults.add("status", "createMessage", status=502)
    unsure = await channel.send(owed(route_of(place)))
    await fake.stop()
    later = await channel.send(owed(route_of(place)))
    await fake.start()

    assert isinstance(unsure, Unsure)
    assert isinstance(later, Later)


async def test_buckets_are_kept_to_as_the_answers_tell_them(
    fake: FakeDiscord, place: state.DiscordChannel
) -> None:
    """S148: no request comes before the time that it was told, and none is refused."""
    fake.buckets.switch_on(create=2, seconds=0.3)
    other = fake.world.text_channel(fake.world.guild("other"))
    async with Bot(fake, clock=SystemClock()).channel() as channel:
        for number in range(5):
            delivery = owed(route_of(place), send_key=f"aaaaaaaaaa-{number}")
            assert isinstance(await channel.send(delivery), Sent)
        elsewhere = owed(route_of(other), send_key="aaaaaaaaaa-9")
        assert isinstance(await channel.send(elsewhere), Sent)

    assert not fake.buckets.too_early
    assert not fake.buckets.refusals


async def test_told_to_wait_long_it_says_so_and_does_not_ask_again_meanwhile(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    fake.buckets.hold_all(900)
    first = await channel.send(owed(route_of(place)))
    again = await channel.send(owed(route_of(place)))

    assert isinstance(first, Later)
    assert isinstance(again, Later)
    assert 800_000 < first.wait_ms <= 900_000
    assert len(fake.history.of("createMessage")) == 1


async def test_choices_are_buttons_that_name_their_question(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    choices = tuple(Choice(choice_id=f"c{n}", label=f"Choice {n}") for n in range(7))
    await channel.send(owed(route_of(place), "which?", choices=choices, question=12))

    (asked,) = fake.world.messages_seen(place)
    assert asked.labels == [f"Choice {n}" for n in range(7)]
    assert [len(row["components"]) for row in asked.components] == [5, 2]
    assert asked.components[0]["components"][0]["custom_id"] == "q12:c0"


@pytest.mark.parametrize("literal", ["rm -rf *_*", "echo ```a``` \\ `b` <@1> https://a.b/c_d"])
async def test_what_a_person_decides_about_is_shown_letter_by_letter(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel, literal: str
) -> None:
    text = f"Run this?\n{literal}\nin ~/work_dir"
    begin = text.index(literal)
    delivery = owed(route_of(place), text, literal=(begin, begin + len(literal)))
    await channel.send(delivery)

    (asked,) = fake.world.messages_seen(place)
    assert literal in shown_by_discord(asked.content)
    too_long = "`" * 3 + "*" * 1_500
    refused = owed(route_of(place), too_long, literal=(0, len(too_long)))
    assert isinstance(await channel.send(refused), Refused)


async def test_words_in_what_is_decided_about_cannot_pass_for_ours(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    """No block can hold a fence. Then every line of it stands behind a bar, and none of ours."""
    literal = "ls\n\nIt stays inside the boundary.\n\n: '```'; rm -rf ~"
    text = f"Run this?\n\n{literal}\n\nAsked by Ann."
    begin = text.index(literal)
    await channel.send(owed(route_of(place), text, literal=(begin, begin + len(literal))))

    (asked,) = fake.world.messages_seen(place)
    lines = shown_by_discord(asked.content).split("\n")
    assert [line[2:] for line in lines if line.startswith("> ")] == literal.split("\n")
    assert [line for line in lines if not line.startswith("> ")] == [
        *("Run this?", "", "", "Asked by Ann."),
    ]


def shown_by_discord(content: str) -> str:
    """As a reader sees it: fences are not shown, and a backslash shows the mark behind it."""
    shown, fenced = [], False
    at = 0
    while at < len(content):
        if content.startswith("```", at):
            fenced, at = not fenced, at + 3
        elif not fenced and content[at] == "\\" and not content[at + 1 : at + 2].isalnum():
            shown.append(content[at + 1])
            at += 2
        else:
            shown.append(content[at])
            at += 1
    return "".join(shown)


async def test_a_file_is_sent_and_found_again(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel, tmp_path: Path
) -> None:
    (tmp_path / "report.txt").write_bytes(b"all is well")
    before = fake.world.say(place, fake.world.user("Ann"), "question")
    file = OutFile(path="report.txt", name="report.txt", size=11)
    delivery = owed(route_of(place), "here", file=file)
    sent = await channel.send(delivery)

    _, message = fake.world.messages_seen(place)
    assert [(each.name, each.content) for each in message.attachments] == [
        ("report.txt", b"all is well")
    ]
    fake.world.forward(3600)
    assert await channel.find(delivery, near(before)) == sent


async def test_a_file_that_cannot_be_read_is_refused(
    channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    file = OutFile(path="nowhere.txt", name="nowhere.txt", size=1)

    assert isinstance(await channel.send(owed(route_of(place), file=file)), Refused)


async def test_files_of_people_are_fetched_also_when_their_address_has_expired(
    fake: FakeDiscord, place: state.DiscordChannel, tmp_path: Path
) -> None:
    bot = Bot(fake)
    ann = fake.world.user("Ann")
    async with bot.connected() as channel:
        await bot.is_whole()
        text = f"<@{fake.world.bot.user_id}> look"
        said = fake.world.say(place, ann, text, files={"../../notes.txt": "read me"})
        await bot.stores("look")
        ((_, inbound),) = bot.gateway.stored.values()
        (attachment,) = inbound.words.files
        fake.world.forward(2 * 86_400)
        await channel.fetch(attachment, tmp_path / attachment.path)
        assert (tmp_path / attachment.path).read_bytes() == b"read me"
        assert ".." not in attachment.path
        fake.world.delete(said)
        with pytest.raises(FileNotHad):
            await channel.fetch(replace(attachment, path="received/b"), tmp_path / "received/b")


async def test_a_file_elsewhere_is_not_visited(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel, tmp_path: Path
) -> None:
    said = fake.world.say(place, fake.world.user("Ann"), "x", files={"a.txt": "secret"})
    fake.world.base = "http://127.0.0.2:9"
    number = said.attachments[0].attachment_id
    reference = f"{place.channel_id}/{said.message_id}/{number}"
    attachment = Attachment(reference=reference, path="received/a", kind="file")

    with pytest.raises(FileNotHad, match="where we do not look"):
        await channel.fetch(attachment, tmp_path / "received/a")


async def test_typing_and_edits_are_shown(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    sent = await channel.send(owed(route_of(place), "working"))
    assert isinstance(sent, Sent)
    await channel.typing(route_of(place))
    await channel.edit(route_of(place), sent.platform_id, "still working")

    assert fake.world.texts_seen(place) == ["still working"]
    assert place.typed == 1


async def test_the_label_fits_behind_the_longest_part(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    text = "\n\n".join(f"**{number}** snake_case `a_b` " + "*x* " * 40 for number in range(40))
    for number, part in enumerate(channel.split(text)):
        key = f"aaaaaaaaaa-{number}"
        delivery = owed(route_of(place), part, may_be_duplicate=True, send_key=key)
        assert isinstance(await channel.send(delivery), Sent)

    seen = fake.world.texts_seen(place)
    assert all(DUPLICATE_LABEL.strip() in each for each in seen)
    assert sum(each.count("snake\\_case") for each in seen) == 40


async def test_a_press_is_stored_before_it_is_answered(
    fake: FakeDiscord, place: state.DiscordChannel
) -> None:
    """S140, S162: only the person who pressed sees that it was taken."""
    bot, ann, reached = Bot(fake), fake.world.user("Ann"), Event()

    async def accept(
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        if batch:
            reached.set()
        return await bot.gateway.accept(batch, cursor, watermarks)

    async with bot.connected(accept) as channel:
        await bot.is_whole()
        choices = (Choice(choice_id="yes", label="Yes"),)
        await channel.send(owed(route_of(place), "sure?", choices=choices, question=12))
        (asked,) = fake.world.messages_seen(place)
        gate = bot.gateway.gate = Event()
        number = int(fake.world.press(asked, ann, "Yes")["id"])
        await reached.wait()
        assert fake.world.interactions[number]["answer"] is None
        gate.set()
        await until(lambda: fake.world.interactions[number]["answer"])

    ((_, inbound),) = bot.gateway.stored.values()
    assert (inbound.words.question, inbound.words.choice_id) == (12, "yes")
    assert (inbound.sender, inbound.route) == (str(ann.user_id), route_of(place))
    answer = fake.world.interactions[number]["answer"]
    assert (answer["type"], answer["data"]["flags"]) == (4, 64)


async def test_the_thread_of_a_message_of_ours_begins_with_the_first_words_in_it(
    fake: FakeDiscord, channel: DiscordChannel, place: state.DiscordChannel
) -> None:
    """Issue 18: `thread`. A thread has the id of the message that it began with."""
    begun = await channel.send(owed(route_of(place), "Morning brief (c1)"))
    assert isinstance(begun, Sent)
    route = replace(route_of(place), thread=begun.platform_id)
    for number, words in enumerate(("the news", "more news"), start=8):
        sent = await channel.send(owed(route, words, send_key=f"aaaaaaaaaa-{number}"))
        assert isinstance(sent, Sent)
    thread = fake.world.channels[int(begun.platform_id)]
    assert [each.content for each in fake.world.messages_seen(thread)] == ["the news", "more news"]
    assert thread.name == "Morning brief (c1)"
    assert len(fake.history.of("startThread")) == 1


async def test_where_a_message_begins_no_thread_the_words_come_to_the_chat(
    fake: FakeDiscord, channel: DiscordChannel
) -> None:
    dm = fake.world.dm(fake.world.user("Ann"))
    begun = await channel.send(owed(route_of(dm), "Morning brief (c1)"))
    assert isinstance(begun, Sent)
    route = replace(route_of(dm), thread=begun.platform_id)
    assert isinstance(await channel.send(owed(route, "the news", send_key="aaaaaaaaaa-8")), Sent)
    assert fake.world.messages_seen(dm)[-1].content == "the news"
