"""What works with agents of other makers, by the configuration."""

import os
import shlex
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from anyio import to_thread

from koboshi.app.boot_config import environment_of_commands
from koboshi.app.boundary import touchable_of
from koboshi.app.builders.control import ends_of
from koboshi.app.builders.shared import Shared
from koboshi.app.builders.tools import enclosure_for, folder_for
from koboshi.boundary.enclosure import Enclosure
from koboshi.boundary.program_files import files_of
from koboshi.config import AgentConfig, Config
from koboshi.config.secret_places import secret_files_of
from koboshi.domain.ids import SessionId, shown
from koboshi.domain.role import Role, RoleStanding
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.ports.agents import AgentLanguage, AgentProgram, PassedServer
from koboshi.ports.runners import CommandSpec
from koboshi.processes.wires import LocalWires
from koboshi.runtime.agent_asking import AgentAsking, Permits
from koboshi.runtime.agent_life import AgentLife
from koboshi.runtime.agent_room import AgentRoom
from koboshi.runtime.agent_turn import AgentTurns
from koboshi.runtime.approval_cards import ApprovalCards
from koboshi.runtime.attachments import Attachments
from koboshi.runtime.recollection import Recollection
from koboshi.runtime.shipping import Shipping
from koboshi.tools.for_agents import AgentSurroundings, ServedTools

EXTRA = "koboshi[acp]"


def agent_turns(
    shared: Shared,
    shipping: Shipping,
    attachments: Attachments,
    cards: ApprovalCards,
    recollection: Recollection,
) -> AgentTurns | None:
    """None if no agent is configured."""
    config, limits = shared.config, shared.config.limits
    if not config.enabled_agents:
        return None
    store_end = ends_of(config, shared.store, shared.runners, shared.clock).store
    programs = LocalPrograms(config=config, enclosure=shared.enclosure)
    return AgentTurns(
        store=shared.store,
        wires=LocalWires(shared.runners.folder),
        runners=shared.runners,
        store_end=store_end,
        clock=shared.clock,
        drain=shared.drain,
        programs=programs,
        load_language=language,
        asking=AgentAsking(
            store=shared.store,
            cards=cards,
            permits=permits_of(config, shared.enclosure),
            service=ServedTools(
                processes=shared.store.processes,
                runners=shared.runners,
                store_end=store_end,
                surroundings=programs.surroundings,
                home=config.home,
                secrets=secret_files_of(config, os.environ),
                seconds_max=limits.background_seconds_max,
            ),
        ),
        shipping=shipping,
        attachments=attachments,
        recollection=recollection,
        default=config.gateway.agent,
        room=AgentRoom(
            store=shared.store,
            agents_max=config.gateway.max_agents,
            look_seconds=min(limits.poll_seconds, 1.0),
        ),
        # A line that does not fit into a full spool would never be whole.
        line_bytes_max=min(limits.agent_line_bytes_max, limits.agent_unread_bytes_max // 2),
        question_age_ms=limits.question_age_ms,
        start_seconds_of=lambda name: start_seconds_of(config, name),
        billing=shared.billing,
    )


def start_seconds_of(config: Config, name: str) -> float:
    agent = config.enabled_agents.get(name) or AgentConfig(name=name)
    return agent.start_seconds


def agent_life(shared: Shared, turns: AgentTurns | None) -> AgentLife | None:
    if turns is None:
        return None
    agents = shared.config.enabled_agents

    def idle_ms(name: str) -> int:
        agent = agents.get(name)
        return 0 if agent is None else round(agent.idle_minutes * 60_000)

    return AgentLife(
        turns=turns,
        wakeups=shared.wakeups,
        idle_ms_of=idle_ms,
        poll_seconds=shared.config.limits.poll_seconds,
    )


def permits_of(config: Config, enclosure: Enclosure | None) -> Permits:
    """How permissions that agents ask for are decided."""
    approval = config.tools.terminal.approval
    is_inside = enclosure is not None and enclosure.boundary is not Boundary.NONE
    if approval == "always":
        return Permits.ASK
    if is_inside:
        return Permits.ALLOW
    return Permits.REFUSE if approval == "never" else Permits.ASK


async def language() -> AgentLanguage:
    """The language of agents. Its library is loaded when the first one is needed."""
    return await to_thread.run_sync(_load_language)


@cache
def _load_language() -> AgentLanguage:
    from koboshi.agents.acp.language import AcpLanguage

    return AcpLanguage()


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPrograms:
    config: Config
    enclosure: Enclosure | None

    def names(self) -> Collection[str]:
        return self.config.enabled_agents.keys()

    def program(
        self, name: str, session_id: SessionId, standing: RoleStanding
    ) -> AgentProgram | str:
        agent = self.config.enabled_agents[name]
        if Sandbox(self.config.tools.sandbox) is Sandbox.LOCKED:
            return (
                f'the agent {name} is not started: sandbox = "locked" has no network, and an agent '
                "cannot reach its model without"
            )
        inside = self.surroundings(name, standing)
        if inside is None:
            return (
                f"the agent {name} is not started: no boundary holds for it here, and in groups "
                "and chats of members it needs one"
            )
        around, workdir = inside.enclosure, str(inside.workdir)
        session = shown("session", session_id)

        def start() -> CommandSpec:
            view = around.view_of(session)
            started = around.start(view, workdir, inside.environment, session=session)
            return CommandSpec(
                command=_command(agent),
                workdir=workdir,
                environment={**started.environment, **_given(agent)},
                timeout_seconds=float("inf"),
                takes_input=False,
                confinement=started.confinement,
                unread_max=self.config.limits.agent_unread_bytes_max,
            )

        return AgentProgram(
            command=_command(agent),
            workdir=workdir,
            boundary=around.boundary,
            # Their secrets are the agent's to read, and it does what the people of its chat say.
            servers=() if standing.folder else _servers(self.config, agent),
            start=start,
        )

    def surroundings(self, name: str, standing: RoleStanding) -> AgentSurroundings | None:
        """What stands around the agent, and around what it has us run; None if nothing holds."""
        agent = self.config.enabled_agents.get(name)
        if agent is None:
            return None
        workdir = self._workdir(agent, standing)
        around = self._around(agent, workdir, standing)
        if around is None:
            return None
        # One home for each agent and work folder: histories are never shared between people.
        around = replace(around, workspace=f"agent-{name}-{around.workspace}")
        environment = environment_of_commands(os.environ)
        return AgentSurroundings(enclosure=around, workdir=workdir, environment=environment)

    def _workdir(self, agent: AgentConfig, standing: RoleStanding) -> Path:
        if agent.cwd is not None and not standing.folder:
            return agent.cwd
        return folder_for(self.config.gateway.workdir, standing)

    def _around(
        self, agent: AgentConfig, workdir: Path, standing: RoleStanding
    ) -> Enclosure | None:
        """What stands around the agent: as around commands of the turn, with its own program to be
        read, and its own variables only. In a chat that is not an owner's own it is the same for
        all who write there: one process serves all of them."""
        if standing.folder:
            standing = replace(standing, role=Role.MEMBER)
        around = enclosure_for(self.enclosure, self.config.gateway.workdir, standing)
        if around is None:
            return None
        own = files_of(
            agent.command[0],
            agent.command[1:],
            environment=os.environ,
            workdir=str(workdir),
            home=os.path.expanduser("~"),
            touchable=touchable_of(self.config),
        )
        beyond = around.exceptions
        return replace(
            around,
            workdirs=(str(workdir),),
            exceptions=replace(
                beyond,
                readable=(*beyond.readable, *own, *_full(agent.readable)),
                writable=(*beyond.writable, *_full(agent.writable)),
                variables={},
            ),
        )


def _command(agent: AgentConfig) -> str:
    return f"exec {shlex.join(agent.command)}"


def _given(agent: AgentConfig) -> dict[str, str]:
    return {name: secret.reveal() for name, secret in (*agent.passed, *agent.env)}


def _servers(config: Config, agent: AgentConfig) -> tuple[PassedServer, ...]:
    """Our MCP servers, as the agent is told of them."""
    if not agent.mcp:
        return ()
    found = []
    for server in config.enabled_mcp:
        headers = {name: secret.reveal() for name, secret in server.headers}
        if server.token is not None:
            headers["Authorization"] = f"Bearer {server.token.reveal()}"
        given = {name: secret.reveal() for name, secret in (*server.passed, *server.env)}
        found.append(
            PassedServer(
                name=server.name,
                command=server.command,
                args=server.args,
                environment=given,
                url=server.url,
                headers=headers,
            )
        )
    return tuple(found)


def _full(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(os.path.expanduser(path) for path in paths)
