"""The chat at a real terminal: a line that is edited below, the conversation above it.

What the agent says is rendered from Markdown, a tool call is one line, and an answer that is being
written is shown above the line until it is there. Everything that comes from elsewhere is made safe
before a terminal sees it.
"""

import json
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import ANSI, FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import print_formatted_text

from koboshi.channels.web.chat_events import DeliveryLine, DraftLine, Line, ShownCall, StepLine
from koboshi.cli.chat.render import ScreenLines, render, safe
from koboshi.commands.menu import command_lines
from koboshi.domain.phrases import excerpt

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyPressEvent

HISTORY_NAME = "chat-history"
GIST_CHARS_MAX = 60
GIST_NAMES = ("command", "path", "question", "process_id", "query", "pattern", "url")
DRAFT_LINES = 8
CALLS_MAX = 1_000
GOOD, BAD = "  ✓", "  ✗"


class CommandCompleter(Completer):
    """Commands, at the beginning of a line."""

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002  (the library's)
    ) -> Iterable[Completion]:
        typed = document.text_before_cursor
        if not typed.startswith("/") or " " in typed or "\n" in typed:
            return
        for name, words in command_lines():
            if name.startswith(typed[1:]):
                yield Completion(f"/{name}", start_position=-len(typed), display_meta=words)


class Keyboard(Vt100Input):
    """Keys are ours while something is printed, too: the terminal would show letters where they do
    not belong, and take a Ctrl-D for itself."""

    def cooked_mode(self) -> AbstractContextManager[None]:
        return nullcontext()


class TerminalScreen:
    """What `Screen` is for pipes, for a person at a terminal."""

    def __init__(self, home: Path, *, has_color: bool) -> None:
        self._has_color = has_color
        self._draft = ""
        self._calls: dict[str, ShownCall] = {}
        self._running = ""
        self._session: PromptSession[str] = PromptSession(
            input=Keyboard(sys.stdin) if sys.stdin.isatty() else None,
            history=_history(home),
            completer=CommandCompleter(),
            complete_while_typing=True,
            multiline=True,
            key_bindings=_keys(),
            prompt_continuation="  ",
        )

    def tell(self, text: str) -> None:
        print_formatted_text(safe(text))

    def remark(self, text: str) -> None:
        print_formatted_text(FormattedText([("italic" if self._has_color else "", safe(text))]))

    def show(self, kind: str, line: Line, url: str) -> None:
        """Show an event of the conversation."""
        match line:
            case DraftLine(text=text):
                self._set_draft(text)
                return
            case StepLine():
                self._show_step(line)
            case DeliveryLine() if kind == "answer":
                self._set_draft("")
                self._markdown(line.text)
                for said in render(kind, _without_words(line), url):
                    self._print(said)
            case _:
                for said in render(kind, line, url):
                    self._print(said)

    async def lines(self) -> AsyncGenerator[str]:
        """What the person sends, until they leave with Ctrl-D, or with Ctrl-C on an empty line.

        Keys are ours from the first line to the last: between two of them the terminal would take
        a Ctrl-D for itself, and the next line would never see it."""
        with self._session.input.raw_mode(), patch_stdout(raw=True):
            while True:
                try:
                    yield await self._session.prompt_async(self._prompt)
                except KeyboardInterrupt:
                    if not self._session.default_buffer.text:
                        return
                except EOFError:
                    return

    def _prompt(self) -> FormattedText:
        above = self._draft or self._running
        if not above:
            return FormattedText([("bold", "> ")])
        wide = shutil.get_terminal_size().columns - 1
        rows = [row[at : at + wide] for row in above.splitlines() for at in _steps(row, wide)]
        return FormattedText([("italic", "\n".join(rows[-DRAFT_LINES:]) + "\n"), ("bold", "> ")])

    def _set_draft(self, text: str) -> None:
        self._draft = safe(text).strip()
        with suppress(AttributeError):
            self._session.app.invalidate()

    def _print(self, said: ScreenLines) -> None:
        if said.is_aside:
            self.remark(said.text)
        else:
            self.tell(said.text)

    def _markdown(self, text: str) -> None:
        if text.strip():
            print_formatted_text(ANSI(rendered(safe(text), has_color=self._has_color)))

    def _show_step(self, line: StepLine) -> None:
        if line.kind == "reply":
            self._set_draft("")
            self._markdown(line.text)
            for call in line.calls:
                self._remember(call)
        elif line.kind == "result" and line.call in self._calls:
            call = self._calls.pop(line.call)
            self._running = ""
            self._print_call(call_line(call, line))

    def _print_call(self, told: str) -> None:
        """Green for what went well, red for what did not: the mark, and how it ended."""
        mark, rest = told[: len(GOOD)], told[len(GOOD) :]
        tone = "" if not self._has_color else "ansigreen" if mark == GOOD else "ansired bold"
        what, _, ending = rest.rpartition(" (")
        plain = "italic" if self._has_color else ""
        ending_tone = plain if mark == GOOD else tone
        parts = [(tone, mark), (plain, safe(what)), (ending_tone, safe(f" ({ending}"))]
        print_formatted_text(FormattedText(parts))

    def _remember(self, call: ShownCall) -> None:
        self._calls[call.call] = call
        if len(self._calls) > CALLS_MAX:
            del self._calls[next(iter(self._calls))]
        self._running = f"… {call.tool} {gist(call.arguments)}"
        with suppress(AttributeError):
            self._session.app.invalidate()


def rendered(text: str, *, has_color: bool) -> str:
    """Markdown as a terminal shows it. The words are safe already."""
    from rich.console import Console
    from rich.markdown import Markdown

    out = StringIO()
    wide = min(shutil.get_terminal_size().columns, 100)
    console = Console(
        file=out, width=wide, force_terminal=has_color, no_color=not has_color, highlight=False
    )
    console.print(Markdown(text, hyperlinks=False))
    return out.getvalue().rstrip("\n")


def call_line(call: ShownCall, result: StepLine) -> str:
    """A tool call that has its result, in one line."""
    code = _exit_code(result.text)
    mark = GOOD if result.status == "ok" and not code else BAD
    took = "" if result.took_ms is None else f", {result.took_ms / 1000:.1f} s"
    ending = f" (exit {code}{took})" if code else f" ({result.status}{took})"
    return f"{mark} {call.tool} {gist(call.arguments)}{ending}"


def gist(arguments: str) -> str:
    """A tool's arguments in a few words: the command, the path, the question."""
    try:
        values = json.loads(arguments)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        return excerpt(arguments, GIST_CHARS_MAX)
    named = next((values[name] for name in GIST_NAMES if isinstance(values.get(name), str)), None)
    return excerpt(arguments if named is None else named, GIST_CHARS_MAX)


def _exit_code(text: str) -> int:
    try:
        values = json.loads(text)
    except ValueError:
        return 0
    code = values.get("exit_code") if isinstance(values, dict) else None
    return code if isinstance(code, int) else 0


def _without_words(line: DeliveryLine) -> DeliveryLine:
    """The rest of an answer whose words are rendered: its file, and the label of a duplicate."""
    import msgspec

    return msgspec.structs.replace(line, text="")


def _steps(row: str, wide: int) -> range:
    return range(0, max(len(row), 1), max(wide, 1))


def _history(home: Path) -> History:
    """Lines of earlier chats, readable by their person alone. Where they cannot be kept, those of
    this one."""
    path = home / HISTORY_NAME
    try:
        path.touch(mode=0o600, exist_ok=True)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _keys() -> KeyBindings:
    """Enter sends, Alt-Enter begins a new line, Ctrl-C clears the line."""
    keys = KeyBindings()

    def send(event: "KeyPressEvent") -> None:
        event.current_buffer.validate_and_handle()

    def begin_line(event: "KeyPressEvent") -> None:
        event.current_buffer.insert_text("\n")

    def clear(event: "KeyPressEvent") -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    bound: tuple[tuple[tuple[str, ...], Callable[[KeyPressEvent], None]], ...] = (
        (("enter",), send),
        (("escape", "enter"), begin_line),
        (("c-c",), clear),
    )
    for keystrokes, act in bound:
        keys.add(*keystrokes)(act)
    return keys
