"""`koboshi chat`: talk to the gateway from a terminal, over its HTTP API."""

import os
import sys
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import click
from anyio import to_thread

from koboshi.channels.web.codec import Accepted, Post
from koboshi.cli.ask_owner import ask_gateway, read_answer, refusal_of
from koboshi.cli.chat.input import typed_lines
from koboshi.cli.chat.link import ChatLink, ChatOver
from koboshi.cli.chat.talk import Screen, Shows, Talk, one_line
from koboshi.cli.options import CommandFailure, home_options
from koboshi.config.home_paths import find_places, read_secret_text
from koboshi.config.problems import ConfigError, InvalidValue
from koboshi.control.replies import MessageTaken
from koboshi.control.requests import GetAddress, SayInChat
from koboshi.domain.inbox import EntryState

Lines = Callable[[], AbstractAsyncContextManager[AsyncIterable[str]]]
"""Opens what is typed."""

URL = "http://127.0.0.1:8642"
WRONG_SETUP = 78
WAIT_SECONDS_MAX = 24 * 3_600.0


@click.command()
@click.option(
    "--chat", "chat_name", default="terminal", show_default=True, help="The name of the chat."
)
@click.option("--thread", default="", help="A thread of the chat.")
@home_options
@click.option("--url", help="Where the gateway listens, if it is not that of this home.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="Read the token from this file instead of HOME/web-token.",
)
@click.option("--once", metavar="TEXT", help="Send this, show what comes back, and leave.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(0, WAIT_SECONDS_MAX),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="With --once or a pipe: how long to wait for a gateway that is not there.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0, WAIT_SECONDS_MAX),
    default=0.0,
    metavar="SECONDS",
    help="With --once or a pipe: leave with 1 if not all is answered by then; 0 means never.",
)
def chat(
    chat_name: str,
    thread: str,
    home: Path | None,
    config_file: Path | None,
    url: str | None,
    token_file: Path | None,
    once: str | None,
    wait_s: float,
    timeout_s: float,
) -> None:
    """Talk to the agent from this terminal.

    At a terminal, Enter sends, Alt-Enter begins a new line, the arrow keys bring back earlier
    messages, and Tab completes a command. With lines from a pipe it leaves when all of them are
    answered. Without a gateway, --once and pipes end with 1 after a while.
    """
    is_interactive = once is None and sys.stdin.isatty()
    has_color = "NO_COLOR" not in os.environ
    screen: Shows = Screen(sys.stdout, sys.stderr, has_color=has_color)
    lines: Lines = partial(typed_lines, sys.stdin.fileno()) if once is None else partial(_one, once)

    try:
        place = find_places(home, config_file, os.environ).home
        if is_interactive and _is_terminal():
            # Its libraries cost every other command that has no use for them.
            from koboshi.cli.chat.terminal import TerminalScreen

            at_terminal = TerminalScreen(place, has_color=has_color)
            screen, lines = at_terminal, partial(_edited, at_terminal.lines)
        file = token_file or place / "web-token"
        read_token(file)
        link = ChatLink(
            url=checked(url) if url else served_url(place) or "",
            chat=chat_name,
            thread=thread,
            start="recent" if is_interactive else "now",
            read_token=lambda: read_token(file),
            say=screen.remark,
            # A person sees that no gateway is there, and leaves when they like.
            absence_s_max=None if is_interactive else wait_s,
            find_url=None if url else partial(to_thread.run_sync, served_url, place),
            answer_approval=None if url else partial(answer_approval, place, chat_name),
        )
        if is_interactive:
            where = f" at {link.url}" if link.url else ""
            screen.remark(f'chat "{chat_name}"{where}; /help shows commands, Ctrl-D leaves')
        talk = Talk(link, screen, thread=thread, is_interactive=is_interactive)
        code = anyio.run(_run, talk, lines, None if is_interactive else timeout_s or None)
    except KeyboardInterrupt:
        code = 0
    except (ChatOver, ConfigError) as error:
        screen.remark(str(error))
        code = WRONG_SETUP
    sys.exit(code)


async def _run(talk: Talk, lines: Lines, timeout_s: float | None) -> int:
    with anyio.move_on_after(timeout_s):
        async with lines() as typed:
            return await talk.run(typed)
    click.echo(f"not answered within {timeout_s:g} s; the gateway goes on with it", err=True)
    return 1


@asynccontextmanager
async def _one(text: str) -> AsyncIterator[AsyncIterable[str]]:
    yield one_line(text)


@asynccontextmanager
async def _edited(lines: Callable[[], AsyncGenerator[str]]) -> AsyncIterator[AsyncIterable[str]]:
    # Closed here, whatever ends the chat: the terminal must be as it was.
    async with aclosing(lines()) as edited:
        yield edited


def _is_terminal() -> bool:
    """Whether lines can be edited here."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def served_url(home: Path) -> str | None:
    """Where the gateway of the home listens, in its own words; None if none tells. It is asked over
    its socket in the home, where no other program can answer for it. What is configured is no
    proof: while the gateway is down, another program may have the port."""
    try:
        answer = ask_gateway(home, GetAddress()) or {}
    except CommandFailure:
        return None
    address = answer.get("address")
    return address if isinstance(address, str) else None


async def answer_approval(home: Path, chat_name: str, key: str, post: Post) -> Accepted | str:
    """Have an answer to an approval stored, over the gateway's socket: who can use that is the
    person whose home it is. Returns the words of the gateway if it refuses."""
    said = SayInChat(
        what=chat_name,
        message=key,
        text=post.text,
        thread=post.thread,
        question=post.question,
        choice=post.choice,
    )
    try:
        answer = await to_thread.run_sync(ask_gateway, home, said)
        if answer is None:
            return "the gateway of this home is gone; ask `koboshi status`, then answer again"
        if answer.get("ok") is not True:
            return str(refusal_of(answer))
        taken = read_answer(answer, MessageTaken)
    except CommandFailure as failure:
        return str(failure)
    state = EntryState(taken.state)
    return Accepted(message=taken.message, state=state, duplicate=taken.duplicate)


def checked(url: str) -> str:
    """The address, if it is one. Raises ChatOver."""
    if not url.startswith(("http://", "https://")):
        raise ChatOver(f'"{url}" is not an address; it looks like {URL}', WRONG_SETUP)
    return url


def read_token(file: Path) -> str | None:
    """The token of the gateway; None while there is none. Raises ChatOver if it cannot be used."""
    if not file.exists():
        return None
    try:
        token = read_secret_text(file, must_be_private=True)
    except InvalidValue as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise ChatOver(f"the token: {error.message}{hint}", WRONG_SETUP) from error
    if not (token.isascii() and token.isprintable()):
        raise ChatOver(f"{file} does not hold a token", WRONG_SETUP)
    return token or None
