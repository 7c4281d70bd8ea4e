"""`koboshi init`: a few questions, and the configuration they make."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from koboshi.cli.init_text import KEY_VARIABLES, PORT, TELEGRAM_BASE, Answers, Telegram, render
from koboshi.cli.options import FAILED, WRONG_SETUP, Failure, failures_told, home_options
from koboshi.config import (
    Config,
    ConfigError,
    TelegramConfig,
    load,
    prepare_home,
    secrets_of,
)
from koboshi.config.places import find_places
from koboshi.config.problems import escaped
from koboshi.config.write import write_new

UNSET = "not-set-yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was said by options; the rest is asked for, or has its default."""

    model: str | None
    base_url: str
    api_key_env: str
    telegram_token_env: str | None
    api_base: str
    allow: tuple[int, ...]
    port: int | None
    writes_token: bool


@click.command()
@click.option("--yes", is_flag=True, help="Ask nothing: options and defaults decide.")
@click.option("--force", is_flag=True, help="Replace a configuration; it is kept as <file>.old.")
@click.option("--no-check", is_flag=True, help="Do not try the token and the model.")
@click.option("--model", metavar="NAME", help="openai:<model>, ollama:<model>, …, or scripted.")
@click.option("--base-url", default="", metavar="URL", help="An endpoint of your own.")
@click.option("--api-key-env", default="", metavar="NAME", help="The variable with its key.")
@click.option(
    "--telegram-token-env",
    metavar="NAME",
    help="The variable with a bot's token; with it, there is a Telegram channel.",
)
@click.option("--telegram-api-base", default=TELEGRAM_BASE, metavar="URL", show_default=True)
@click.option("--allow", type=int, multiple=True, metavar="ID", help="Who may talk to the bot.")
@click.option("--port", type=click.IntRange(0, 65_535), help=f"Of the web channel; else {PORT}.")
@click.option(
    "--write-token",
    is_flag=True,
    help="Put the bot's token itself into the file. Everybody who can read it is the bot.",
)
@home_options
def init(
    yes: bool,
    force: bool,
    no_check: bool,
    home: Path | None,
    config_file: Path | None,
    **said: object,
) -> None:
    """Ask a few questions and write a commented koboshi.toml.

    Secrets stay in the environment: the file names the variables. What they hold is tried, if they
    are set: Telegram is asked whose token it is, and the model for one word.
    """
    with failures_told(as_json=False):
        places = _places(home, config_file)
        if places.exists() and not force:
            words = f"{places} is there already; --force replaces it, and keeps it as {places}.old"
            raise Failure(FAILED, "exists", words)
        if not yes and not sys.stdin.isatty():
            words = "there is no terminal to ask at; say --yes, and what you want by options"
            raise Failure(FAILED, "no-terminal", words)
        answers = _answers(_wanted(said), is_asked=not yes)
        text = render(answers)
        config = _checked(home, text, answers)
        if not no_check:
            _try_all(config, answers, may_ask=not yes)
        _write(places, text, config.home, is_replacing=force)
        _say_what_next(places, answers)


def _wanted(said: Mapping[str, object]) -> Wanted:
    return Wanted(
        model=_text(said["model"]),
        base_url=_text(said["base_url"]) or "",
        api_key_env=_text(said["api_key_env"]) or "",
        telegram_token_env=_text(said["telegram_token_env"]),
        api_base=_text(said["telegram_api_base"]) or TELEGRAM_BASE,
        allow=said["allow"] if isinstance(said["allow"], tuple) else (),
        port=said["port"] if isinstance(said["port"], int) else None,
        writes_token=said["write_token"] is True,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _answers(wanted: Wanted, *, is_asked: bool) -> Answers:
    ask = _ask if is_asked else (lambda _question, default: default)
    model = wanted.model or ask(
        "Which model? scripted (offline), openai:<model>, anthropic:<model>, google:<model>, "
        "ollama:<model>",
        "scripted",
    )
    provider = model.partition(":")[0]
    key, base = wanted.api_key_env or KEY_VARIABLES.get(provider, ""), wanted.base_url
    if is_asked and provider != "scripted":
        key = wanted.api_key_env or ask("The variable with its key (- for none)", key or "-")
        base = base or ask("The address of a server of your own (- for the provider's)", "-")
    return Answers(
        model=model,
        base_url="" if base == "-" else base,
        api_key_env="" if key == "-" else key,
        port=_port(wanted.port, is_asked=is_asked),
        telegram=_telegram(wanted, ask),
    )


def _port(wanted: int | None, *, is_asked: bool) -> int:
    if wanted is not None or not is_asked:
        return PORT if wanted is None else wanted
    kind = click.IntRange(0, 65_535)
    port: int = click.prompt("Port of the web chat", type=kind, default=PORT, err=True)
    return port


def _telegram(wanted: Wanted, ask: Callable[[str, str], str]) -> Telegram | None:
    variable = wanted.telegram_token_env
    if variable is None:
        variable = ask("The variable with the token of a Telegram bot (- for no bot)", "-")
    if variable == "-":
        return None
    allow = wanted.allow
    if not allow:
        said = ask("Your id at Telegram, if you know it (- to be let in by a code)", "-")
        allow = tuple(int(part) for part in said.split(",") if part.strip("- ").isdigit())
    token = os.environ.get(variable, "") if wanted.writes_token else ""
    return Telegram(token_env=variable, token=token, api_base=wanted.api_base, allow=allow)


def _ask(question: str, default: str) -> str:
    said: str = click.prompt(question, default=default, err=True)
    return said.strip()


def _places(home: Path | None, config_file: Path | None) -> Path:
    try:
        return find_places(home, config_file, os.environ).file
    except ConfigError as error:
        raise Failure(WRONG_SETUP, "config", str(error)) from error


def _checked(home: Path | None, text: str, answers: Answers) -> Config:
    """The configuration that the text makes, with a word for each secret that is not set yet."""
    import tempfile

    named = [answers.api_key_env, answers.telegram.token_env if answers.telegram else ""]
    unset = {name: UNSET for name in named if name and not os.environ.get(name)}
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        try:
            return load(home, Path(file.name), {**os.environ, **unset})
        except ConfigError as error:
            said = str(error).replace(file.name, "the new configuration")
            raise Failure(WRONG_SETUP, "config", said) from error


def _try_all(config: Config, answers: Answers, *, may_ask: bool) -> None:
    """One call of each; where it fails, a person decides, and a script goes no further."""
    import anyio

    from koboshi import logs
    from koboshi.app.trying import Disappointed, try_model, try_telegram

    # On stderr, and only what is wrong: stdout is for the answer.
    logs.configure("error", False, secrets_of(config))
    for channel in config.enabled_channels:
        if isinstance(channel, TelegramConfig) and _is_known(channel.token):
            try:
                click.echo(f"telegram: the bot is @{anyio.run(try_telegram, channel)}", err=True)
            except Disappointed as error:
                _go_on_or_end("telegram", str(error), may_ask=may_ask)
    if answers.provider == "scripted" or (answers.api_key_env and not _is_set(answers)):
        return
    try:
        click.echo(f"model: {config.model.name} says: {anyio.run(try_model, config)}", err=True)
    except Disappointed as error:
        _go_on_or_end("model", str(error), may_ask=may_ask)


def _is_known(token: object) -> bool:
    from koboshi.config import Secret

    return isinstance(token, Secret) and token.reveal() != UNSET


def _is_set(answers: Answers) -> bool:
    return bool(os.environ.get(answers.api_key_env))


def _go_on_or_end(what: str, said: str, *, may_ask: bool) -> None:
    click.echo(escaped(f"{what}: {said}"), err=True)
    if may_ask and click.confirm("Write the configuration nevertheless?", err=True):
        return
    words = f"the {what} does not work, and nothing was written; --no-check writes without trying"
    raise Failure(FAILED, "not-working", words)


def _write(file: Path, text: str, home: Path, *, is_replacing: bool) -> None:
    try:
        prepare_home(home)
        write_new(file, text, is_replacing=is_replacing)
    except ConfigError as error:
        raise Failure(WRONG_SETUP, "home", str(error)) from error
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise Failure(WRONG_SETUP, "config", f"{file} can not be written: {said}") from error


def _say_what_next(file: Path, answers: Answers) -> None:
    click.echo(f"wrote {escaped(str(file))}")
    bot = answers.telegram
    if bot is not None and bot.token:
        click.echo("warning: it holds the bot's token; keep it to yourself", err=True)
    named = [answers.api_key_env, "" if bot is None or bot.token else bot.token_env]
    for name in named:
        if name and not os.environ.get(name):
            click.echo(f"set {name} before the start; it is not set here")
    click.echo("start it: koboshi run")
