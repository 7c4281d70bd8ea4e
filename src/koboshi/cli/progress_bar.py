"""A bar for work that takes long, on a terminal; nothing elsewhere."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Show: TypeAlias = Callable[[str, int, int], None]
"""What is being done, how much of it, of how much; 0 of 0 where that is unknown."""


@contextmanager
def bar(is_wanted: bool = True) -> Iterator[Show]:
    """A function that moves the bar, on stderr; it is gone from the screen when it is through."""
    if not is_wanted or not sys.stderr.isatty():
        yield lambda _words, _done, _whole: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, no_color=bool(os.environ.get("NO_COLOR")))
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)

        def show(words: str, done: int, whole: int) -> None:
            progress.update(
                task, description=words, completed=done, total=whole or None, refresh=True
            )

        yield show
