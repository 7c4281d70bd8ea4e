"""How a Discord bot is built, tried and examined from its section."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from koboshi.app.platforms import discord
from koboshi.app.platforms.platform import ChannelSetup, PlatformFinding, ProbeFailed
from koboshi.clock import SystemClock
from koboshi.config import DiscordConfig, Limits, Secret
from koboshi.domain.ids import ChannelName
from tests.fakes.discord.server import FakeDiscord, serving_discord


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with serving_discord() as served:
        yield served


def section(fake: FakeDiscord, token: str = "") -> DiscordConfig:
    shown = Secret(token or fake.token)
    return DiscordConfig(name="discord:main", token=shown, api_base=fake.api_url, allow=("7", "*"))


async def found(config: DiscordConfig) -> list[PlatformFinding]:
    return [each async for each in discord.examine_discord(config)]


async def test_the_bot_of_a_token_is_named(fake: FakeDiscord) -> None:
    assert await discord.try_discord(section(fake)) == "the bot is Koboshi"


async def test_a_wrong_token_and_a_platform_out_of_reach_are_told(fake: FakeDiscord) -> None:
    with pytest.raises(ProbeFailed, match="refuses the token"):
        await discord.try_discord(section(fake, f"{fake.token}x"))
    await fake.stop()
    with pytest.raises(ProbeFailed, match="was not reached"):
        await discord.try_discord(section(fake))
    await fake.start()


async def test_a_bot_that_may_not_read_is_an_error_with_its_remedy(fake: FakeDiscord) -> None:
    assert {each.severity for each in await found(section(fake))} == {"ok"}
    fake.world.has_message_content = False
    (wrong,) = [each for each in await found(section(fake)) if each.severity == "error"]

    assert "Message Content Intent" in wrong.remedy


async def test_without_the_extra_the_channel_is_down_and_says_what_to_install(
    fake: FakeDiscord, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    setup = _setup(tmp_path)
    built = discord.discord_channel(section(fake), setup)
    assert (built.name, built.account) == ("discord:main", str(fake.world.bot.user_id))
    monkeypatch.setattr(discord, "find_spec", lambda _: None)
    absent = discord.discord_channel(section(fake), setup)

    assert absent.trouble is not None
    assert "koboshi[discord]" in absent.trouble


async def _no(*_: object) -> bool:
    return False


def _setup(home: Path) -> ChannelSetup:
    async def watermarks(_channel: ChannelName, _account: str) -> dict[str, str]:
        return {}

    return ChannelSetup(
        keeps_store_in_home=True,
        home=home,
        limits=Limits(),
        commands=(),
        clock=SystemClock(),
        on_back=lambda: None,
        watermarks=watermarks,
        is_allowed=_no,
    )
