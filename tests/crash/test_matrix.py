"""Matrix with the real gateway, a real homeserver and real kills: nothing lost, nothing twice."""

import random
import signal
from pathlib import Path

import pytest
from anyio import create_task_group, move_on_after, sleep_forever

from tests.harness.invariants import check_rows
from tests.harness.matrix import MatrixBot, a_matrix_bot
from tests.harness.polling import until
from tests.harness.rows import glance
from tests.harness.synapse import a_homeserver, shared_homeserver
from tests.harness.tally import ROUND, WANTS_ALL, add_to_tally
from tests.harness.telegram_words import LABEL, script

ROOMS = 50 if WANTS_ALL else 12
LIMITED = 130 if WANTS_ALL else 60
"""More messages than one answer of the homeserver holds."""
POINTS = (
    "inbox.accept:before",
    "inbox.accept:after",
    "outbox.claim:after",
    "outbox.settle:before",
    "outbox.settle:after",
    "outbox.claim:before",
    "turns.answer:after",
)
ENDS = (signal.SIGKILL, signal.SIGTERM)
INVITED_POINTS = ("before:1", "after:1", "before:2", "after:2")
SEED = 20_261_118 + 1_000 * ROUND
KILLS = 6
PORTIONS = range(10)
KILLED_WITHIN_S = 1.5
"""From the message on: a gateway starts, takes it in, answers and settles in this time."""


async def first_life(bot: MatrixBot) -> None:
    """Connect once, so that there is a place to go on from, and end."""
    bot.start()
    await bot.is_connected()
    bot.gateway.kill()


async def test_what_is_written_while_it_is_down_is_answered_after_the_start(home: Path) -> None:
    """S1, S145: and nothing from before the first connection is."""
    async with a_matrix_bot(home, shared_homeserver()) as bot:
        await bot.say("echo before")
        await first_life(bot)
        await bot.say("echo one")
        bot.start()
        await bot.hears("one")
        await bot.comes_to_rest(1)

        assert await bot.said() == ["one"]


@pytest.mark.parametrize("point", POINTS if WANTS_ALL else POINTS[:4])
async def test_killed_at_a_durable_step_it_answers_once(home: Path, point: str) -> None:
    """S1, S97, S145, S146: also when the homeserver has the answer and we do not know."""
    async with a_matrix_bot(home, shared_homeserver()) as bot:
        await first_life(bot)
        await bot.say("echo once")
        # The first batch that is accepted is this message, as there was a place before.
        bot.start(crash_at=point)
        await bot.dies()
        bot.start()
        await bot.hears("once")
        await bot.comes_to_rest(1)

        assert await bot.said() == ["once"]


async def test_more_than_one_answer_holds_is_read_to_the_last_across_kills(home: Path) -> None:
    """The room is limited: what the answer left out is read forward, and goes on where it was."""
    texts = [f"word{number}." for number in range(LIMITED)]
    async with a_matrix_bot(home, shared_homeserver()) as bot:
        await first_life(bot)
        for text in texts:
            await bot.say(f"echo {text}")
        # Dies with the first page stored, before the second, and again behind the last.
        for point in ("inbox.accept:after", "inbox.accept:before:2", "inbox.accept:after:2"):
            bot.start(crash_at=point)
            await bot.dies()
        bot.start()
        rows = await bot.comes_to_rest(len(texts))

        said = " ".join(await bot.said())
        assert [said.count(text) for text in texts] == [1] * len(texts)
        places = [said.index(text) for text in texts]
        assert places == sorted(places), "they were taken in order"
        marks = {row["chat"] for row in rows.watermarks}
        assert marks <= {"device"}, "nothing is behind any more"


async def test_many_rooms_and_five_messages_in_one_are_answered_once(home: Path) -> None:
    """Written while it is down, also in rooms that it is invited to: fifty in the campaign."""
    async with a_matrix_bot(home, shared_homeserver()) as bot:
        await first_life(bot)
        rooms: list[str] = []

        async def write(number: int) -> None:
            room = await bot.ann.room(bot.bot.user)
            if number % 2:
                await bot.bot.join(room)
            await bot.say(f"echo room{number}.", room)
            rooms.append(room)

        async with create_task_group() as tasks:
            for number in range(ROOMS):
                tasks.start_soon(write, number)
        for number in range(5):
            await bot.say(f"echo five{number}.")
        bot.start()
        await bot.comes_to_rest(ROOMS + 5)

        said = [await bot.said(room) for room in rooms]
        assert sorted(len(each) for each in said) == [1] * ROOMS
        assert {each[0] for each in said} == {f"room{number}." for number in range(ROOMS)}
        together = "\n".join(await bot.said())
        assert [together.count(f"five{number}.") for number in range(5)] == [1] * 5


async def test_an_answer_stands_in_its_thread_and_in_reply_to_its_question(home: Path) -> None:
    async with a_matrix_bot(home, shared_homeserver()) as bot:
        await first_life(bot)
        root = await bot.say("about work")
        relation = {"rel_type": "m.thread", "event_id": root}
        words = "echo **bold** words"
        asked = await bot.ann.say(bot.room, words, **{"m.relates_to": relation})
        bot.start()
        heard = await bot.hears("bold words")

        found = heard["content"]["m.relates_to"]
        assert (found["rel_type"], found["event_id"]) == ("m.thread", root)
        assert found["m.in_reply_to"] == {"event_id": asked}
        assert heard["content"]["formatted_body"] == "<strong>bold</strong> words"


async def test_only_allowed_people_can_invite_it(home: Path) -> None:
    """And the first message, which is sent with the invitation, is before our join."""
    server = shared_homeserver()
    async with a_matrix_bot(home, server) as bot:
        bot.start()
        await bot.is_connected()
        eve = await server.person("eve")
        foreign = await eve.room(bot.bot.user)
        await eve.say(foreign, "echo stolen")
        mine = await bot.ann.room(bot.bot.user)
        await bot.say("echo invited", mine)
        await bot.hears("invited", mine)

        assert await bot.said(mine) == ["invited"]
        members = await eve.ask("GET", f"/rooms/{foreign}/members", membership="leave")
        assert [event["state_key"] for event in members["chunk"]] == [bot.bot.user]


@pytest.mark.parametrize("point", INVITED_POINTS if WANTS_ALL else INVITED_POINTS[:2])
async def test_killed_while_it_follows_an_invitation(home: Path, point: str) -> None:
    """The first commit is behind the join, the second has what was said with the invitation."""
    async with a_matrix_bot(home, shared_homeserver()) as bot:
        await first_life(bot)
        room = await bot.ann.room(bot.bot.user)
        await bot.say("echo invited", room)
        bot.start(crash_at=f"inbox.accept:{point}")
        await bot.dies()
        bot.start()
        await bot.hears("invited", room)
        await bot.comes_to_rest(1)

        assert await bot.said(room) == ["invited"]


@pytest.mark.parametrize("portion", PORTIONS if WANTS_ALL else PORTIONS[:1])
async def test_killed_at_any_moment_around_a_message(home: Path, portion: int) -> None:
    """None is lost and none is answered twice."""
    print(f"seed {SEED + portion}")
    chance = random.Random(SEED + portion)
    async with a_matrix_bot(home, shared_homeserver()) as bot:
        await first_life(bot)
        bot.start()
        for number in range(KILLS):
            await bot.say(f"echo word{number}.")
            with move_on_after(chance.random() * KILLED_WITHIN_S):
                await sleep_forever()
            bot.gateway.kill()
            bot.start()
        rows = await bot.comes_to_rest(KILLS)

        said = "\n".join(await bot.said())
        assert [said.count(f"word{number}.") for number in range(KILLS)] == [1] * KILLS
        assert LABEL not in said, "the homeserver tells repeats by their keys"
        check_rows(rows)
        add_to_tally("platform kills", {"platform": "matrix", "kills": KILLS})


async def test_a_mark_on_a_question_chooses_also_while_it_is_down(home: Path) -> None:
    async with a_matrix_bot(home, shared_homeserver()) as bot:
        await first_life(bot)
        await bot.say("ask me which drink: tea, coffee or water")
        bot.start()
        asked = await bot.hears("1. tea")
        assert asked["content"]["body"].endswith("1. tea\n2. coffee\n3. water")
        await until(
            lambda: [row for row in glance(home).turns if row["state"] == "waiting"],
            "the turn waits",
        )
        bot.gateway.kill()
        relation = {"rel_type": "m.annotation", "event_id": asked["event_id"], "key": "2️⃣"}
        await bot.ann.send(bot.room, "m.reaction", {"m.relates_to": relation})
        bot.start()
        rows = await bot.comes_to_rest(2)

        assert len(await bot.said()) == 2
        answers = [row["body"] for row in rows.of("steps", kind="result")]
        assert ["coffee" in body for body in answers] == [True]


async def test_an_encrypted_room_is_refused_in_words_once(home: Path) -> None:
    async with a_matrix_bot(home, shared_homeserver()) as bot:
        await first_life(bot)
        sealed = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "AwgA", "session_id": "s"}
        for _ in range(2):
            await bot.ann.send(bot.room, "m.room.encrypted", sealed)
            bot.start()
            await bot.hears("I cannot read this room")
            await until(
                lambda: [row for row in glance(home).inbox if row["reason"] == "encrypted"],
                "the event is noted",
            )
            bot.gateway.kill()

        assert len(await bot.said()) == 1


@pytest.mark.parametrize("how", ENDS if WANTS_ALL else ENDS[:1])
async def test_the_homeserver_ends_and_comes_back(home: Path, tmp_path: Path, how: int) -> None:
    """What we owe meanwhile waits, and nothing is said twice."""
    folder = tmp_path / "homeserver"
    folder.mkdir()
    with a_homeserver(folder) as server:
        async with a_matrix_bot(home, server) as bot:
            bot.start()
            await bot.is_connected()
            waits: dict[str, object] = {"calls": [{"tool": "terminal", "arguments": WAITS}]}
            await bot.say(script(waits, {"text": "late"}))
            await until(
                lambda: [row for row in glance(home).calls if row["started_ms"]], "it works"
            )
            await server.stop(how)
            (bot.gateway.workdir / "go").touch()
            await until(lambda: glance(home).outbox, "the answer is owed")
            server.start()
            await server.ready()
            await bot.hears("late")
            await bot.comes_to_rest(1)

            assert await bot.said() == ["late"]


WAITS = {"command": "until [ -e go ]; do sleep 0.05; done"}
