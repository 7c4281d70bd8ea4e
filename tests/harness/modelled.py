"""A gateway whose model is a server on the loopback. The test starts, ends and restarts it, and
controls the command that the model asked for."""

import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from anyio import create_task_group

from tests.fakes.model_servers.server import Answer, ModelServer, serving
from tests.harness.client import Client
from tests.harness.lives import KILLED_BY_HAND, STOPPED, Lives
from tests.harness.moved_clock import Wall
from tests.harness.polling import until
from tests.harness.process import KILLED, GatewayProcess
from tests.harness.rows import read_rows
from tests.models.asking import KEY
from tests.models.forms import Called, Form

CHAT = "room"
KEY_VARIABLE = "KEY_OF_THE_MODEL"
LOADS = {
    "anthropic": (
        "anthropic",
        "pydantic_ai.models.anthropic",
        "pydantic_ai.providers.anthropic",
        "koboshi.models.engine",
        "koboshi.models.clients",
    )
}
"""What a gateway imports at the first request to a model of this form."""


@dataclass(slots=True)
class Modelled:
    """What a test holds: the gateway, its model, and the person who talks to it."""

    form: Form
    server: ModelServer
    life: Lives
    ends: list[str]
    person: Client

    @property
    def gateway(self) -> GatewayProcess:
        return self.life.gateway

    @property
    def workdir(self) -> Path:
        return self.gateway.workdir

    def proposes(self, *calls: Called, text: str = "") -> Answer:
        """A reply of the model with these calls."""
        return self.form.reply((text,) if text else (), calls, self.form.calls)

    def says(self, text: str) -> Answer:
        return self.form.text(text)

    async def end(self, how: str) -> None:
        """End this life for good: the gateway is not started again."""
        self.ends.append(how)
        if how == STOPPED:
            self.gateway.terminate()
        else:
            self.gateway.kill()
        code = await self.gateway.wait_exit()
        assert code == (0 if how == STOPPED else KILLED), self.gateway.log[-4000:]
        self.life.remains.append(read_rows(self.gateway.home))

    async def restart(self, how: str = KILLED_BY_HAND) -> None:
        await self.end(how)
        self.gateway.start()

    @asynccontextmanager
    async def kept_up(self) -> AsyncIterator[None]:
        """While the block lasts, the gateway is started again after each kill, as by a service
        manager."""
        async with create_task_group() as tasks:
            tasks.start_soon(self._keep_up)
            yield
            tasks.cancel_scope.cancel()

    async def _keep_up(self) -> None:
        while True:
            await until(lambda: not self.gateway.is_running, "it is killed", within_s=inf)
            assert self.gateway.exit_code == KILLED, self.gateway.log[-4000:]
            self.ends.append(KILLED_BY_HAND)
            self.life.remains.append(read_rows(self.gateway.home))
            self.gateway.start()

    def owner(self) -> int:
        """The process that owns the home, however it was started."""
        said = json.loads((self.gateway.home / "koboshi.lock").read_text(encoding="ascii"))
        pid: int = said["pid"]
        return pid

    def results(self) -> list[Any]:
        """What the newest request shows of the calls, in order."""
        return [_decoded(text) for text in results_in(self.server.last)]

    def process_file(self, name: str) -> Path:
        """A file that the runner of the first command keeps."""
        return self.gateway.home / "processes" / "1" / name

    def lines(self, name: str = "lines") -> list[str]:
        """What the commands appended to a file."""
        file = self.workdir / name
        return file.read_text(encoding="ascii").splitlines() if file.exists() else []

    async def until_lines(self, *lines: str, name: str = "lines") -> None:
        await until(
            lambda: self.lines(name) == list(lines),
            f"the command has written {lines}",
            otherwise=lambda: f"{self.lines(name)} {self.person.told()}",
        )

    async def until_running(self, times: int) -> None:
        """Wait until turns of the person were taken up so often."""
        await until(
            lambda: (
                [event.fields.get("state") for event in self.person.events].count("running")
                >= times
            ),
            f"{times} times at work",
            otherwise=self.person.told,
        )


@asynccontextmanager
async def modelled(
    home: Path, form: Form, *arguments: str, **settings: str
) -> AsyncIterator[Modelled]:
    """A gateway that serves, configured by its file alone; it is gone after the block. `settings`
    are variables of its environment. Asserts in the end that every request was in order."""
    env = {KEY_VARIABLE: KEY, **settings}
    gateway = GatewayProcess(home, env=env, loads=LOADS.get(form.name, ()))
    async with _serving(gateway, form, arguments) as it:
        yield it


@asynccontextmanager
async def modelled_logging_to(log: Path, home: Path, form: Form) -> AsyncIterator[Modelled]:
    """Likewise, with its log on another disk than the home."""
    env, loads = {KEY_VARIABLE: KEY}, LOADS.get(form.name, ())
    gateway = GatewayProcess(home, env=env, log=log, loads=loads)
    async with _serving(gateway, form) as it:
        yield it


@asynccontextmanager
async def modelled_by(wall: Wall, home: Path, form: Form) -> AsyncIterator[Modelled]:
    """Likewise, with a clock that the test can move."""
    command = (*wall.command, "run", "--home", str(home))
    env, loads = {KEY_VARIABLE: KEY, **wall.environment}, LOADS.get(form.name, ())
    gateway = GatewayProcess(home, env=env, command=command, loads=loads)
    async with _serving(gateway, form) as it:
        yield it


@asynccontextmanager
async def _serving(
    gateway: GatewayProcess, form: Form, arguments: Sequence[str] = ()
) -> AsyncIterator[Modelled]:
    async with serving(form.complain) as server:
        configure(gateway.home, form, server)
        gateway.workdir.mkdir(parents=True, exist_ok=True)
        ends: list[str] = []
        try:
            async with create_task_group() as tasks:
                life = Lives(gateway, ends, tasks)
                gateway.start(arguments=arguments)
                yield Modelled(form, server, life, ends, life.person(CHAT))
                tasks.cancel_scope.cancel()
        finally:
            gateway.bury()
        assert not server.complaints, server.complaints


def configure(home: Path, form: Form, server: ModelServer) -> None:
    """The configuration of a person with a server of this form."""
    keys = {
        "name": f"{form.name}:m1",
        "base_url": f"{server.url}{form.path}",
        "api_key_env": KEY_VARIABLE,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in keys.items()]
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "koboshi.toml").write_text("\n".join(["[model]", *lines]), encoding="utf-8")


def run(command: str, call_id: str = "call_1", **more: object) -> Called:
    """A call of the terminal, in two pieces as streams bring it."""
    arguments = json.dumps({"command": command, **more})
    return call_id, "terminal", (arguments[:7], arguments[7:])


def ask(question: str, *choices: str) -> Called:
    return "call_1", "ask", (json.dumps({"question": question, "choices": choices}),)


def results_in(body: dict[str, Any]) -> list[str]:
    """The results of calls that a request shows the model, in any form."""
    if "input" in body:
        items = body["input"]
        return [item["output"] for item in items if item.get("type") == "function_call_output"]
    found: list[str] = []
    for message in body["messages"]:
        content = message.get("content")
        if message["role"] == "tool":
            found.append(content)
        elif isinstance(content, list):
            found += [_text_of(each["content"]) for each in content if _is_result(each)]
    return found


def words_in(body: dict[str, Any]) -> str:
    """All that a request shows the model, as one text."""
    return json.dumps(body.get("messages") or body["input"], ensure_ascii=False)


class Gate:
    """A fifo at which a command waits. The command may come before the test, or after it."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        # For reading as well: so opening it does not wait, on either side.
        self._file = os.open(path, os.O_RDWR)

    def open(self, word: str = "on") -> None:
        """Let one command through."""
        os.write(self._file, f"{word}\n".encode())

    def close(self) -> None:
        os.close(self._file)


@asynccontextmanager
async def gate(it: Modelled, name: str = "gate") -> AsyncIterator[Gate]:
    """A gate in the working folder; a reader that still waits after the block reads its end."""
    one = Gate(it.workdir / name)
    try:
        yield one
    finally:
        one.close()


def waits(lines: str = "lines", at: str = "gate") -> str:
    """A command that appends a line before and behind the gate, and ends with code 7."""
    return (
        f"echo $$ > shell; echo begun >> {lines}; read -r word < {at}; "
        f'echo "$word" >> {lines}; echo "the word is $word"; exit 7'
    )


def _is_result(block: dict[str, Any]) -> bool:
    return bool(block["type"] == "tool_result")


def _text_of(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(each["text"] for each in content)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
