"""`koboshi init`: a configuration that can be used, tried against what it names."""

import os
import pty
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from koboshi.cli.init_text import Answers, Telegram, render
from koboshi.config import TelegramConfig, load
from tests.cli.process import KOBOSHI, Ended, environment, koboshi
from tests.fakes.telegram.server import FakeTelegram, serving_in_thread

TOKEN = "TELEGRAM_BOT_TOKEN"


@pytest.fixture
def telegram() -> Iterator[FakeTelegram]:
    with serving_in_thread() as fake:
        yield fake


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_without_any_answer_it_is_a_gateway_that_runs_offline(home: Path) -> None:
    made = koboshi("init", "--yes", home=home)

    assert made.code == 0, made.err
    assert made.out.splitlines()[0] == f"wrote {home / 'koboshi.toml'}"
    assert stat.S_IMODE((home / "koboshi.toml").stat().st_mode) == 0o600
    checked = koboshi("config", "check", home=home)
    assert (checked.code, checked.out, checked.err) == (0, "ok\n", "")
    assert not list(home.glob("*.new"))


@pytest.mark.parametrize(
    "answers",
    [
        Answers(),
        Answers(model="openai:gpt", api_key_env="K", base_url="http://127.0.0.1:1/v1", port=0),
        Answers(model="ollama:qwen"),
        Answers(model="anthropic:claude", api_key_env=""),
        Answers(telegram=Telegram(token_env="T")),
        Answers(telegram=Telegram(token='with"quote', allow=(1, 2), api_base="http://[::1]:9")),
    ],
)
def test_whatever_is_answered_can_be_read_again(answers: Answers, tmp_path: Path) -> None:
    (tmp_path / "koboshi.toml").write_text(render(answers))
    config = load(tmp_path, None, {"T": "1:secret", "K": "key"})

    assert config.model.name == answers.model
    assert config.model.base_url == answers.base_url
    found = [
        (bot.allow, bot.api_base) for bot in config.channels if isinstance(bot, TelegramConfig)
    ]
    wanted = answers.telegram
    assert found == ([] if wanted is None else [(wanted.allow, wanted.api_base)])


def test_what_is_there_is_not_replaced_unless_asked_for(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "koboshi.toml").write_text("# mine\n")
    refused = koboshi("init", "--yes", home=home)

    assert refused.code == 1
    assert "--force" in refused.err
    assert (home / "koboshi.toml").read_text() == "# mine\n"
    assert koboshi("init", "--yes", "--force", home=home).code == 0
    assert (home / "koboshi.toml.old").read_text() == "# mine\n"


def test_where_nobody_can_be_asked_it_says_how(home: Path) -> None:
    told = koboshi("init", home=home)

    assert told.code == 1
    assert "--yes" in told.err
    assert not home.exists()


def test_a_wrong_answer_is_told_like_a_wrong_configuration(home: Path) -> None:
    told = koboshi("init", "--yes", "--model", "openai:x", "--base-url", "nowhere", home=home)

    assert told.code == 78
    assert "model.base_url must be an address" in told.err
    assert not (home / "koboshi.toml").exists()


def test_secrets_that_are_not_set_are_named(home: Path) -> None:
    made = koboshi(
        *("init", "--yes", "--model", "openai:x", "--api-key-env", "MY_KEY"),
        *("--telegram-token-env", "MY_BOT"),
        home=home,
    )

    assert made.code == 0, made.err
    assert "set MY_KEY before the start" in made.out
    assert "set MY_BOT before the start" in made.out


def tried(fake: FakeTelegram, home: Path, *more: str, token: str = "") -> Ended:
    arguments = ("init", "--yes", "--telegram-token-env", TOKEN, *more)
    base = ("--telegram-api-base", fake.url)
    return koboshi(*arguments, *base, home=home, **{TOKEN: token or fake.token})


def test_the_token_is_tried_and_stays_out_of_the_file(telegram: FakeTelegram, home: Path) -> None:
    made = tried(telegram, home, "--allow", "12")

    assert made.code == 0, made.err
    assert "telegram: the bot is @" in made.err
    text = (home / "koboshi.toml").read_text()
    assert telegram.token not in text
    assert "allow = [12]" in text


def test_a_token_that_is_not_taken_writes_nothing(telegram: FakeTelegram, home: Path) -> None:
    made = tried(telegram, home, token="1:wrong")

    assert made.code == 1
    assert "Telegram does not take the token" in made.err
    assert "--no-check" in made.err
    assert "1:wrong" not in made.err
    assert not (home / "koboshi.toml").exists()
    assert tried(telegram, home, "--no-check", token="1:wrong").code == 0


def test_a_token_is_written_only_where_that_is_asked_for(
    telegram: FakeTelegram, home: Path
) -> None:
    made = tried(telegram, home, "--write-token")

    assert made.code == 0, made.err
    assert "warning: it holds the bot's token" in made.err
    assert f'token = "{telegram.token}"' in (home / "koboshi.toml").read_text()


def test_at_a_terminal_it_asks(home: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [KOBOSHI, "init"], env=environment(home), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, b"\n8700\n-\n")
    assert process.wait(60) == 0
    os.close(ours)

    assert "port = 8700\n" in (home / "koboshi.toml").read_text()
