"""`koboshi memory`: what the agent remembers of people and groups."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from koboshi.cli.ask_owner import ask_owner, loaded, read_answer
from koboshi.cli.groups import ListGroup
from koboshi.cli.options import failures_told, home_options, json_option, show_json
from koboshi.cli.tables import echo_table
from koboshi.config.problems import escaped
from koboshi.control.memory_replies import MemoryDone, MemoryExplained, MemoryList, MemoryScopeRow
from koboshi.control.requests import ListMemory, RemoveMemoryEntry
from koboshi.domain.phrases import excerpt


@click.group(cls=ListGroup)
def memory() -> None:
    """What the agent remembers of people and groups: list, remove."""


@memory.command("list")
@home_options
@json_option
def list_memories(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """All memories, the one that changed last first."""
    with failures_told(as_json):
        answer = ask_owner(loaded(home, config_file), ListMemory())
        if as_json:
            show_json(answer)
            return
        scopes = read_answer(answer, MemoryList).scopes
        cells = [
            (row.memory, _whose(scope), row.shelf, excerpt(row.text, 200))
            for scope in scopes
            for row in scope.memories
        ]
        lines = ["  ".join(each) for each in cells]
        echo_table(("", "of", "shelf", "text"), cells, lines, "nothing is remembered")
        for scope in scopes:
            for trouble in scope.troubles:
                click.echo(escaped(f"not taken over: memory/{scope.folder}/{trouble}"))


@memory.command()
@click.argument("what", metavar="MEMORY")
@home_options
@json_option
def remove(what: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Remove MEMORY, n1. `/memory undo` in its chat brings it back."""
    with failures_told(as_json):
        answer = ask_owner(loaded(home, config_file), RemoveMemoryEntry(what=what))
        if as_json:
            show_json(answer)
        else:
            click.echo(escaped(read_answer(answer, MemoryDone).words))


def render_memory(answer: Mapping[str, object]) -> Iterator[str]:
    """Where an entry comes from, for `koboshi explain`."""
    said = read_answer(answer, MemoryExplained)
    row, scope = said.memory, said.scope
    yield f"memory {row.memory} of {_whose(scope)}, shelf {row.shelf}"
    yield f"says      {excerpt(row.text, 400)}"
    noted = f"in turn {row.turn}" if row.turn else "by hand, or by an operator"
    yield f"noted     {noted}, since revision {said.since} of {scope.revision}"
    yield f"file      memory/{scope.folder}/{row.shelf.upper()}.md"


def _whose(scope: MemoryScopeRow) -> str:
    group = " (group)" if scope.kind == "chat" else ""
    return f"{scope.channel}/{scope.name or 'its owner'}{group}"
