"""Lists: a table on a terminal, plain lines elsewhere."""

import os
import sys
from collections.abc import Sequence

import click

from koboshi.config.problems import escaped


def echo_table(
    titles: Sequence[str],
    cells: Sequence[Sequence[str]],
    lines: Sequence[str],
    nothing: str,
) -> None:
    """Show rows: `cells` in a table on a terminal, `lines` into a pipe or a file."""
    if not cells:
        click.echo(nothing)
    elif sys.stdout.isatty():
        _draw(titles, cells)
    else:
        for line in lines:
            click.echo(escaped(line))


def _draw(titles: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for number, title in enumerate(titles):
        # The first is what is typed to name the row: it is never cut.
        table.add_column(title, no_wrap=number == 0, overflow="fold")
    for row in cells:
        # As text: what people wrote is no markup, and a terminal obeys nothing in it.
        table.add_row(*(Text(escaped(cell)) for cell in row))
    Console(no_color=bool(os.environ.get("NO_COLOR"))).print(table)
