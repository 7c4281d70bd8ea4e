"""`koboshi init`: a few questions, and the configuration they make."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from koboshi.app.platforms.registry import OWN
from koboshi.cli.init.questions import Wanted, answers_of, ask_all, ask_model, ask_telegram
from koboshi.cli.init.text import PORT, TELEGRAM_BASE, Answers, render
from koboshi.cli.options import FAILED, WRONG_SETUP, CommandFailure, failures_told, home_options
from koboshi.config import (
    Config,
    ConfigError,
    PlatformConfig,
    load,
    prepare_home,
    secrets_of,
)
from koboshi.config.home_paths import find_places
from koboshi.config.problems import escaped
from koboshi.config.write import write_new
from koboshi.domain.sandbox import Boundary

UNSET = "not-set-yet"


@click.command()
@click.option("--yes", is_flag=True, help="Ask nothing: use the options and the defaults.")
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
    "--add",
    type=click.Choice([name for name in OWN if name != "telegram"]),
    multiple=True,
    help="Add an account on another platform.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="PLATFORM.KEY=VALUE",
    help="A setting of an added account: matrix.user=@bot:example.org, matrix.allow=A,B.",
)
@click.option(
    "--write-token",
    is_flag=True,
    help="Put the bot's token itself into the file. All who can read it can act as the bot.",
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
            raise CommandFailure(FAILED, "exists", words)
        if not yes and not sys.stdin.isatty():
            words = "there is no terminal to ask at; use --yes and options instead"
            raise CommandFailure(FAILED, "no-terminal", words)
        wanted = _wanted(said)
        answers = answers_of(wanted) if yes else ask_all(wanted)
        if not no_check:
            answers = _tried(home, wanted, answers, may_ask=not yes)
        config = _checked(home, answers)
        _write(places, render(answers), config.home, is_replacing=force)
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
        add=said["add"] if isinstance(said["add"], tuple) else (),
        keys=_pairs(said["keys"]),
    )


def _pairs(written: object) -> tuple[tuple[str, str], ...]:
    """What `--key` says, as names and values."""
    pairs: list[tuple[str, str]] = []
    for each in written if isinstance(written, tuple) else ():
        name, sign, value = str(each).partition("=")
        if not sign or "." not in name:
            words = f'--key takes PLATFORM.KEY=VALUE, not "{escaped(str(each))}"'
            raise CommandFailure(FAILED, "usage", words)
        pairs.append((name.strip(), value.strip()))
    return tuple(pairs)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _places(home: Path | None, config_file: Path | None) -> Path:
    try:
        return find_places(home, config_file, os.environ).file
    except ConfigError as error:
        raise CommandFailure(WRONG_SETUP, "config", str(error)) from error


def _checked(home: Path | None, answers: Answers) -> Config:
    """The configuration that the answers make, with a word for each secret that is not set yet."""
    import tempfile

    named = [answers.api_key_env, answers.telegram.token_env if answers.telegram else ""]
    named += [account.token_env for account in answers.added]
    unset = {name: UNSET for name in named if name and not os.environ.get(name)}
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        file.write(render(answers))
        file.flush()
        try:
            return load(home, Path(file.name), {**os.environ, **unset})
        except ConfigError as error:
            said = str(error).replace(file.name, "the new configuration")
            raise CommandFailure(WRONG_SETUP, "config", said) from error


def _tried(home: Path | None, wanted: Wanted, answers: Answers, *, may_ask: bool) -> Answers:
    """One call of each. Where it fails a person answers anew, or decides; a script goes no
    further."""
    from koboshi import logs

    for what, attempt, ask_again in (
        ("telegram", _call_telegram, ask_telegram),
        ("model", _call_model, ask_model),
    ):
        while True:
            config = _checked(home, answers)
            # On stderr, and only what is wrong: stdout is for the answer.
            logs.configure("error", False, secrets_of(config))
            wrong = attempt(config, answers)
            if not wrong:
                break
            click.echo(escaped(f"{what}: {wrong}"), err=True)
            if _writes_nevertheless(what, may_ask=may_ask):
                break
            answers = ask_again(wanted, answers, is_again=True)
    return answers


def _call_telegram(config: Config, _answers: Answers) -> str:
    """Why the bot cannot be used; empty if it can, or there is none to try."""
    import anyio

    from koboshi.app.platforms.platform import ProbeFailed
    from koboshi.app.platforms.registry import platform_of

    for channel in config.enabled_channels:
        if isinstance(channel, PlatformConfig) and _is_known(channel.token):
            try:
                who = anyio.run(platform_of(channel.platform).probe, channel)
            except ProbeFailed as error:
                return str(error)
            click.echo(escaped(f"{channel.platform}: {who}"), err=True)
    return ""


def _call_model(config: Config, answers: Answers) -> str:
    """Why the model cannot be used; empty if it can, or its key is not here to try it."""
    import anyio

    from koboshi.app.platforms.platform import ProbeFailed
    from koboshi.app.probe import try_model

    if answers.provider == "scripted" or (answers.api_key_env and not _is_set(answers)):
        return ""
    try:
        said = anyio.run(try_model, config)
    except ProbeFailed as error:
        return str(error)
    click.echo(escaped(f"model: {config.model.name} says: {said}"), err=True)
    return ""


def _is_known(token: object) -> bool:
    from koboshi.config import Secret

    return isinstance(token, Secret) and token.reveal() != UNSET


def _is_set(answers: Answers) -> bool:
    return bool(os.environ.get(answers.api_key_env))


def _writes_nevertheless(what: str, *, may_ask: bool) -> bool:
    """Whether it is written as it is; else it is asked again. Raises CommandFailure for the end."""
    choice = "end"
    if may_ask:
        kind = click.Choice(["again", "write", "end"])
        words = "Answer again, write it anyway, or end?"
        choice = click.prompt(words, type=kind, default="again", err=True)
    if choice != "end":
        return choice == "write"
    name = "the model" if what == "model" else what.capitalize()
    words = f"{name} does not work, so nothing was written; --no-check writes without trying"
    raise CommandFailure(FAILED, "not-working", words)


def _write(file: Path, text: str, home: Path, *, is_replacing: bool) -> None:
    try:
        prepare_home(home)
        write_new(file, text, is_replacing=is_replacing)
    except ConfigError as error:
        raise CommandFailure(WRONG_SETUP, "home", str(error)) from error
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise CommandFailure(WRONG_SETUP, "config", f"{file} cannot be written: {said}") from error


def _say_what_next(file: Path, answers: Answers) -> None:
    click.echo(f"wrote {escaped(str(file))}")
    bot = answers.telegram
    if bot is not None and bot.token:
        click.echo("warning: it holds the bot's token; keep it to yourself", err=True)
    named = [answers.api_key_env, "" if bot is None or bot.token else bot.token_env]
    named += [account.token_env for account in answers.added]
    for name in named:
        if name and not os.environ.get(name):
            click.echo(f"set {name} before the start; it is not set here")
    _say_boundary()
    click.echo("start it: koboshi run")


def _say_boundary() -> None:
    """Which boundary will stand around the agent's commands on this machine."""
    from koboshi.boundary.probe import REMEDY, probe

    found = probe()
    if found.best is Boundary.NONE:
        click.echo(
            f"warning: no sandbox holds here ({found.reasons}); without one the agent has no "
            f"command, file and MCP tools. {REMEDY}",
            err=True,
        )
    else:
        click.echo(f"commands of the agent will run inside {found.best}, in gateway.workdir")
