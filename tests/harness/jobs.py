"""A gateway that is started and ended by hand, and a person who has background processes."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio import create_task_group
from anyio.abc import TaskGroup

from tests.cli.process import Ended
from tests.cli.process import koboshi as run_koboshi
from tests.harness.client import Client, Event
from tests.harness.holds import Hold
from tests.harness.polling import until, until_asked
from tests.harness.process import GatewayProcess
from tests.harness.rows import Rows, read_rows
from tests.harness.seen import read_seen
from tests.harness.watched import ROOT, SEEN, watched_command

UNTIL_GO = "until [ -e go ]; do sleep 0.05; done"
"""A command that goes on when the file `go` is made."""


@dataclass(slots=True)
class Scene:
    """One home, its watched gateway, and people."""

    gateway: GatewayProcess
    tasks: TaskGroup
    folder: Path
    people: dict[str, Client] = field(default_factory=dict)
    keys: int = 0

    def person(self, chat: str) -> Client:
        person = self.people[chat] = Client(self.gateway, chat)
        self.tasks.start_soon(person.keep_following)
        return person

    async def says(self, chat: str, text: str, *, thread: str = "") -> None:
        self.keys += 1
        await self.people[chat].say(text, f"key-{self.keys}", thread=thread)

    def hold(self, point: str) -> Hold:
        """Hold the gateway at a point (tests/harness/holds.py) until that is lifted."""
        return Hold(self.folder, point)

    async def comes_to(self, held: Hold, times: int = 1) -> None:
        await until(
            lambda: read_seen(self.folder / SEEN).held[held.point] >= times,
            f"{times} times at {held.point}",
        )

    def touch(self, name: str = "go") -> None:
        (self.gateway.workdir / name).touch()

    async def restarts(self) -> None:
        self.gateway.start()
        await self.gateway.wait_ready()

    async def stops(self) -> None:
        self.gateway.terminate()
        assert await self.gateway.wait_exit() == 0

    async def ends(self, number: int = 1) -> None:
        """Wait until the runner of a process has recorded its end, with or without a gateway."""
        record = self.gateway.home / "processes" / str(number) / "exit.json"
        await until(record.exists, f"process {number} ends")

    async def settles(self, number: int, state: str) -> dict[str, Any]:
        """Wait until the gateway knows how a process ended."""

        async def look() -> dict[str, Any] | None:
            told = self.cli("explain", f"p{number}", "--json").document
            return told if told["process"]["state"] == state else None

        return await until_asked(look, f"p{number} is {state}")

    def cli(self, *arguments: str) -> Ended:
        """The output of a command of the operator."""
        ended = run_koboshi(*arguments, home=self.gateway.home)
        assert ended.code == 0, ended.err
        return ended

    def log(self, number: int = 1) -> list[str]:
        """All that a process has printed."""
        told = self.cli("processes", "log", f"p{number}", "--json").document
        return str(told["output"]).splitlines()

    def rows(self) -> Rows:
        """The rows on the disk after the gateway was killed."""
        self.gateway.kill()
        return read_rows(self.gateway.home)


@asynccontextmanager
async def scene(home: Path, *, env: Mapping[str, str] | None = None) -> AsyncIterator[Scene]:
    folder = home.with_name(f"{home.name}.seen")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [*watched_command(folder), "run", "--home", str(home)]
    gateway = GatewayProcess(home, env={"PYTHONPATH": str(ROOT), **(env or {})}, command=command)
    gateway.start()
    try:
        async with create_task_group() as tasks:
            await gateway.wait_ready()
            yield Scene(gateway, tasks, folder)
            tasks.cancel_scope.cancel()
    finally:
        gateway.bury()


def terminal(command: str, **options: object) -> dict[str, object]:
    """An item of a script: the command in the background."""
    arguments = {"command": command, "background": True, **options}
    return {"calls": [{"tool": "terminal", "arguments": arguments}]}


def process(action: str, number: int = 1, **options: object) -> dict[str, object]:
    """An item of a script: `process` does something."""
    arguments = {"action": action, "process_id": f"p{number}", **options}
    return {"calls": [{"tool": "process", "arguments": arguments}]}


def results(person: Client) -> list[dict[str, Any]]:
    """What the tools have answered so far."""
    steps = [event.fields for event in person.events if event.kind == "step"]
    return [json.loads(step["text"]) for step in steps if step["kind"] == "result"]


def saying(person: Client, text: str) -> list[Event]:
    """The words for the person that contain the text."""
    return [event for event in person.events if event.is_words(text)]
