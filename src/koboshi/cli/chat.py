"""`koboshi chat`: talk to the gateway from a terminal, over its HTTP API."""

import os
import sys
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TextIO

import anyio
import click

from koboshi.channels.web.codec import Post
from koboshi.channels.web.lines import Line, MessageLine
from koboshi.cli.chat_input import typed_lines
from koboshi.cli.chat_link import ChatOver, Link
from koboshi.cli.chat_render import Said, render, safe
from koboshi.cli.chat_state import Conversation
from koboshi.config.places import find_places, read_secret_text
from koboshi.config.problems import ConfigError, Unfit

URL = "http://127.0.0.1:8642"
LAST_WORDS_S = 3.0
"""How long to wait for the words about a turn that ended without an answer."""
LOOK_S = 2.0


@click.command()
@click.option("--chat", "chat_name", default="terminal", show_default=True, help="Which chat.")
@click.option("--thread", default="", help="A thread of the chat.")
@click.option("--home", type=click.Path(path_type=Path), help="The gateway's home.")
@click.option("--url", default=URL, show_default=True, help="Where the gateway listens.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Instead of HOME/web-token.")
@click.option("--once", metavar="TEXT", help="Send this, show what comes back, and leave.")
def chat(
    chat_name: str,
    thread: str,
    home: Path | None,
    url: str,
    token_file: Path | None,
    once: str | None,
) -> None:
    """Talk to the agent from this terminal.

    With lines from a pipe it leaves when all of them are answered.
    """
    screen = Screen(sys.stdout, sys.stderr, has_color="NO_COLOR" not in os.environ)
    try:
        if not url.startswith(("http://", "https://")):
            raise ChatOver(f'"{url}" is no address; it looks like {URL}', 78)
        file = token_file or find_places(home, None, os.environ).home / "web-token"
        is_interactive = once is None and sys.stdin.isatty()
        link = Link(
            url=url,
            chat=chat_name,
            thread=thread,
            start="recent" if is_interactive else "now",
            read_token=lambda: read_token(file),
            say=screen.remark,
        )
        code = anyio.run(_run, link, screen, thread, once, is_interactive)
    except* KeyboardInterrupt:
        code = 0
    except* ChatOver as group:
        code = _last_words(screen, group)
    except* ConfigError as group:
        screen.remark(str(group.exceptions[0]))
        code = 78
    sys.exit(code)
