"""The fake platform fails where it is told to, and knows what it did all the same."""

import subprocess
import sys
from typing import Any

import httpx2
import pytest
from anyio import create_task_group

from tests.channels.telegram_bot import Bot, HandClock, bot_at
from tests.fakes.telegram.faults import Act, Moment
from tests.fakes.telegram.remote import ControlFailed, Remote
from tests.fakes.telegram.server import FakeTelegram, serving_in_thread
from tests.fakes.telegram.world import World
from tests.harness.polling import until


@pytest.mark.parametrize("moment", list(Moment))
async def test_a_dropped_connection_leaves_a_message_or_not(
    fake: FakeTelegram, bot: Bot, world: World, moment: Moment
) -> None:
    chat = world.private_chat()
    fake.faults.add(Act.DROP, "sendMessage", moment=moment)

    with pytest.raises(httpx2.TransportError):
        await bot.ask("sendMessage", chat_id=chat.chat_id, text="once")

    is_recorded = moment is Moment.AFTER
    assert len(world.copies("once")) == is_recorded
    assert [each.is_recorded for each in fake.history.of("sendMessage")] == [is_recorded]
    await bot.do("sendMessage", chat_id=chat.chat_id, text="again")


@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize("status", [500, 502])
async def test_an_error_of_the_server_leaves_a_message_or_not(
    fake: FakeTelegram, bot: Bot, world: World, moment: Moment, status: int
) -> None:
    chat = world.private_chat()
    fake.faults.add(Act.STATUS, "sendMessage", moment=moment, status=status)

    response = await bot.http.post(
        f"{bot.prefix}/sendMessage", json={"chat_id": chat.chat_id, "text": "once"}
    )

    assert response.status_code == status
    assert len(world.copies("once")) == (moment is Moment.AFTER)


async def test_an_answer_may_be_no_json(fake: FakeTelegram, bot: Bot, world: World) -> None:
    chat = world.private_chat()
    fake.faults.add(Act.GARBLE, "sendMessage", moment=Moment.AFTER)

    with pytest.raises(ValueError, match=r"JSON|Expecting"):
        await bot.ask("sendMessage", chat_id=chat.chat_id, text="once")

    assert len(world.copies("once")) == 1


@pytest.mark.parametrize("moment", list(Moment))
async def test_a_request_that_hangs_is_done_although_its_client_has_gone(
    fake: FakeTelegram, bot: Bot, world: World, moment: Moment
) -> None:
    chat = world.private_chat()
    fault = fake.faults.add(Act.HANG, "sendMessage", moment=moment)

    async with create_task_group() as tasks:
        tasks.start_soon(
            lambda: bot.ask("sendMessage", chat_id=chat.chat_id, text="late"),
        )
        await until(lambda: fault.hits, "the request hangs")
        before = len(world.copies("late"))
        tasks.cancel_scope.cancel()
    fault.lift()

    await world.until(lambda: world.copies("late"))
    assert before == (moment is Moment.AFTER)


async def test_a_slow_request_is_answered_in_the_end(
    fake: FakeTelegram, bot: Bot, world: World
) -> None:
    chat = world.private_chat()
    fake.faults.add(Act.WAIT, moment=Moment.AFTER, seconds=0.01)

    sent = await bot.do("sendMessage", chat_id=chat.chat_id, text="slow")

    assert sent["text"] == "slow"


async def test_a_fault_hits_its_method_and_chat_as_often_as_it_should(
    fake: FakeTelegram, bot: Bot, world: World
) -> None:
    here, there = world.private_chat().chat_id, world.private_chat().chat_id
    fake.faults.add(Act.STATUS, "sendMessage", chat=here, count=2, skip=1, status=500)

    async def is_good(method: str, chat: int, **more: Any) -> bool:
        return bool((await bot.ask(method, chat_id=chat, **more))["ok"])

    outcomes = [await is_good("sendMessage", here, text="x") for _ in range(4)]

    assert outcomes == [True, False, False, True]
    assert await is_good("sendMessage", there, text="x")
    assert await is_good("sendChatAction", here, action="typing")


async def test_an_outage_stops_every_method_until_it_is_over(fake: FakeTelegram, bot: Bot) -> None:
    outage = fake.faults.outage()
    for method in ("getMe", "getUpdates", "getMe"):
        with pytest.raises(httpx2.TransportError):
            await bot.ask(method)

    outage.lift()

    await bot.do("getMe")


async def test_a_stopped_platform_comes_back_with_everything_it_knew(
    fake: FakeTelegram, bot: Bot, world: World
) -> None:
    chat = world.private_chat()
    world.say(chat, chat.user, "before")
    await fake.stop()
    with pytest.raises(httpx2.ConnectError):
        await bot.ask("getUpdates")
    world.say(chat, chat.user, "while it is down")

    await fake.start()

    told = await bot.do("getUpdates")
    assert [each["message"]["text"] for each in told] == ["before", "while it is down"]


async def test_who_does_not_wait_after_too_many_requests_is_recorded(
    fake: FakeTelegram, bot: Bot, world: World, clock: HandClock
) -> None:
    chat, other = world.private_chat().chat_id, world.private_chat().chat_id
    fake.faults.add(Act.TOO_MANY, "sendMessage", seconds=7)

    refused = await bot.ask("sendMessage", chat_id=chat, text="x")
    await bot.do("sendMessage", chat_id=other, text="x")
    clock.now += 6.9
    await bot.do("sendMessage", chat_id=chat, text="x")
    clock.now += 0.2
    await bot.do("sendMessage", chat_id=chat, text="x")

    assert refused["description"] == "Too Many Requests: retry after 7"
    assert refused["parameters"] == {"retry_after": 7}
    assert [each.chat for each in fake.limits.too_early] == [chat]


async def test_the_limits_are_one_a_second_for_a_chat_and_thirty_for_all(
    fake: FakeTelegram, bot: Bot, world: World, clock: HandClock
) -> None:
    fake.limits.switch_on()
    chats = [world.private_chat().chat_id for _ in range(31)]

    assert (await bot.ask("sendMessage", chat_id=chats[0], text="x"))["ok"]
    second = await bot.ask("sendMessage", chat_id=chats[0], text="x")
    answers = [await bot.ask("sendMessage", chat_id=each, text="x") for each in chats[1:]]
    clock.now += 1
    after = await bot.ask("sendMessage", chat_id=chats[0], text="x")

    assert second["parameters"] == {"retry_after": 1}
    assert [each["ok"] for each in answers] == [True] * 29 + [False]
    assert after["ok"]
    assert fake.limits.too_early == []


def test_another_process_can_drive_it_over_http() -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.telegram"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout is not None
        remote = Remote(program.stdout.readline().split()[1])
        ada = remote.call("user", first_name="Ada")["id"]
        forum = remote.call("supergroup", forum=True)["id"]
        topic = remote.call("topic", chat=forum, name="Work")["id"]
        said = remote.call("say", chat=forum, user=ada, text="hello", topic=topic)
        remote.call("edit", message=[forum, said["message_id"]], text="hello there")

        seen = remote.call("messages_seen", chat=forum, topic=topic)
        fault = remote.call("add_fault", act="drop", method="sendMessage", moment="after")

        assert [each["text"] for each in seen] == ["hello there"]
        assert remote.call("lift_fault", fault=fault["id"]) is True
        assert remote.call("updates")["waiting"] == 3
        assert remote.call("requests") == []
        with pytest.raises(ControlFailed, match="no verb"):
            remote.call("fly")
        with pytest.raises(ControlFailed, match="say"):
            remote.call("say", chat=1, user=ada)
        remote.close()
    finally:
        program.terminate()
        program.wait(timeout=30)
        assert program.stdout is not None
        program.stdout.close()


async def test_it_serves_from_a_thread_as_well() -> None:
    with serving_in_thread() as fake:
        chat = fake.world.private_chat()
        told: list[Any] = []

        async with bot_at(fake) as bot:

            async def poll() -> None:
                told.extend(await bot.do("getUpdates", timeout=50))

            async with create_task_group() as tasks:
                tasks.start_soon(poll)
                await until(lambda: fake.history.of("getUpdates"), "the poll is under way")
                fake.world.say(chat, chat.user, "across threads")

    assert [each["message"]["text"] for each in told] == ["across threads"]
