"""A channel that cannot work as it is configured, in a real gateway: it is down, and says why. The
others serve; only where none is left does the gateway end."""

import socket
from functools import partial
from pathlib import Path

from anyio import to_thread

from koboshi.cli.ask_owner import ask_gateway
from tests.cli.process import koboshi
from tests.harness.http import connection
from tests.harness.polling import until
from tests.harness.telegram import Bot, a_bot
from tests.service.listening import ear

WRONG_SETUP = 78
NO_WEB = {"KOBOSHI__CHANNELS__WEB__MAIN__ENABLED": "false"}
REFUSED = "Telegram refuses the token of telegram:main (Unauthorized)"


def refuse(bot: Bot) -> None:
    """The platform knows another token from now on."""
    bot.fake.token = "1:another"


def accept(bot: Bot) -> None:
    bot.fake.token = bot.gateway.environment["TELEGRAM_BOT_TOKEN"]


def unreached(bot: Bot) -> dict[str, str]:
    answer = ask_gateway(bot.gateway.home, {"ask": "status"})
    assert answer is not None
    found = answer["unreached"]
    assert isinstance(found, dict)
    return found


async def test_a_refused_token_leaves_the_others_alone_and_is_tried_again(home: Path) -> None:
    """Issue 12, B11: the web answers, each caller is told why Telegram does not, and a token
    that becomes good is used without a restart."""
    async with a_bot(home) as bot:
        refuse(bot)
        bot.say("echo at last")
        bot.start()
        address = await bot.gateway.wait_listening()
        await until(lambda: REFUSED in unreached(bot).get("telegram:main", ""), "it says why")
        async with connection(address) as client:
            headers = {"Authorization": f"Bearer {bot.gateway.token}", "Idempotency-Key": "1"}
            said = {"text": "echo hello"}
            path = "/api/v1/sessions/here/messages"
            assert (await client.post(path, json=said, headers=headers)).status_code == 202

            ready = await client.get("/readyz", headers=headers)
            assert ready.status_code == 503
            assert REFUSED in ready.text
            told = (await client.get("/metrics", headers=headers)).text
            assert 'koboshi_adapter_up{account="main",platform="telegram"} 0' in told
            assert 'koboshi_adapter_up{account="main",platform="web"} 1' in told

        status = await to_thread.run_sync(partial(koboshi, "status", home=home))
        assert REFUSED in status.out, status
        doctor = await to_thread.run_sync(partial(koboshi, "doctor", home=home))
        assert REFUSED in doctor.out, doctor
        assert doctor.code != 0

        accept(bot)
        await bot.hears("at last")
        await until(lambda: not unreached(bot), "nothing is wrong any more")
        assert bot.gateway.lives == 1
        assert bot.gateway.is_running


async def test_a_refused_token_alone_ends_the_start_with_its_reason(home: Path) -> None:
    """Issue 12, B11: where no channel is left, a person has to change something."""
    async with a_bot(home, env=NO_WEB) as bot:
        refuse(bot)
        bot.start()

        assert await bot.gateway.wait_exit() == WRONG_SETUP
        assert REFUSED in bot.gateway.log


async def test_where_no_channel_can_work_all_reasons_are_told(home: Path) -> None:
    """Issue 12, B11: the token is refused, and the port is in use."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        async with a_bot(home, env={"KOBOSHI__CHANNELS__WEB__MAIN__PORT": port}) as bot:
            refuse(bot)
            bot.start()

            assert await bot.gateway.wait_exit() == WRONG_SETUP
            assert REFUSED in bot.gateway.log
            assert f"127.0.0.1 port {port} is in use" in bot.gateway.log


async def test_a_port_that_is_in_use_leaves_the_bot_alone_and_is_tried_again(home: Path) -> None:
    """Issue 12, B11: the same for the web, while another channel serves."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        async with a_bot(home, env={"KOBOSHI__CHANNELS__WEB__MAIN__PORT": port}) as bot:
            bot.start()
            bot.say("echo hello")
            await bot.hears("hello")
            in_use = f"port {port} is in use"
            await until(lambda: in_use in unreached(bot).get("web:main", ""), "its reason is told")
            taken.close()
            await bot.gateway.wait_listening()
            await until(lambda: not unreached(bot), "nothing is wrong any more")

            assert bot.gateway.lives == 1


async def test_a_token_that_is_taken_back_later_ends_nothing(home: Path) -> None:
    """Issue 12, B11: not even where the bot is the only channel; a new token may come."""
    async with a_bot(home, env=NO_WEB) as bot:
        bot.start()
        bot.say("echo one")
        await bot.hears("one")
        refuse(bot)
        bot.fake.drop_connections()
        await until(lambda: REFUSED in unreached(bot).get("telegram:main", ""), "it says why")
        accept(bot)
        bot.say("echo two")
        await bot.hears("two")

        assert bot.gateway.lives == 1


async def test_a_service_manager_hears_the_truth(home: Path, tmp_path: Path) -> None:
    """Issue 12, B11: it is ready when the web accepts, and its status names what is down."""
    with ear(tmp_path) as manager:
        async with a_bot(home, env={"NOTIFY_SOCKET": manager.address}) as bot:
            refuse(bot)
            bot.start()
            await until(lambda: "READY=1" in manager.heard(), "it is ready")
            down = f"telegram:main is down: {REFUSED}"
            await until(lambda: any(down in line for line in manager.heard()), "it says what is")


async def test_a_service_manager_hears_nothing_of_ready_where_no_channel_is_left(
    home: Path, tmp_path: Path
) -> None:
    """Issue 12, B11."""
    with ear(tmp_path) as manager:
        async with a_bot(home, env={**NO_WEB, "NOTIFY_SOCKET": manager.address}) as bot:
            refuse(bot)
            bot.start()

            assert await bot.gateway.wait_exit() == WRONG_SETUP
            assert "READY=1" not in manager.heard()
            accept(bot)
            bot.start()
            await until(lambda: "READY=1" in manager.heard(), "it is ready")
