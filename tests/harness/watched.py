"""`koboshi` as a real process under observation: `python -m tests.harness.watched FOLDER run …`.
Its model and its tools record each request before they act, and so does its store with the verbs.
Each of them waits where the test holds it (tests/harness/holds.py). Its wall clock is ahead by what
the test says."""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from koboshi.cli.main import main
from koboshi.domain.approval import Approval
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.kernel.transaction import NO_KEYS, Keys, Transaction
from koboshi.models.plugin import PluginModel
from koboshi.models.scripted import ScriptedModel
from koboshi.ports.model import Model, ModelReply, OnText, Request, ToolSpec
from koboshi.ports.tool import Load, Tool, ToolAnswer, ToolContext, approval_of, load_of, need_of
from koboshi.stores.sqlite.writer import SqliteWriter
from koboshi.tools.registry import Toolbox
from tests.harness.holds import MODEL, pass_by, tool
from tests.harness.moved_clock import follow

AHEAD = "ahead"
SEEN = "seen"
NAME_MAX = 200
"""Arguments longer than a file name are not held by their words."""
PLANTED = "PLANTED_BUG"
ROOT = Path(__file__).resolve().parents[2]


def watched_command(folder: Path) -> tuple[str, ...]:
    """The command of a watched gateway; its records are in the folder."""
    return (sys.executable, "-m", "tests.harness.watched", str(folder))


class Notebook:
    """One line for each event, in the file before the event happens."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor = os.open(folder / SEEN, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, **fields: object) -> None:
        os.write(self._descriptor, json.dumps(fields).encode() + b"\n")

    async def pass_by(self, point: str) -> None:
        """Go on when the test does not hold this point."""
        await pass_by(self._folder, point, lambda held: self.note(what="held", point=held))


class NotedTool:
    """A tool whose every use is recorded."""

    def __init__(self, tool: Tool, notebook: Notebook) -> None:
        self._tool = tool
        self._notebook = notebook

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    def effect_of(self, arguments: str) -> Effect:
        return self._tool.effect_of(arguments)

    def need_of(self, arguments: str) -> Need:
        return self._tool.need_of(arguments)

    def complaint_about(self, arguments: str) -> str | None:
        return self._tool.complaint_about(arguments)

    async def approval_of(self, arguments: str) -> Approval:
        return await approval_of(self._tool, arguments)

    async def need_now(self, arguments: str) -> Need:
        return await need_of(self._tool, arguments)

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        return self._tool.question_of(arguments)

    def load_of(self, arguments: str) -> Load:
        return load_of(self._tool, arguments)

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        self._note("run", arguments, context)
        await self._pass_by(arguments)
        return await self._tool.run(arguments, context)

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        self._note("resume", arguments, context)
        await self._pass_by(arguments)
        return await self._tool.resume(arguments, context)

    async def _pass_by(self, arguments: str) -> None:
        for point in (tool(self.spec.name), f"{tool(self.spec.name)}{arguments}"[:NAME_MAX]):
            await self._notebook.pass_by(point)

    def _note(self, what: str, arguments: str, context: ToolContext) -> None:
        effect = self._tool.effect_of(arguments).value
        turn, call = context.claim.turn_id, context.call_id
        self._notebook.note(what=what, turn=turn, call=call, tool=self.spec.name, effect=effect)


def _watch_model(notebook: Notebook) -> None:
    for kind in (ScriptedModel, PluginModel):
        kind.respond = _noted(kind.respond, notebook)  # type: ignore[method-assign]


def _noted(respond: Callable[..., Awaitable[ModelReply]], notebook: Notebook) -> Any:
    async def noted(model: Model, request: Request, on_text: OnText | None = None) -> ModelReply:
        if not request.wants_summary:
            shown = [step.seq for step in request.steps if step.turn_id == request.turn_id]
            notebook.note(what="ask", turn=request.turn_id, shown=shown)
            await notebook.pass_by(MODEL)
        return await respond(model, request, on_text)

    return noted


def _watch_tools(notebook: Notebook) -> None:
    reach = Toolbox.reach

    async def noted(toolbox: Toolbox, name: str) -> Tool | None:
        tool = await reach(toolbox, name)
        return None if tool is None else NotedTool(tool, notebook)

    Toolbox.reach = noted  # type: ignore[method-assign, assignment]


def _watch_store(notebook: Notebook) -> None:
    write = SqliteWriter.write

    async def noted(
        writer: SqliteWriter,
        verb: str,
        operation: Callable[[Transaction], Any],
        keys: Keys = NO_KEYS,
    ) -> Any:
        notebook.note(what="verb", verb=verb)
        await notebook.pass_by(f"{verb}:before")
        done = await write(writer, verb, operation, keys)
        await notebook.pass_by(f"{verb}:after")
        return done

    SqliteWriter.write = noted  # type: ignore[method-assign, assignment]


def _planted() -> AbstractContextManager[None]:
    """The bug of tests/sim/planted.py that the test asks for, if any."""
    name = os.environ.get(PLANTED, "")
    if not name:
        return nullcontext()
    bug: AbstractContextManager[None] = getattr(import_module("tests.sim.planted"), name)()
    return bug


if __name__ == "__main__":
    place = Path(sys.argv.pop(1))
    follow(place / AHEAD)
    book = Notebook(place)
    for watch in (_watch_model, _watch_tools, _watch_store):
        watch(book)
    with _planted():
        main()
