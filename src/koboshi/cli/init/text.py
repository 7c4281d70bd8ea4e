"""The configuration that `koboshi init` writes, with a line of comment for each choice. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from koboshi.domain.providers import KEY_VARIABLES

TELEGRAM_BASE = "https://api.telegram.org"
PORT = 8642


@dataclass(frozen=True, slots=True, kw_only=True)
class Telegram:
    token_env: str = "TELEGRAM_BOT_TOKEN"
    token: str = field(default="", repr=False)
    """Only where the secret was asked for in the file."""
    api_base: str = TELEGRAM_BASE
    allow: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedAccount:
    """An account on another platform: its keys, as they are written."""

    platform: str
    comment: str
    token_env: str
    keys: tuple[tuple[str, str], ...] = ()
    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the operator wants of a new gateway."""

    model: str = "scripted"
    base_url: str = ""
    api_key_env: str = ""
    """The variable that holds the key of the model; empty if it needs none."""
    port: int = PORT
    telegram: Telegram | None = None
    added: tuple[AddedAccount, ...] = ()

    @property
    def provider(self) -> str:
        return self.model.partition(":")[0]


def render(answers: Answers) -> str:
    """The file. Everything that is left out has its default; `koboshi config show` tells all."""
    added = [line for account in answers.added for line in _added(account)]
    channels = (*_web(answers), *_telegram(answers), *added)
    return "\n".join((*_head(), *_model(answers), *channels, *_rest()))


def _head() -> Iterator[str]:
    yield "# Koboshi. `koboshi config check` says whether this can be used, `koboshi config show`"
    yield "# what every key is set to. SIGHUP makes a running gateway take what was changed."
    yield ""


def _model(answers: Answers) -> Iterator[str]:
    yield "[model]"
    if answers.provider == "scripted":
        yield "# Offline and without a key. Others: openai:<model>, anthropic:<model>,"
        yield "# google:<model>, ollama:<model>."
    yield f"name = {_quoted(answers.model)}"
    if answers.base_url:
        yield "# Where it is; without it, the provider's own address."
        yield f"base_url = {_quoted(answers.base_url)}"
    if answers.api_key_env or answers.provider in KEY_VARIABLES:
        yield "# The variable that holds the key; empty for none. The key does not belong here."
        yield f"api_key_env = {_quoted(answers.api_key_env)}"
    yield ""


def _web(answers: Answers) -> Iterator[str]:
    yield "[channels.web.main]"
    yield "# The chat and the HTTP interface, for this machine only. Its token is made at the first"
    yield "# start, in <home>/web-token."
    yield f"port = {answers.port}"
    yield ""


def _telegram(answers: Answers) -> Iterator[str]:
    bot = answers.telegram
    if bot is None:
        yield "# [channels.telegram.main]"
        yield "# A bot of Telegram's BotFather:"
        yield '# token_env = "TELEGRAM_BOT_TOKEN"'
        yield "# allow = [123456789]"
        yield ""
        return
    yield "[channels.telegram.main]"
    if bot.token:
        yield "# The secret itself, as asked for. token_env or token_file would keep it elsewhere."
        yield f"token = {_quoted(bot.token)}"
    else:
        yield "# The variable that holds the bot's token."
        yield f"token_env = {_quoted(bot.token_env)}"
    if bot.api_base != TELEGRAM_BASE:
        yield f"api_base = {_quoted(bot.api_base)}"
    if bot.allow:
        yield "# Who may talk to it, by the ids that Telegram gives people. Others get a code, and"
        yield "# `koboshi pairing approve CODE` lets them in."
    else:
        yield "# No person is allowed yet. Each one who writes gets a code, and"
        yield "# `koboshi pairing approve CODE` lets them in."
    yield f"allow = [{', '.join(map(str, bot.allow))}]"
    yield ""


def _added(account: AddedAccount) -> Iterator[str]:
    yield f"[channels.{account.platform}.main]"
    yield f"# {account.comment}"
    for key, value in account.keys:
        yield f"{key} = {_quoted(value)}"
    yield "# The variable that holds its token."
    yield f"token_env = {_quoted(account.token_env)}"
    yield "# Who may talk to it, by the ids that the platform gives people. Others get a code, and"
    yield "# `koboshi pairing approve CODE` lets them in."
    yield f"allow = [{', '.join(map(_quoted, account.allow))}]"
    yield ""


def _rest() -> Iterator[str]:
    yield "[recovery]"
    yield "# Turns that a crash interrupted: auto (go on), ask (ask first), off (wait)."
    yield 'policy = "auto"'
    yield ""
    yield "[tools.terminal]"
    yield "# Before which commands of the agent a person is asked: never, dangerous, always."
    yield 'approval = "dangerous"'
    yield ""


def _quoted(text: str) -> str:
    # A string of JSON is one of TOML, too.
    return json.dumps(text)
