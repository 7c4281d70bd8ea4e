"""An agent of the configuration, started by hand: to see whether it works, or to log in. It stands
inside the same boundary, with the same home, as it does for an owner's chats."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from anyio import CancelScope, current_time, sleep

from koboshi.app.boundary import enclosure_of
from koboshi.app.builders.agents import LocalPrograms, language
from koboshi.boundary.enclosure import confine, environment_inside, make_folders
from koboshi.config import Config
from koboshi.domain.agent import METHODS, AgentRequest, MessageKind
from koboshi.domain.agent_talk import Asked, CallBegan, Heard, Said, Settled
from koboshi.domain.ids import ProcessId, SessionId
from koboshi.domain.role import Role, RoleStanding
from koboshi.domain.sandbox import Boundary
from koboshi.ports.agents import AgentLanguage, AgentProgram
from koboshi.ports.runners import Confinement, Life
from koboshi.processes.runners import LocalRunners
from koboshi.processes.wires import LocalWires
from koboshi.runner.landlock import leave_host, restrict

ONE = ProcessId(1)
OWNER = RoleStanding(role=Role.OWNER)
WAIT_S = 120.0
LIFE_S_MAX = 900.0
"""A trial that is killed leaves its agent for no longer."""
LOOK_EVERY_S = 0.05
LAST_WORDS_BYTES = 4_000


class TrialFailed(Exception):
    """The agent did not work, in words."""


def program_of(config: Config, name: str) -> AgentProgram:
    """Raises TrialFailed."""
    if name not in config.enabled_agents:
        known = ", ".join(config.enabled_agents) or "none"
        raise TrialFailed(f"there is no agent {name}; known: {known}")
    programs = LocalPrograms(config=config, enclosure=enclosure_of(config, os.environ))
    program = programs.program(name, SessionId(0), OWNER)
    if isinstance(program, str):
        raise TrialFailed(program)
    Path(program.workdir).mkdir(parents=True, exist_ok=True)
    return program


async def try_agent(config: Config, name: str, prompt: str, tell: Callable[[str], None]) -> None:
    """Start the agent, tell what it can do, and have it answer one prompt. Raises TrialFailed."""
    program = program_of(config, name)
    with tempfile.TemporaryDirectory(prefix="koboshi-agent-") as folder:
        runners = LocalRunners(Path(folder))
        seconds = config.enabled_agents[name].start_seconds
        trial = _Trial(await language(), runners, LocalWires(Path(folder)), tell)
        try:
            await runners.start(ONE, replace(program.start(), timeout_seconds=LIFE_S_MAX))
            await trial.go_through(program, prompt, seconds)
        finally:
            with CancelScope(shield=True):  # also where a person has pressed Ctrl-C
                await runners.end(ONE, grace_s=2)


class _Trial:
    def __init__(
        self,
        speaks: AgentLanguage,
        runners: LocalRunners,
        wires: LocalWires,
        tell: Callable[[str], None],
    ) -> None:
        self.speaks = speaks
        self.runners = runners
        self.wires = wires
        self.tell = tell
        self.number = 0
        self.offset = 0

    async def go_through(self, program: AgentProgram, prompt: str, seconds: float) -> None:
        self.tell(f"it is started, and has {seconds:g} s to answer")
        greeted = await self._ask(MessageKind.INITIALIZE, self.speaks.greeting(), seconds)
        can = "can load its sessions" if greeted.can_load else "cannot load its sessions"
        self.tell(f"it speaks the protocol and {can}")
        new = self.speaks.opening(MessageKind.NEW, "", program.workdir, program.servers)
        opened = await self._ask(MessageKind.NEW, new, seconds)
        self.tell(f"it opened session {opened.external_id}")
        if prompt:
            body = self.speaks.prompt(opened.external_id or "", prompt)
            done = await self._ask(MessageKind.PROMPT, body, WAIT_S)
            used = f", {done.tokens_in} + {done.tokens_out} tokens" if done.tokens_out else ""
            self.tell(f"it stopped: {done.stop}{used}")

    async def _ask(self, kind: MessageKind, body: str, seconds: float) -> Settled:
        number = self._post(kind, body)
        limit = current_time() + seconds
        while current_time() < limit:
            for heard in self._hear():
                match heard:
                    case Settled() if heard.number == number:
                        if heard.error is not None:
                            raise TrialFailed(f"it refuses {METHODS[kind]}: {heard.error}")
                        return heard
                    case Said(text=text):
                        self.tell(f"it says: {text}")
                    case CallBegan(title=title):
                        self.tell(f"it uses a tool: {title}")
                    case Asked():
                        self._refuse(heard)
                    case _:
                        pass
            if self.runners.look(ONE).life is not Life.ALIVE and not self._unread():
                raise TrialFailed(f"it ended.{self._last_words()}")
            await sleep(LOOK_EVERY_S)
        words = f"it did not answer {METHODS[kind]} within {seconds:g} s.{self._last_words()}"
        raise TrialFailed(words)

    def _last_words(self) -> str:
        """What it wrote beside the protocol."""
        said = self.runners.read_log(ONE, 0, LAST_WORDS_BYTES).content.decode("utf-8", "replace")
        return f" Its last words: {said.strip()}" if said.strip() else ""

    def _refuse(self, asked: Asked) -> None:
        request = AgentRequest(
            process_id=ONE,
            offset=asked.offset,
            turn_id=None,
            external_id=asked.external_id,
            method=asked.method,
            params=asked.params,
            call_id=None,
        )
        self.tell(f"it asks for {asked.method}, which a trial does not serve")
        refusal = self.speaks.refusal(request, "this is a trial", is_unknown=True)
        self._post(MessageKind.REPLY, refusal)

    def _post(self, kind: MessageKind, body: str) -> int:
        self.number += 1
        self.wires.post(ONE, self.number, self.speaks.line(self.number, kind, body))
        return self.number

    def _unread(self) -> bool:
        return self.wires.size(ONE) > self.offset

    def _hear(self) -> list[Heard]:
        content = self.wires.read(ONE, self.offset, 16 << 20)
        whole = content[: content.rfind(b"\n") + 1]
        heard = self.speaks.hear(self.offset, whole)
        self.offset += len(whole)
        return heard


def run_inside(config: Config, name: str, command: tuple[str, ...]) -> int:
    """Run a command of a person in the boundary of an agent, at this terminal: to log in. Returns
    its exit code. Raises TrialFailed."""
    program_of(config, name)
    programs = LocalPrograms(config=config, enclosure=enclosure_of(config, os.environ))
    inside = programs.surroundings(name, OWNER)
    assert inside is not None
    inside.workdir.mkdir(parents=True, exist_ok=True)
    workdir, view = str(inside.workdir), inside.enclosure.view_of("agents-login")
    environment = {**inside.environment, "TERM": os.environ.get("TERM", "dumb")}
    if view is None:
        return subprocess.run(command, cwd=workdir, env=environment, check=False).returncode
    make_folders(view)
    confinement = confine(view, workdir)
    environment = environment_inside(view, environment, {})
    launcher, files = _opened(confinement)
    is_landlock = confinement.boundary is Boundary.LANDLOCK
    grants = [(path.encode(), rights) for path, rights in confinement.grants]
    try:
        done = subprocess.run(
            [*launcher, *command],
            cwd=workdir if is_landlock else "/",
            env=environment,
            pass_fds=files,
            check=False,
            preexec_fn=(lambda: restrict(grants, has_network=True)) if is_landlock else leave_host,
        )
    except OSError as error:
        raise TrialFailed(f"{command[0]} cannot be started: {error.strerror}") from error
    finally:
        for file in files:
            os.close(file)
    return done.returncode


def _opened(confinement: Confinement) -> tuple[list[str], list[int]]:
    """The arguments of bubblewrap, with open files in place of the names that it copies from."""
    files: list[int] = []

    def words() -> Iterator[str]:
        rest = list(confinement.launcher)
        while rest:
            word = rest.pop(0)
            if word != "--file" or not rest[0].startswith("open:"):
                yield word
                continue
            name, place = rest.pop(0).removeprefix("open:"), rest.pop(0)
            with suppress(OSError):
                files.append(os.open(name, os.O_RDONLY))
                yield from (word, str(files[-1]), place)

    return list(words()), files
