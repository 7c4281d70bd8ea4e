"""Files and terminals for agents of other makers, by our own tools: what an agent asks for is seen
and changed as its own programs could, and its commands run under runners of ours, which outlive us.

A request has one row. What it does is found again by that row: a command by its process, and a
file by being written whole. So serving a request again after a crash does nothing twice.
"""

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from anyio import to_thread
from msgspec import Meta, Struct

from koboshi.boundary.enclosure import Enclosure
from koboshi.domain.agent import AgentRequest
from koboshi.domain.agent_talk import TERMINALS, terminal_calls
from koboshi.domain.errors import BackgroundFull
from koboshi.domain.ids import CallId, ChannelName, ProcessId, parse_shown, shown
from koboshi.domain.process import Process
from koboshi.domain.role import RoleStanding
from koboshi.domain.route import Route
from koboshi.domain.turn import Claim
from koboshi.ports.runners import CommandSpec, Life, Runners, Seen
from koboshi.ports.store import Processes
from koboshi.ports.tool import ToolContext, ToolFailed
from koboshi.processes.ends import StoreEnd, as_known, output_of
from koboshi.tools.files.beside import Beside
from koboshi.tools.files.changing import Changes, WriteArguments
from koboshi.tools.files.places import FilePlaces
from koboshi.tools.files.spaces import SessionPlaces

READ_BYTES_MAX = 10_000_000
OUTPUT_BYTES_MAX = 1_000_000
TERMINALS_MAX = 16
WITHOUT_NUL = r"\A[^\x00]*\Z"  # no system call takes one
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=4_096, pattern=WITHOUT_NUL)]
Plain: TypeAlias = Annotated[str, Meta(pattern=WITHOUT_NUL)]
Asked = TypeVar("Asked", bound=Struct)


class ReadFile(Struct, frozen=True, kw_only=True):
    path: Name
    line: int | None = None
    limit: int | None = None


class WriteFile(Struct, frozen=True, kw_only=True):
    path: Name
    content: str


class Variable(Struct, frozen=True):
    name: Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
    value: Plain


class CreateTerminal(Struct, frozen=True, kw_only=True, rename="camel"):
    command: Annotated[str, Meta(min_length=1, max_length=64_000, pattern=WITHOUT_NUL)]
    args: tuple[Plain, ...] = ()
    env: tuple[Variable, ...] = ()
    cwd: Name | None = None
    output_byte_limit: int | None = None


class OfTerminal(Struct, frozen=True, kw_only=True, rename="camel"):
    terminal_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSurroundings:
    """What stands around an agent, and where it works."""

    enclosure: Enclosure
    workdir: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTools:
    processes: Processes
    runners: Runners
    store_end: StoreEnd
    surroundings: Callable[[str, RoleStanding], AgentSurroundings | None]
    home: Path
    secrets: tuple[Path, ...]
    seconds_max: float
    beside: Beside = field(default_factory=Beside)

    async def serve(
        self, claim: Claim, standing: RoleStanding, request: AgentRequest
    ) -> Mapping[str, object] | str | None:
        serve = {
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
            "terminal/create": self._create,
            "terminal/output": self._output,
            "terminal/wait_for_exit": self._wait,
            "terminal/kill": self._kill,
            "terminal/release": self._kill,
        }[request.method]
        agent = await self.processes.get(request.process_id)
        around = None if agent is None else self.surroundings(agent.agent, standing)
        if agent is None or around is None:
            return "nothing stands around the agent here, so it is not served"
        try:
            return await serve(_Service(claim=claim, request=request, agent=agent, around=around))
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            return f"the request cannot be understood: {error}"
        except (ToolFailed, BackgroundFull) as error:
            return str(error)

    async def _read(self, service: "_Service") -> Mapping[str, object]:
        asked = service.asked(ReadFile)
        places = self._places(service.around)
        content = await self.beside.look(partial(_text, places, service.context, asked))
        return {"content": content}

    async def _write(self, service: "_Service") -> Mapping[str, object]:
        asked = service.asked(WriteFile)
        places = self._places(service.around)
        changes = Changes(places_of=places, on_host=places.on_host)
        words = WriteArguments(path=asked.path, content=asked.content)
        await self.beside.change(partial(changes.write, words, service.context))
        return {}

    def _places(self, around: AgentSurroundings) -> SessionPlaces:
        on_host = FilePlaces(
            workdir=str(around.workdir),
            home=str(self.home.absolute()),
            secrets=tuple(str(each.absolute()) for each in self.secrets),
        )
        return SessionPlaces(on_host=on_host, enclosure=around.enclosure)

    async def _create(self, service: "_Service") -> Mapping[str, object]:
        asked, around = service.asked(CreateTerminal), service.around
        command = shlex.join([asked.command, *asked.args]) if asked.args else asked.command
        workdir = str(around.workdir / asked.cwd) if asked.cwd else str(around.workdir)
        alive = await self.processes.alive()
        own = [each for each in alive if each.agent and each.session_id == service.claim.session_id]
        if len(own) > TERMINALS_MAX:
            raise ToolFailed(f"{TERMINALS_MAX} terminals run already")
        process = await self.processes.begin(
            service.claim,
            service.call_id,
            command=command,
            workdir=workdir,
            is_foreground=False,
            boundary=around.enclosure.boundary,
            agent=service.agent.agent,
        )
        seen = as_known(process, await self._look(process.process_id))
        if process.ended_ms is None and seen.life is Life.UNBORN:
            await to_thread.run_sync(self.runners.remove, process.process_id)
            await self._start(process, around, {each.name: each.value for each in asked.env})
        return {"terminalId": shown("process", process.process_id)}

    async def _start(
        self, process: Process, around: AgentSurroundings, variables: Mapping[str, str]
    ) -> None:
        session = shown("session", process.session_id)

        def spec() -> CommandSpec:
            view = around.enclosure.view_of(session)
            environment = {**around.environment, **variables}
            started = around.enclosure.start(view, process.workdir, environment, session=session)
            return CommandSpec(
                command=process.command,
                workdir=process.workdir,
                environment={**started.environment, **variables},
                timeout_seconds=self.seconds_max,
                takes_input=False,
                confinement=started.confinement,
            )

        try:
            made = await to_thread.run_sync(spec)
            birth = await self.runners.start(process.process_id, made)
        except OSError as error:
            raise ToolFailed(f"the command could not be started: {error}") from error
        if birth is not None:
            await self.processes.born(process.process_id, birth)

    async def _output(self, service: "_Service") -> Mapping[str, object]:
        process = await self._terminal(service)
        output = await output_of(self.runners, process.process_id, OUTPUT_BYTES_MAX)
        found: dict[str, object] = {"output": output, "truncated": len(output) >= OUTPUT_BYTES_MAX}
        seen = as_known(process, await self._look(process.process_id))
        if seen.life is not Life.ALIVE:
            found["exitStatus"] = _exit_of(process, seen)
        return found

    async def _wait(self, service: "_Service") -> Mapping[str, object] | None:
        """None while it runs: the request is served again later."""
        process = await self._terminal(service)
        seen = as_known(process, await self._look(process.process_id))
        if seen.life is Life.ALIVE:
            return None
        await self.store_end(process.process_id, seen)
        return _exit_of(process, seen)

    async def _kill(self, service: "_Service") -> Mapping[str, object]:
        process = await self._terminal(service)
        await self.processes.ask_end(process.process_id)
        return {}

    async def _terminal(self, service: "_Service") -> Process:
        """The terminal that is meant, if the agent of this chat made it."""
        named = parse_shown(service.asked(OfTerminal).terminal_id)
        found = None
        if named is not None and named[0] == "process":
            found = await self.processes.get(ProcessId(named[1]))
        is_own = found is not None and found.session_id == service.claim.session_id
        if found is None or not is_own or not found.call_id.startswith(TERMINALS):
            raise ToolFailed("there is no such terminal")
        return found

    async def _look(self, process_id: ProcessId) -> Seen:
        return await to_thread.run_sync(self.runners.look, process_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Service:
    """One request on its way."""

    claim: Claim
    request: AgentRequest
    agent: Process
    around: AgentSurroundings

    @property
    def call_id(self) -> CallId:
        return CallId(f"{terminal_calls(self.request.process_id)}{self.request.offset}")

    @property
    def context(self) -> ToolContext:
        route = Route(channel=ChannelName(""), chat="", thread="")
        return ToolContext(claim=self.claim, call_id=self.call_id, route=route)

    def asked(self, kind: type[Asked]) -> Asked:
        return msgspec.json.decode(self.request.params, type=kind)


def _text(places_of: SessionPlaces, context: ToolContext, asked: ReadFile) -> str:
    """Lines of a file, as they are. Raises PathRefused."""
    places = places_of(context)
    real = places.resolve(asked.path)
    descriptor = places.opened(real)
    with os.fdopen(descriptor, "rb") as file, places.in_words(real):
        content = file.read(READ_BYTES_MAX)
    text = content.decode("utf-8", "replace")
    if asked.line is None and asked.limit is None:
        return text
    lines = text.splitlines(keepends=True)
    begin = max((asked.line or 1) - 1, 0)
    end = None if asked.limit is None else begin + max(asked.limit, 0)
    return "".join(lines[begin:end])


def _exit_of(process: Process, seen: Seen) -> Mapping[str, object]:
    ending = seen.ending
    if ending is None:
        return {"exitCode": process.exit_code, "signal": None}
    signal = None if ending.signal is None else str(ending.signal)
    return {"exitCode": ending.exit_code, "signal": signal}
