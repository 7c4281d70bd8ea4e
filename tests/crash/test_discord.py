"""Discord with the real gateway and real kills: nothing lost, nothing twice, in its thread."""

from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread

from tests.cli.process import koboshi
from tests.fakes.discord.state import JSON
from tests.harness.discord import a_discord_bot
from tests.harness.http import connection
from tests.harness.invariants import check_rows
from tests.harness.polling import until
from tests.harness.telegram_words import LABEL, LONG, script


async def test_killed_and_started_again_it_resumes_and_answers(home: Path) -> None:
    """S1, S145."""
    async with a_discord_bot(home) as bot:
        bot.start()
        await bot.is_whole()
        bot.say("echo one")
        await bot.hears("one")
        bot.gateway.kill()
        bot.say("echo two")
        bot.start()
        await bot.hears("two")
        await bot.comes_to_rest()

        assert bot.said() == ["one", "two"]
        assert bot.fake.gateway.sessions.identified == 1
        assert bot.fake.gateway.sessions.resumed == 1


async def test_a_planned_stop_keeps_the_session(home: Path) -> None:
    async with a_discord_bot(home) as bot:
        bot.start()
        await bot.is_whole()
        bot.gateway.terminate()
        await bot.dies()
        bot.say("echo once")
        bot.start()
        await bot.hears("once")

        assert bot.fake.gateway.sessions.resumed == 1
        assert not {1000, 1001} & {*bot.fake.gateway.closes}


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_killed_around_the_commit_that_holds_an_event(home: Path, moment: str) -> None:
    """S1, S97: how far we are is part of the same commit."""
    async with a_discord_bot(home) as bot:
        bot.start()
        await bot.is_whole()
        bot.gateway.kill()
        bot.start(crash_at=f"inbox.accept:{moment}")
        bot.say("echo once")
        await bot.dies()
        bot.start()
        await bot.hears("once")
        await bot.comes_to_rest()

        assert bot.said() == ["once"]


KNOWN = ("turns.answer:before", "turns.answer:after", "outbox.claim:before", "outbox.settle:after")


@pytest.mark.parametrize("point", KNOWN)
async def test_killed_where_it_is_known_whether_it_was_sent(home: Path, point: str) -> None:
    """S145, S146: it was certainly not sent, and is sent as it is, or it was, and is not again."""
    async with a_discord_bot(home) as bot:
        bot.start(crash_at=point)
        await until(lambda: bot.fake.gateway.sessions.identified, "it is connected")
        bot.say("echo once")
        await bot.dies()
        bot.start()
        await bot.hears("once")
        await bot.comes_to_rest()

        assert bot.said() == ["once"]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("point", ["outbox.claim:after", "outbox.settle:before"])
async def test_killed_in_the_middle_of_a_send(home: Path, point: str, late: bool) -> None:
    """S146: whether it had left or not, within the time of the nonce or long after, it is said
    once and without a label: it is looked for first."""
    async with a_discord_bot(home) as bot:
        bot.start(crash_at=point)
        await until(lambda: bot.fake.gateway.sessions.identified, "it is connected")
        bot.say("echo once")
        await bot.dies()
        if late:
            await bot.outlast_session()
        bot.start()
        await bot.hears("once")
        await bot.comes_to_rest()

        assert bot.said() == ["once"]
        assert bot.requests("getMessages")


@pytest.mark.parametrize("recorded", [True, False])
async def test_a_connection_that_breaks_in_the_middle_of_a_send(home: Path, recorded: bool) -> None:
    """S146: the answer to the send is lost."""
    async with a_discord_bot(home) as bot:
        moment = "after" if recorded else "before"
        bot.fake.faults.add("drop", "createMessage", moment=moment)
        bot.start()
        await bot.is_whole()
        bot.say("echo once")
        await bot.hears("once")
        await bot.comes_to_rest()

        assert bot.said() == ["once"]


async def test_without_the_history_the_nonce_keeps_it_from_being_said_twice(home: Path) -> None:
    """S146: a bot that may not read the history cannot look, so it repeats under the same key."""
    async with a_discord_bot(home) as bot:
        place = bot.world.text_channel(bot.world.guild())
        bot.world.deny(place, "history")
        bot.fake.faults.add("drop", "createMessage", moment="after")
        bot.start()
        await bot.is_whole()
        bot.say("echo once", place)
        rows = await bot.comes_to_rest(entries=1)

        assert bot.said(place) == ["once"]
        assert [row["state"] for row in rows.outbox] == ["delivered"]


async def test_killed_between_two_parts_of_a_long_answer(home: Path) -> None:
    """S145, S150: each part once, in order, in its thread, the first in answer to the question."""
    async with a_discord_bot(home) as bot:
        place = bot.world.text_channel(bot.world.guild())
        thread = bot.world.thread(place)
        bot.start(crash_at="outbox.claim:before:3")
        await until(lambda: bot.fake.gateway.sessions.identified, "it is connected")
        asked = bot.say(script({"text": LONG}), thread)
        await bot.dies()
        assert len(bot.said(thread)) == 2
        bot.start()
        rows = await bot.comes_to_rest()

        said = bot.said(thread)
        assert " ".join(said).split() == LONG.split()
        assert len(said) == len(rows.outbox) >= 3
        assert not bot.said(place), "nothing fell back to the channel"
        first, *others = [each for each in bot.world.messages_seen(thread) if each.is_by_bot]
        assert first.answers is asked
        assert all(part.answers is None for part in others)


async def test_down_for_longer_than_the_resume_window(home: Path) -> None:
    """50 messages from 50 chats and 5 in one of them are answered, once."""
    async with a_discord_bot(home, allow='["*"]') as bot:
        guild = bot.world.guild()
        places = [bot.world.text_channel(guild, f"room{number}") for number in range(50)]
        bot.start()
        await bot.is_whole()
        bot.gateway.kill()
        await bot.outlast_session()
        for number, place in enumerate(places):
            bot.say(f"echo word{number}.", place)
        for number in range(5):
            bot.say(f"echo more{number}.", places[7])
        bot.start()
        wanted = [*(f"word{number}." for number in range(50)), *(f"more{n}." for n in range(5))]
        await until(
            lambda: all(bot.world.copies(word) for word in wanted),
            "every message is answered",
            otherwise=lambda: bot.gateway.log[-3000:],
        )
        rows = await bot.comes_to_rest(entries=55)

        assert [len(bot.world.copies(word)) for word in wanted] == [1] * len(wanted)
        assert not any(LABEL in text for place in places for text in bot.said(place))
        assert bot.fake.gateway.sessions.refused == 1
        check_rows(rows)


async def test_a_button_pressed_counts_once_and_is_answered_to_that_person(home: Path) -> None:
    """S140: a second press, and one of another person, change nothing."""
    async with a_discord_bot(home) as bot:
        bot.start()
        await bot.is_whole()
        bot.say("ask me which drink: tea, coffee or water")
        question = await bot.hears("drink")
        assert question.labels == ["tea", "coffee", "water"]
        pressed = bot.world.press(question, bot.ann, "coffee")
        await bot.hears("coffee")
        await until(lambda: _answer_to(bot.world.interactions, pressed), "the press is answered")
        before = bot.said()
        late = bot.world.press(question, bot.ann, "tea")
        await bot.hears("too late")
        await until(lambda: _answer_to(bot.world.interactions, late), "so is the late one")
        await bot.comes_to_rest()

        assert len(bot.said()) == len(before) + 1
        assert _answer_to(bot.world.interactions, pressed)["data"]["flags"] == 64


async def test_a_slash_command_is_registered_once_and_answered(home: Path) -> None:
    async with a_discord_bot(home) as bot:
        bot.start()
        await bot.is_whole()
        await until(lambda: bot.world.commands, "the commands are offered")
        used = bot.world.slash(bot.dm, bot.ann, "status")
        await until(lambda: bot.said(), "it is answered")
        await until(lambda: _answer_to(bot.world.interactions, used), "it is acknowledged")
        bot.gateway.kill()
        bot.start()
        await until(lambda: len(bot.requests("getCommands")) == 2, "they are compared")
        bot.say("echo on")
        await bot.hears("on")

        assert len(bot.requests("putCommands")) == 1


def _answer_to(interactions: dict[int, JSON], asked: JSON) -> JSON:
    """What the person who pressed sees; nothing while there is no answer."""
    return interactions[int(asked["id"])]["answer"] or {}


@pytest.mark.parametrize("point", ["inbox.accept:before:2", "inbox.accept:after:2"])
async def test_killed_while_it_catches_up(home: Path, point: str) -> None:
    """The first commit of that life is a page of one channel, the second one of another."""
    async with a_discord_bot(home) as bot:
        guild = bot.world.guild()
        places = [bot.world.text_channel(guild, f"room{number}") for number in range(3)]
        bot.start()
        await bot.is_whole()
        bot.gateway.kill()
        await bot.outlast_session()
        for number in range(6):
            bot.say(f"echo word{number}.", places[number % 3])
        bot.start(crash_at=point)
        await bot.dies()
        bot.start()
        await until(
            lambda: all(bot.world.copies(f"word{number}.") for number in range(6)),
            "every message is answered",
            otherwise=lambda: bot.gateway.log[-3000:],
        )
        await bot.comes_to_rest(entries=6)

        assert [len(bot.world.copies(f"word{number}.")) for number in range(6)] == [1] * 6


async def test_that_channels_are_behind_is_shown_everywhere(home: Path) -> None:
    """On `/readyz`, in the metrics, and by `koboshi status`; and it is over when they are read."""
    async with a_discord_bot(home) as bot:
        place = bot.world.text_channel(bot.world.guild())
        bot.start()
        await bot.is_whole()
        bot.gateway.kill()
        await bot.outlast_session()
        bot.say("echo missed", place)
        slow = bot.fake.faults.add("hang", "getMessages", count=None)
        bot.start()
        await until(lambda: slow.hits, "the history is asked for")
        address = await bot.gateway.wait_listening()
        behind = 'koboshi_adapter_chats_behind{account="main",platform="discord"}'
        async with connection(address, bot.gateway.token) as http:
            checks = (await http.get("/readyz")).json()["checks"]
            (said,) = [each for each in checks if each["name"] == "discord:main"]
            assert "behind, catching up" in str(said)
            told = (await http.get("/metrics")).text
            assert behind in told
            assert f"{behind} 0" not in told
            heard = 'koboshi_adapter_heard_age_seconds{account="main",platform="discord"}'
            assert heard in told
            status = await to_thread.run_sync(partial(koboshi, "status", home=home))
            assert "behind, catching up" in status.out
            slow.lift()
            await bot.hears("missed", place)
            await bot.is_whole()
            assert f"{behind} 0" in (await http.get("/metrics")).text
