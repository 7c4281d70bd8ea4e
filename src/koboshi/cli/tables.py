"""Lists: a table on a terminal, plain lines elsewhere."""

import os
import re
import sys
from collections.abc import Sequence

import click

from koboshi.config.problems import escaped

STATE = "state"
"""The title of the column that has colours."""
_TONES = {
    "green": "done delivered attached handled stopped",
    "red": "failed killed lost rejected abandoned dropped refused",
    "yellow": "waiting queued in held interrupted set owed",
    "cyan": "running starting being sending answered",
}
_TONE_OF = {word: tone for tone, words in _TONES.items() for word in words.split()}
_EXITED = re.compile(r"exited(?: with code)? (-?\d+)")


def tone_of(state: str) -> str:
    """The colour of a state by its first word; of a command that has exited by its code."""
    exited = _EXITED.match(state)
    if exited is not None:
        return "green" if exited[1] == "0" else "red"
    word = re.match(r"\w*", state)
    return _TONE_OF.get(word[0] if word else "", "")


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
        named = zip(titles, row, strict=True)
        table.add_row(
            *(
                Text(escaped(cell), style=tone_of(cell) if title == STATE else "")
                for title, cell in named
            )
        )
    Console(no_color=bool(os.environ.get("NO_COLOR"))).print(table)
