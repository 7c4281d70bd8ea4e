"""What `koboshi init` and `koboshi doctor --online` find out about an app of Slack."""

from pathlib import Path

import pytest

from koboshi.app.platforms.platform import PlatformFinding, ProbeFailed
from koboshi.app.platforms.slack import examine_slack, try_slack
from koboshi.config import ConfigError, SlackConfig, load
from tests.fakes.slack.server import FakeSlack, serving

SECTION = "KOBOSHI__CHANNELS__SLACK__MAIN__"


def config_of(home: Path, fake: FakeSlack, **settings: str) -> SlackConfig:
    given = {
        f"{SECTION}API_BASE": fake.api,
        "SLACK_BOT_TOKEN": fake.bot_token,
        "SLACK_APP_TOKEN": fake.app_token,
        **settings,
    }
    (app,) = [each for each in load(home, None, given).channels if isinstance(each, SlackConfig)]
    return app


async def findings(app: SlackConfig) -> list[PlatformFinding]:
    return [found async for found in examine_slack(app)]


async def test_an_app_that_is_well_is_named_and_nothing_is_wrong(tmp_path: Path) -> None:
    async with serving() as fake:
        app = config_of(tmp_path, fake)
        assert "Loopback" in await try_slack(app)
        found = await findings(app)
    assert {each.severity for each in found} == {"ok"}
    assert any("Socket Mode is open" in each.words for each in found)
    assert not fake.sockets.opened


async def test_missing_scopes_are_told_with_what_they_cost(tmp_path: Path) -> None:
    async with serving() as fake:
        fake.world.scopes -= {"metadata.message:read", "im:history"}
        found = await findings(config_of(tmp_path, fake))
    wrong = {each.severity: each.words for each in found if each.severity != "ok"}
    assert "is labelled" in wrong["warning"]
    assert "im:history" in wrong["error"]
    assert all(each.remedy for each in found if each.severity != "ok")


async def test_without_the_scopes_to_list_conversations_the_doctor_is_not_content(
    tmp_path: Path,
) -> None:
    """Slack lists nothing at all if one kind of those that are asked for may not be listed."""
    lists = {"channels:read", "groups:read", "im:read", "mpim:read"}
    async with serving() as fake:
        fake.world.scopes -= lists
        found = await findings(config_of(tmp_path, fake))
    wrong = "\n".join(each.words for each in found if each.severity == "error")
    assert [scope for scope in lists if scope not in wrong] == []


async def test_a_token_that_is_refused_is_told(tmp_path: Path) -> None:
    async with serving() as fake:
        wrong = config_of(tmp_path, fake, SLACK_BOT_TOKEN="xoxb-1-2-wrong")
        with pytest.raises(ProbeFailed, match="invalid_auth"):
            await try_slack(wrong)
        found = await findings(config_of(tmp_path, fake, SLACK_APP_TOKEN="xapp-wrong"))
    assert any(each.severity == "error" and "app-level" in each.words for each in found)


async def test_a_platform_that_is_not_there_is_told(tmp_path: Path) -> None:
    async with serving() as fake:
        app = config_of(tmp_path, fake)
    with pytest.raises(ProbeFailed, match="not reached"):
        await try_slack(app)


def test_either_the_app_level_token_or_the_signing_secret_is_needed(tmp_path: Path) -> None:
    """The other one is not asked for."""
    token = {"SLACK_BOT_TOKEN": "xoxb-1001-2002-abc"}
    with pytest.raises(ConfigError, match="SLACK_APP_TOKEN"):
        load(tmp_path, None, token | {f"{SECTION}GROUPS": "all"})
    called = token | {f"{SECTION}WEBHOOK_URL": "https://bot.example.org/slack"}
    with pytest.raises(ConfigError, match="SLACK_SIGNING_SECRET"):
        load(tmp_path, None, called)
    load(tmp_path, None, called | {"SLACK_SIGNING_SECRET": "8f742231"})
    load(tmp_path, None, token | {f"{SECTION}GROUPS": "all", "SLACK_APP_TOKEN": "xapp-1-A"})
