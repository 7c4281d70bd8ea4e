"""Write the tables of docs/reference.md: configuration from its classes, commands from the parser,
metrics from their table. Run it with the project's Python."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from koboshi.cli.main import main
from koboshi.config.models import LinkConfig
from koboshi.config.platforms import PLATFORMS
from koboshi.config.sections import AgentConfig, Config, McpConfig
from koboshi.config.values import keys_of, sections_of
from koboshi.runtime.metric_table import METRICS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
COMMON = ("--home", "--config", "--help")
"""Options that nearly every command has; the page says so once."""


def render() -> str:
    """The page with its tables as they are now."""
    page = PAGE.read_text(encoding="utf-8")
    for name, lines in (
        ("configuration", configuration()),
        ("servers", servers()),
        ("agents", agents()),
        ("models", models()),
        ("commands", commands()),
        ("metrics", metrics()),
    ):
        page = _replaced(page, name, "\n".join(lines))
    return page


def configuration() -> Iterator[str]:
    yield "| key | default | meaning |"
    yield "|---|---|---|"
    for name, section in sections_of(Config).items():
        yield from _keys(section, f"{name}.")
    for name, channel in PLATFORMS.items():
        yield from _keys(channel, f"channels.{name}.<name>.")


def servers() -> Iterator[str]:
    yield "| key | default | meaning |"
    yield "|---|---|---|"
    yield from _keys(McpConfig, "")


def agents() -> Iterator[str]:
    yield "| key | default | meaning |"
    yield "|---|---|---|"
    yield from _keys(AgentConfig, "")


def models() -> Iterator[str]:
    yield "| key | default | meaning |"
    yield "|---|---|---|"
    yield from _keys(LinkConfig, "")


def _keys(section: type[msgspec.Struct], prefix: str) -> Iterator[str]:
    """One line for each key of a section, its default as it would be written."""
    for name, key in keys_of(section).items():
        yield f"| `{prefix}{name}` | {_written(key.default)} | {key.words} |"
    for name, inner in sections_of(section).items():
        yield from _keys(inner, f"{prefix}{name}.")


def _written(default: object) -> str:
    match default:
        case None:
            return ""
        case Path():
            return f'`"{default}"`'
        case tuple():
            return "`[]`"
        case _:
            return f"`{json.dumps(default)}`"


def commands() -> Iterator[str]:
    yield "| command | does | options |"
    yield "|---|---|---|"
    for words, command in every_command():
        arguments = [each for each in command.params if isinstance(each, click.Argument)]
        taken = " ".join(each.human_readable_name for each in arguments)
        open_to_people = (each for each in command.params if not getattr(each, "hidden", False))
        options = [_option(each) for each in open_to_people if isinstance(each, click.Option)]
        told = [each for each in options if each.split()[0] not in COMMON]
        shown = ", ".join(f"`{each}`" for each in told).replace("|", "\\|")
        does = " ".join((command.help or "").split("\n\n")[0].split()).rstrip(".")
        yield f"| `{' '.join(('koboshi', words, taken)).rstrip()}` | {_cell(does)} | {shown} |"


def every_command() -> Iterator[tuple[str, click.Command]]:
    """Each command by its words, in the order in which the help lists them."""
    top = click.Context(main, info_name="koboshi")
    for name in main.list_commands(top):
        command = main.get_command(top, name)
        assert command is not None
        if not isinstance(command, click.Group):
            yield name, command
            continue
        context = click.Context(command, info_name=name, parent=top)
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            assert inner is not None
            yield f"{name} {part}", inner


def _option(option: click.Option) -> str:
    name = max(option.opts, key=len)
    if option.secondary_opts:
        return f"{name}/{max(option.secondary_opts, key=len)}"
    if option.is_flag:
        return name
    kind = option.type
    if option.metavar is None and isinstance(kind, click.Choice):
        return f"{name} {'|'.join(map(str, kind.choices))}"
    return f"{name} {option.metavar or kind.name.split()[0].upper()}"


def metrics() -> Iterator[str]:
    yield "| metric | kind | labels | tells |"
    yield "|---|---|---|---|"
    for name, told in METRICS.items():
        labels = ", ".join(f"`{label}`" for label in told.labels)
        yield f"| `{name}` | {told.kind} | {labels} | {_cell(told.words.rstrip('.'))} |"


def _cell(words: str) -> str:
    """Free of what a table would take for its own, and what a page would take for markup."""
    return re.sub(r"(<[\w ]+>[\w/.-]*)", r"`\1`", words.replace("|", "\\|"))


def _replaced(page: str, name: str, table: str) -> str:
    begin, end = f"<!-- {name}: written by `make docs-generated` -->", f"<!-- end of {name} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{PAGE.name} has no place for {name}")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
