"""`koboshi rules`: what people allowed for good in their chats, and how to take it back."""

from collections.abc import Iterator
from pathlib import Path

import click

from koboshi.cli.ask_owner import ask_owner, loaded, read_answer
from koboshi.cli.groups import ListGroup
from koboshi.cli.listing import show_list
from koboshi.cli.options import failures_told, home_options, json_option, show_json
from koboshi.config.problems import escaped
from koboshi.control.replies import RuleList, RuleRevoked
from koboshi.control.requests import ListRules, RevokeRule
from koboshi.domain.durations import ago
from koboshi.domain.phrases import excerpt

SHOWN_CHARS = 200


@click.group(cls=ListGroup)
def rules() -> None:
    """What people always allow in their chats ("Yes, and always")."""


@rules.command("list")
@home_options
@json_option
def list_rules(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """The rules in force, newest first."""
    show_list(
        home,
        config_file,
        as_json=as_json,
        request=ListRules(),
        shape=RuleList,
        lines=_lines,
    )


@rules.command()
@click.argument("rule")
@home_options
@json_option
def revoke(rule: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Take RULE back, as `list` shows it: r1. From then on the person is asked again."""
    with failures_told(as_json):
        answer = ask_owner(loaded(home, config_file), RevokeRule(what=rule))
        revoked = read_answer(answer, RuleRevoked).rule
        if as_json:
            show_json(answer)
            return
        shown = excerpt(revoked.shown, SHOWN_CHARS)
        click.echo(escaped(f"{revoked.name} is revoked; the agent asks again before: {shown}"))


def _lines(listed: RuleList, now_ms: int) -> Iterator[str]:
    if not listed.rules:
        yield "nothing is allowed for good"
    for rule in listed.rules:
        where = f"{rule.channel} {rule.chat}"
        made = f"{where}, by {rule.made_by} {ago(rule.made_ms, now_ms)}"
        yield f"{rule.name:<5} {made}: {excerpt(rule.shown, SHOWN_CHARS)}"
