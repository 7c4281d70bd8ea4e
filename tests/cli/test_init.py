"""`koboshi init`: a configuration that can be used, tried against what it names."""

import fcntl
import os
import pty
import select
import stat
import subprocess
import termios
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from anyio import to_thread

from koboshi.cli.init.text import Answers, Telegram, render
from koboshi.config import DiscordConfig, MatrixConfig, TelegramConfig, load
from tests.cli.process import KOBOSHI, Ended, environment, koboshi
from tests.fakes.model_servers import openai_form as form
from tests.fakes.model_servers.server import serving as serving_model
from tests.fakes.telegram.server import FakeTelegram, serving_in_thread

TOKEN = "TELEGRAM_BOT_TOKEN"
KEY_SECONDS = 0.2


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


def test_where_no_person_can_be_asked_it_says_how(home: Path) -> None:
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


# ── at a terminal ───────────────────────────────────────────────────────────────────────────────


def at_terminal(
    home: Path,
    typed: str,
    *arguments: str,
    last: tuple[str, str] = ("", ""),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> tuple[int, str]:
    """Answer the questions there; `last` is typed when its first half is to be seen. Returns the
    exit code and all that was."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [KOBOSHI, "init", *arguments],
        env=environment(home, **variables),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        # The terminal is theirs, so that what is typed there can interrupt them.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    seen, (question, key) = "", last
    try:
        while True:
            is_more, _, _ = select.select([ours], [], [], KEY_SECONDS)
            # Between two reads of the line a key can be missed; a person presses it again, too.
            if question and question in seen and "Aborted" not in seen and not is_more:
                os.write(ours, key.encode())
            if is_more:
                piece = os.read(ours, 65_536)
                seen += piece.decode(errors="replace")
                if not piece:
                    break
    except OSError:  # the other end is closed
        pass
    code = process.wait(60)
    os.close(ours)
    return code, seen


def test_at_a_terminal_it_asks(home: Path) -> None:
    code, _ = at_terminal(home, "\n8700\n-\n")

    assert code == 0
    assert "port = 8700\n" in (home / "koboshi.toml").read_text()


def test_an_answer_that_cannot_be_used_is_told_why_and_asked_again(home: Path) -> None:
    typed = [
        *("gpt-5", "nobody:gpt", "openai:gpt-5"),
        *("MY KEY", "MY_KEY"),
        *("nowhere", "http://127.0.0.1:9/v1"),
        *("many", "99999", "8701"),
        *("1TOKEN", "MY_BOT"),
        *("@ann", "12, 13"),
    ]
    code, seen = at_terminal(home, "\n".join((*typed, "")))

    assert code == 0, seen
    text = (home / "koboshi.toml").read_text()
    assert 'name = "openai:gpt-5"\nbase' in text.replace("# Where", "base").replace("\n\n", "\n")
    assert 'api_key_env = "MY_KEY"' in text
    assert "port = 8701\n" in text
    assert 'token_env = "MY_BOT"' in text
    assert "allow = [12, 13]" in text
    for why in (
        'model "gpt-5" does not say whose it is',
        'the provider "nobody"',
        "that cannot be used: it must be",
        "'many' is not a valid integer",
        '"@ann" is not an id',
    ):
        assert why in seen, seen


@pytest.mark.parametrize(
    "typed, question, interruption",
    [
        ("", "Which model?", "\x03"),
        ("openai:gpt-5\n", "with its key", "\x04"),
        ("\n8700\n", "a Telegram bot", "\x03"),
    ],
    ids=["ctrl-c at once", "end of input", "ctrl-c at the last question"],
)
def test_interrupted_in_the_middle_nothing_is_written(
    home: Path, typed: str, question: str, interruption: str
) -> None:
    code, seen = at_terminal(home, typed, last=(question, interruption))

    assert code == 1, seen
    assert "Aborted" in seen
    assert not home.exists()


def test_a_token_that_is_not_taken_can_be_answered_again(
    telegram: FakeTelegram, home: Path
) -> None:
    """The platform is called with each; the last one is written."""
    tokens = {"WRONG": "1:wrong", "RIGHT": telegram.token}
    typed = "\n\nWRONG\n-\nagain\nRIGHT\n-\n"
    code, seen = at_terminal(home, typed, "--telegram-api-base", telegram.url, variables=tokens)

    assert code == 0, seen
    assert "Telegram does not take the token" in seen
    assert "telegram: the bot is @" in seen
    assert 'token_env = "RIGHT"' in (home / "koboshi.toml").read_text()


def test_a_token_that_is_not_taken_can_be_written_or_left(
    telegram: FakeTelegram, home: Path
) -> None:
    base, wrong = ("--telegram-api-base", telegram.url), {"WRONG": "1:wrong"}
    left, _ = at_terminal(home, "\n\nWRONG\n-\nend\n", *base, variables=wrong)
    assert (left, home.exists()) == (1, False)

    written, _ = at_terminal(home, "\n\nWRONG\n-\nwrite\n", *base, variables=wrong)
    assert written == 0
    assert 'token_env = "WRONG"' in (home / "koboshi.toml").read_text()


# ── the model ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_good", [True, False])
async def test_the_model_is_asked_for_a_word(home: Path, is_good: bool) -> None:
    async with serving_model(form.complain) as server:
        refused = form.error(401, "no such key")
        words = form.stream(*form.text("ok, ", "I am here"), *form.end())
        server.answers.append(words if is_good else refused)
        arguments = (
            *("init", "--yes", "--model", "openai:gpt-test", "--api-key-env", "MY_KEY"),
            *("--base-url", f"http://127.0.0.1:{server.port}/v1"),
        )
        made = await to_thread.run_sync(
            lambda: koboshi(*arguments, home=home, MY_KEY="a-secret-key")
        )

    assert len(server.requests) == 1
    assert "a-secret-key" not in made.err
    if is_good:
        assert made.code == 0, made.err
        assert "model: openai:gpt-test says: ok, I am here" in made.err
        assert "a-secret-key" not in (home / "koboshi.toml").read_text()
    else:
        assert made.code == 1
        assert "the model does not work, so nothing was written" in made.err
        assert not home.exists()


# ── other platforms ─────────────────────────────────────────────────────────────────────────────


def test_a_discord_bot_is_added_by_options(home: Path) -> None:
    added = ("--add", "discord", "--key", "discord.allow=80351110224678912")
    made = koboshi("init", "--yes", "--no-check", *added, home=home)

    assert made.code == 0, made.err
    assert "set DISCORD_BOT_TOKEN before the start" in made.out
    config = load(home, None, {"DISCORD_BOT_TOKEN": "t"})
    (bot,) = [each for each in config.enabled_channels if isinstance(each, DiscordConfig)]
    assert bot.allow == ("80351110224678912",)


def test_an_account_on_another_platform_is_added_by_options(home: Path) -> None:
    made = koboshi(
        *("init", "--yes", "--no-check", "--add", "matrix"),
        *("--key", "matrix.homeserver=http://127.0.0.1:9", "--key", "matrix.user=@bot:example.org"),
        *("--key", "matrix.allow=@ann:example.org,@bob:example.org"),
        home=home,
    )

    assert made.code == 0, made.err
    assert "set MATRIX_ACCESS_TOKEN before the start" in made.out
    config = load(home, None, {"MATRIX_ACCESS_TOKEN": "t"})
    (account,) = [each for each in config.enabled_channels if isinstance(each, MatrixConfig)]
    assert (account.homeserver, account.user) == ("http://127.0.0.1:9", "@bot:example.org")
    assert account.allow == ("@ann:example.org", "@bob:example.org")


def test_at_a_terminal_it_asks_for_what_the_platform_needs(home: Path) -> None:
    typed = "\n\nMY_TOKEN\nhttp://127.0.0.1:9\n@bot:example.org\n-\n"
    code, seen = at_terminal(home, typed, "--no-check", "--add", "matrix")

    assert code == 0, seen
    text = (home / "koboshi.toml").read_text()
    assert 'user = "@bot:example.org"\n' in text
    assert 'token_env = "MY_TOKEN"\n' in text
