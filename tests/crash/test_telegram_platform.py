"""What people do on Telegram, with the real gateway: files, edits, albums, topics, restarts."""

import json
from pathlib import Path

import pytest

from tests.cli.process import koboshi
from tests.harness.jobs import UNTIL_GO
from tests.harness.polling import until
from tests.harness.process import GatewayProcess
from tests.harness.rows import glance
from tests.harness.telegram import Bot, a_bot
from tests.harness.telegram_words import script

SLOW = script(
    {"calls": [{"tool": "terminal", "arguments": {"command": UNTIL_GO}}]}, {"text": "slow"}
)
"""A turn that ends when the test touches `go`."""


async def ready(bot: Bot) -> None:
    bot.start()
    await bot.gateway.wait_ready()


def contents(bot: Bot) -> dict[str, bytes]:
    """The files of people that are in the working folder."""
    folder = bot.gateway.workdir / "received" / "telegram-main"
    return {path.name.split("-", 2)[2]: path.read_bytes() for path in folder.glob("[!.]*")}


@pytest.mark.parametrize("role", ["photo", "document", "voice"])
async def test_a_file_is_there_before_the_agent_works_on_it(home: Path, role: str) -> None:
    async with a_bot(home) as bot:
        bot.start()
        bot.say("run cat received/*/*", bot.chat, **{role: b"what it holds"})
        await bot.hears("what it holds")
        await bot.comes_to_rest()

        assert list(contents(bot).values()) == [b"what it holds"]


async def test_a_file_that_was_being_fetched_at_a_kill_is_fetched_again(home: Path) -> None:
    async with a_bot(home) as bot:
        fetching = bot.fake.faults.add("hang", "getFile")
        bot.start()
        bot.world.say(bot.chat, bot.ann, "run cat received/*/*", document=b"what it holds")
        await until(lambda: fetching.hits, "it is being fetched")
        bot.restart()
        await bot.hears("what it holds")
        await bot.comes_to_rest()

        assert contents(bot) == {"notes.txt": b"what it holds"}
        assert len(bot.said()) == 1


async def test_the_model_is_told_of_a_file_that_is_too_large(home: Path) -> None:
    large = {"file_id": "F", "file_name": "film.mkv", "file_size": 3_000_000_000}
    async with a_bot(home) as bot:
        bot.start()
        bot.say("", extra={"document": large, "caption": "echo had it"})
        await bot.hears("had it")
        rows = await bot.comes_to_rest()

        (note,) = [each for each in rows.steps if "could not be fetched" in each["body"]]
        assert "at most" in note["body"]
        assert contents(bot) == {}
        assert not bot.requests("getFile")


SENDING = script(
    {
        "calls": [
            {"tool": "send_file", "arguments": {"path": "report.txt", "caption": "it is *it*"}}
        ]
    },
    {"text": "sent"},
)


@pytest.mark.parametrize(
    "point",
    ["", "turns.finish_call:before", "turns.finish_call:after", "outbox.settle:before"],
)
async def test_a_file_of_the_agent_arrives_once(home: Path, point: str) -> None:
    """S150: killed before and after it is owed, and when the platform has it."""
    async with a_bot(home) as bot:
        bot.gateway.workdir.mkdir(parents=True)
        (bot.gateway.workdir / "report.txt").write_text("all is well")
        bot.start(crash_at=point)
        bot.say(SENDING)
        if point:
            await bot.dies()
            bot.start()
        await bot.hears("sent")
        await bot.comes_to_rest()

        documents = bot.fake.history.recorded("sendDocument")
        assert [each.params["document"] for each in documents] == [
            {"name": "report.txt", "size": 11}
        ]
        assert bot.said() == ["it is it", "sent"]


async def test_an_answer_is_seen_growing_and_said_once(home: Path) -> None:
    """S149: neither a draft and an answer, nor two of them."""
    words = " ".join(f"word{number}" for number in range(25))
    async with a_bot(home) as bot:
        bot.start()
        bot.say(script({"text": words, "word_ms": 100}))
        await bot.hears("word24")
        await bot.comes_to_rest()

        drafts = [str(each.params["text"]) for each in bot.requests("sendMessageDraft")]
        assert drafts, "a draft was shown"
        assert all(words.startswith(each) for each in drafts)
        assert bot.said() == [words]
        assert bot.world.drafts_seen(bot.chat) == []


async def test_a_message_that_has_to_wait_is_marked_and_can_be_edited(home: Path) -> None:
    async with a_bot(home) as bot:
        await ready(bot)
        bot.say(SLOW)
        await until(lambda: glance(home).of("turns", state="running"), "it works")
        waiting = bot.say("echo secnd")
        await until(lambda: waiting.reaction, "it is marked")
        bot.world.edit(waiting, "echo second")
        await until(lambda: "echo second" in str(glance(home).inbox), "the edit is stored")
        (bot.gateway.workdir / "go").touch()
        await bot.hears("second")
        await bot.comes_to_rest()

        assert [each["emoji"] for each in waiting.reaction] == ["👀"]
        assert bot.said() == ["slow", "second"]


async def test_an_album_is_one_turn(home: Path) -> None:
    async with a_bot(home) as bot:
        words = "run cat received/*/*"
        for number, text in enumerate([words, "", ""]):
            picture = b"picture %d;" % number
            bot.world.say(bot.chat, bot.ann, text, media_group_id="A", photo=picture)
        bot.start()
        await bot.hears("picture 0;picture 1;picture 2;")
        rows = await bot.comes_to_rest()

        assert len(rows.turns) == 1
        assert len(bot.said()) == 1


async def test_what_is_owed_to_a_group_that_moves_is_said_where_it_is_now(home: Path) -> None:
    async with a_bot(home) as bot:
        group = bot.world.group()
        bot.start()
        told = bot.fake.faults.add("too_many", "sendMessage", seconds=2)
        bot.say("@koboshi_bot echo once", group)
        await until(lambda: told.hits, "it tries")
        new = bot.world.migrate(group)
        await bot.hears("once", new)
        bot.say("@koboshi_bot echo twice", new)
        await bot.hears("twice", new)
        rows = await bot.comes_to_rest()

        assert bot.said(new) == ["once", "twice"]
        assert bot.said(group) == []
        assert len(rows.sessions) == 1


async def test_who_blocks_the_bot_is_not_written_to_for_ever(home: Path) -> None:
    """S148: and the operator can see why."""
    async with a_bot(home) as bot:
        bot.start()
        bot.say(SLOW)
        await until(lambda: glance(home).of("turns", state="running"), "it works")
        bot.world.block(bot.ann)
        (bot.gateway.workdir / "go").touch()
        await bot.comes_to_rest()
        listed = koboshi("outbox", "list", home=home)

        assert "blocked by the user" in listed.out, listed
        assert len(bot.requests("sendMessage")) == 1


async def test_a_stranger_gets_a_code_in_private_and_nothing_in_a_group(home: Path) -> None:
    async with a_bot(home) as bot:
        bot.start()
        eve, group = bot.world.user("Eve"), bot.world.supergroup()
        bot.world.say(group, eve, "@koboshi_bot echo hello")
        bot.world.say(group, eve, "/stop@koboshi_bot")
        private = bot.world.private_chat(eve)
        bot.world.say(private, eve, "echo hello")
        await bot.hears("code", private)
        bot.say("echo known")
        await bot.hears("known")
        await bot.comes_to_rest()

        assert bot.said(group) == []
        assert len(bot.said(private)) == 1


async def test_what_people_may_write_is_offered_to_them(home: Path) -> None:
    async with a_bot(home) as bot:
        await ready(bot)
        (told,) = await until(lambda: bot.requests("setMyCommands"), "they are offered")

        assert {"stop", "new", "status", "help"} <= {
            each["command"] for each in told.params["commands"]
        }


async def test_a_restart_from_a_topic_comes_back_in_that_topic(home: Path) -> None:
    """S154."""
    async with a_bot(home) as bot:
        forum = bot.world.supergroup(forum=True)
        topic = bot.world.topic(forum, "work", bot.ann)
        await ready(bot)
        bot.say("/restart", forum, topic=topic)
        await bot.hears("I am back:", forum)
        bot.say("@koboshi_bot echo on", forum, topic=topic)
        await bot.hears("on", forum)

        said = bot.said(forum, topic.topic_id)
        assert said == bot.said(forum)
        assert sum("I am back:" in each for each in said) == 1


@pytest.mark.parametrize("place", ["forum", "private"])
async def test_the_end_of_a_process_is_told_in_its_topic_after_a_restart(
    home: Path, place: str
) -> None:
    """S152."""
    async with a_bot(home) as bot:
        bot.world.account.has_topics_enabled = True
        chat = bot.world.supergroup(forum=True) if place == "forum" else bot.chat
        topic = bot.world.topic(chat, "work", bot.ann)
        bot.start()
        bot.say(f"@koboshi_bot in background {UNTIL_GO}; exit 3", chat, topic=topic)
        await bot.hears("background", chat)
        bot.gateway.kill()
        work = bot.gateway.workdir
        if place == "forum":  # A group has a work folder of its own.
            (work,) = work.glob("people/*")
        (work / "go").touch()
        bot.start()
        await bot.hears("exited with code 3", chat)
        await bot.comes_to_rest()

        assert bot.said(chat, topic.topic_id) == bot.said(chat)
        assert len(bot.said(chat)) == 2


async def test_an_answer_hangs_on_the_newest_words_of_the_person(home: Path) -> None:
    """S151: also after a restart."""
    async with a_bot(home) as bot:
        bot.start()
        bot.say("ask me which drink: tea, coffee or water")
        await bot.hears("drink")
        bot.gateway.kill()
        newest = bot.say("coffee")
        bot.start(crash_at="outbox.claim:before")
        await bot.dies()
        bot.start()
        answer = await bot.hears("You said")

        assert answer.reply_to is not None
        assert answer.reply_to.message_id == newest.message_id


async def test_two_gateways_on_one_bot_say_so_and_one_alone_goes_on(
    home: Path, tmp_path: Path
) -> None:
    async with a_bot(home) as bot:
        await ready(bot)
        other = GatewayProcess(tmp_path / "other", env=bot.gateway.environment)
        try:
            other.start()
            await until(
                lambda: "telegram_conflict" in bot.gateway.log + other.log, "one of them is told"
            )
        finally:
            other.bury()
        bot.say("echo alone")
        await bot.hears("alone")
        await bot.comes_to_rest()

        assert bot.said() == ["alone"]
        assert not bot.fake.history.asked_to_drop()


async def test_updates_that_come_twice_and_in_any_order_are_answered_once(home: Path) -> None:
    """S97."""
    async with a_bot(home) as bot:
        for number in range(5):
            bot.say(f"echo number{number}", date=bot.world.now - 60)
        bot.world.reorder()
        bot.start()
        await until(
            lambda: all(bot.world.copies(f"number{number}") for number in range(5)),
            "all are answered",
        )
        bot.gateway.kill()
        for number in bot.world.updates.told:
            bot.world.redeliver(number)
            bot.world.redeliver(number, renumbered=True)
        bot.say("echo last")
        bot.start()
        await bot.hears("last")
        await bot.comes_to_rest()

        said = "\n\n".join(bot.said()).split("\n\n")
        assert sorted(said) == ["last", *(f"number{number}" for number in range(5))]


async def test_no_one_is_written_to_before_the_platform_wants_it(home: Path) -> None:
    """S148: with its limits and with ours."""
    section = "KOBOSHI__CHANNELS__TELEGRAM__MAIN__"
    async with a_bot(home, env={f"{section}RATE_PER_SECOND": "30"}, allow='["*"]') as bot:
        bot.fake.limits.switch_on()
        people = [bot.world.user(f"Person {number}") for number in range(4)]
        chats = [bot.world.private_chat(person) for person in people]
        bot.start()
        await bot.gateway.wait_ready()
        for number in range(4):
            for person, chat in zip(people, chats, strict=True):
                bot.world.say(chat, person, f"echo {chat.chat_id} {number}")
        await until(lambda: bot.fake.limits.refusals >= 2, "the platform complains")
        await until(
            lambda: all(len(bot.said(chat)) >= 4 for chat in chats),
            "all are answered",
            otherwise=lambda: f"{[bot.said(chat) for chat in chats]} {bot.requests()[-20:]}",
        )
        await bot.comes_to_rest()

        assert bot.fake.limits.too_early == []
        for chat in chats:
            said = bot.said(chat)
            assert len(said) == 4
            assert all(said[number].endswith(f"{chat.chat_id} {number}") for number in range(4))


@pytest.mark.parametrize("ambiguous", ["label", "hold"])
async def test_the_owner_decides_about_what_may_have_arrived(home: Path, ambiguous: str) -> None:
    """S146."""
    section = "KOBOSHI__CHANNELS__TELEGRAM__MAIN__"
    async with a_bot(home, env={f"{section}AMBIGUOUS": ambiguous}) as bot:
        bot.say("echo once")
        bot.start(crash_at="outbox.settle:before")
        await bot.dies()
        bot.start()
        if ambiguous == "hold":
            await until(lambda: _held(home), "it is held")
            assert bot.said() == ["once"]
            bot.say("echo other")
            await bot.hears("other")
            listed = json.loads(koboshi("outbox", "list", "--json", home=home).out)
            assert "may have arrived" in json.dumps(listed)
            (held,) = _held(home)
            assert koboshi("outbox", "retry", f"d{held}", home=home).code == 0
        await until(lambda: sum("once" in each for each in bot.said()) == 2, "it is said again")
        await bot.comes_to_rest()

        labelled = [each for each in bot.said() if "once" in each][1]
        assert "may be a duplicate" in labelled
        assert not bot.requests("editMessageReplyMarkup")


def _held(home: Path) -> list[int]:
    rows = glance(home).outbox
    return [row["delivery_id"] for row in rows if row["state"] == "held"]
