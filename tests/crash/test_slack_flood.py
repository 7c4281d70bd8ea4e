"""A flood on Slack, and a person elsewhere who does not notice it."""

from pathlib import Path

from tests.harness.polling import until
from tests.harness.slack import a_slack_app
from tests.harness.telegram import a_bot

FLOOD = 10_000


async def test_a_flood_on_slack_does_not_hold_up_telegram(home: Path) -> None:
    """Ten thousand messages of a stranger wait at Slack; a message on Telegram is answered long
    before they are taken."""
    async with a_bot(home) as bot, a_slack_app(home) as app:
        bot.gateway = app.gateway
        bot.env = {**a_bot_env(bot.fake.url, bot.fake.token, bot.ann.user_id)}
        app.env = bot.env
        await app.connected()
        bot.say("echo first")
        await bot.hears("first")
        stranger = app.world.user("Stranger")
        place = app.world.im(stranger)
        happenings = app.world.happenings
        for number in range(FLOOD):
            app.world.say(place, stranger, f"{number}")
        await until(lambda: happenings.all[0].is_over, "the flood has begun")
        bot.say("echo still here")
        await bot.hears("still here")

        assert len(happenings.unsettled) > FLOOD / 10, "it was answered while the flood went on"


def a_bot_env(url: str, token: str, person: int) -> dict[str, str]:
    section = "KOBOSHI__CHANNELS__TELEGRAM__MAIN__"
    return {
        f"{section}ALLOW": f"[{person}]",
        f"{section}RATE_PER_SECOND": "0",
        f"{section}API_BASE": url,
        "TELEGRAM_BOT_TOKEN": token,
    }
