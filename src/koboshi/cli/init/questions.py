"""The questions of `koboshi init`. An answer that cannot be used is told why, and asked again."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import click

from koboshi.app.platforms.registry import platform_of
from koboshi.cli.init.text import PORT, TELEGRAM_BASE, AddedAccount, Answers, Telegram
from koboshi.config import ModelConfig
from koboshi.config.problems import InvalidValue, escaped
from koboshi.config.values import keys_of
from koboshi.domain.providers import KEY_VARIABLES

NONE = "-"
MODELS = "scripted (offline), openai:<model>, anthropic:<model>, google:<model>, ollama:<model>"

Complaint: TypeAlias = Callable[[str], str]
"""What is wrong with an answer; empty if nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was said by options; the rest is asked for, or has its default."""

    model: str | None = None
    base_url: str = ""
    api_key_env: str = ""
    telegram_token_env: str | None = None
    api_base: str = TELEGRAM_BASE
    allow: tuple[int, ...] = ()
    port: int | None = None
    writes_token: bool = False
    add: tuple[str, ...] = ()
    """Other platforms, by name."""
    keys: tuple[tuple[str, str], ...] = ()
    """What was said of them: `matrix.user` and its value."""


def answers_of(wanted: Wanted) -> Answers:
    """Without a question: options and defaults decide."""
    model = wanted.model or "scripted"
    variable = wanted.telegram_token_env
    return Answers(
        model=model,
        base_url=wanted.base_url,
        api_key_env=wanted.api_key_env or KEY_VARIABLES.get(_provider(model), ""),
        port=PORT if wanted.port is None else wanted.port,
        telegram=None if variable in (None, NONE) else _bot(wanted, variable, wanted.allow),
        added=tuple(_account(wanted, platform, _as_said) for platform in wanted.add),
    )


def ask_all(wanted: Wanted) -> Answers:
    """Ask for whatever the options leave open."""
    answers = answers_of(wanted)
    if wanted.model is None or answers.provider != "scripted":
        answers = ask_model(wanted, answers)
    if wanted.port is None:
        kind = click.IntRange(0, 65_535)
        port = click.prompt("Port of the web chat", type=kind, default=PORT, err=True)
        answers = replace(answers, port=port)
    if not wanted.add and (wanted.telegram_token_env is None or not wanted.allow):
        answers = ask_telegram(wanted, answers)
    return replace(
        answers, added=tuple(_account(wanted, platform, _asked) for platform in wanted.add)
    )


def ask_model(wanted: Wanted, answers: Answers, *, is_again: bool = False) -> Answers:
    """Which model, with which key, and where. `is_again` asks also what an option has said."""
    model = answers.model
    if wanted.model is None or is_again:
        model = _ask(f"Which model? {MODELS}", model, _about_model)
    if _provider(model) == "scripted":
        return replace(answers, model=model, api_key_env="", base_url="")
    key = wanted.api_key_env or KEY_VARIABLES.get(_provider(model), "")
    if not wanted.api_key_env or is_again:
        key = _ask("The variable with its key (- for none)", key or NONE, _about_variable)
    base = wanted.base_url
    if not base or is_again:
        words = "The address of a server of your own (- for the provider's)"
        base = _ask(words, base or NONE, _about_address)
    return replace(
        answers,
        model=model,
        api_key_env="" if key == NONE else key,
        base_url="" if base == NONE else base,
    )


def ask_telegram(wanted: Wanted, answers: Answers, *, is_again: bool = False) -> Answers:
    """Which bot, and whose."""
    variable = wanted.telegram_token_env
    if variable is None or is_again:
        words = "The variable with the token of a Telegram bot (- for no bot)"
        variable = _ask(words, variable or NONE, _about_variable)
    if variable == NONE:
        return replace(answers, telegram=None)
    allow = wanted.allow
    if not allow:
        words = "Your id at Telegram, if you know it (- to be let in by a code)"
        said = _ask(words, NONE, _about_ids)
        allow = tuple(int(part) for part in said.split(",")) if said != NONE else ()
    return replace(answers, telegram=_bot(wanted, variable, allow))


def _account(
    wanted: Wanted, platform: str, value_of: Callable[[str, str, str | None], str]
) -> AddedAccount:
    """An account on another platform; `value_of` decides about each of its keys."""
    questions = platform_of(platform).init
    assert questions is not None, "only such platforms are offered"
    prefix = f"{platform}."
    said = {key.removeprefix(prefix): value for key, value in wanted.keys if key.startswith(prefix)}
    token_env = value_of(
        f"The variable with the token of {questions.title}",
        questions.token_env,
        said.get("token_env", questions.token_env if said else None),
    )
    keys = tuple(
        (key.name, value_of(key.question, key.example, said.get(key.name)))
        for key in questions.keys
    )
    words = f"Who may talk to it, such as {questions.person_example} (- to be let in by a code)"
    people = value_of(words, NONE, said.get("allow", NONE if said else None))
    allow = () if people == NONE else tuple(each.strip() for each in people.split(","))
    return AddedAccount(
        platform=platform, comment=questions.comment, token_env=token_env, keys=keys, allow=allow
    )


def _as_said(question: str, example: str, said: str | None) -> str:  # noqa: ARG001
    """What an option says, else an example that is to be changed."""
    return example if said is None else said


def _asked(question: str, example: str, said: str | None) -> str:
    return said if said is not None else _ask(question, example, lambda _said: "")


def _bot(wanted: Wanted, variable: str | None, allow: tuple[int, ...]) -> Telegram:
    name = variable or ""
    token = os.environ.get(name, "") if wanted.writes_token else ""
    return Telegram(token_env=name, token=token, api_base=wanted.api_base, allow=allow)


def _ask(question: str, default: str, complaint: Complaint) -> str:
    while True:
        said: str = click.prompt(question, default=default, err=True)
        wrong = complaint(said.strip())
        if not wrong:
            return said.strip()
        click.echo(escaped(wrong), err=True)


def _provider(model: str) -> str:
    return model.partition(":")[0]


def _about_model(said: str) -> str:
    from koboshi.app.probe import complaint_about_model

    return complaint_about_model(said)


def _about_variable(said: str) -> str:
    return _about_key("api_key_env", said)


def _about_address(said: str) -> str:
    return _about_key("base_url", said)


def _about_ids(said: str) -> str:
    parts = [part.strip() for part in said.split(",")]
    wrong = [part for part in parts if not (part.isascii() and part.isdecimal())]
    if said == NONE or not wrong:
        return ""
    return (
        f'"{wrong[0]}" is not an id: ids are whole numbers, such as 123456789; separate them by ","'
    )


def _about_key(key: str, said: str) -> str:
    """What is wrong with `said` as the value of a key of the model."""
    if said == NONE:
        return ""
    try:
        keys_of(ModelConfig)[key].check(said)
    except InvalidValue as error:
        return f"that cannot be used: it {error}"
    return ""
