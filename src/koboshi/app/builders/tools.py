"""The tools that a gateway brings along."""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from koboshi import __version__
from koboshi.app.boot_config import environment_of_commands
from koboshi.app.boundary import guard_of, touchable_of
from koboshi.app.builders.control import ends_of
from koboshi.app.builders.shared import Shared
from koboshi.app.zone import zone_of, zones_of
from koboshi.boundary.enclosure import Enclosure, Exceptions
from koboshi.config import Config
from koboshi.config.secret_places import secret_files_of
from koboshi.control.context import until_written_to
from koboshi.domain.ids import ChannelName, WorkerId
from koboshi.domain.role import PEOPLE_FOLDER, RoleStanding
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.domain.shutdown import Leave
from koboshi.ports.parsers import ParserKind
from koboshi.ports.tool import Tool
from koboshi.processes.ends import StoreEnd
from koboshi.tools.ask import ASK
from koboshi.tools.asking import Asking
from koboshi.tools.delegate import DelegateTool
from koboshi.tools.elsewhere import TalksElsewhere
from koboshi.tools.files.tools import file_tools
from koboshi.tools.memory import memory_tool, recall_tool, skill_tool
from koboshi.tools.nothing_to_report import NOTHING
from koboshi.tools.pause import PAUSE
from koboshi.tools.process import ProcessTool
from koboshi.tools.restart import RestartTool
from koboshi.tools.schedule import ScheduleTool
from koboshi.tools.skills import SkillFolder
from koboshi.tools.terminal import TerminalTool
from koboshi.tools.web.settings import WebSettings
from koboshi.tools.web.tools import web_tools

SKILLS_FOLDER = "skills"
SESSION_FOLDER = re.compile(r"s[0-9]+")
"""How the work folders of members' chats are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What is the same for the tools of every turn. To look for every secret again, so that it is
    taken out of what programs print, would cost more than all else here."""

    environment: dict[str, str]
    store_end: StoreEnd

    @classmethod
    def of(cls, shared: Shared) -> "Fixed":
        ends = ends_of(shared.config, shared.store, shared.runners, shared.clock)
        return cls(environment=environment_of_commands(os.environ), store_end=ends.store)


def own_tools(
    shared: Shared,
    takes_files: Callable[[ChannelName], bool],
    fixed: Fixed,
    standing: RoleStanding = RoleStanding(),  # noqa: B008  (frozen)
) -> list[Tool]:
    """The tools of a turn with this standing. Without a boundary that holds there are none that
    reach into this machine; nor has a member any on the host."""
    enclosure = enclosure_for(shared.enclosure, shared.config.gateway.workdir, standing)
    inside = () if enclosure is None else _inside(shared, fixed, enclosure, takes_files, standing)
    # To start the gateway again is an owner's to ask.
    restart = replace(_restart(shared), is_scheduled=standing.is_scheduled)
    owners = (restart,) if standing.role.is_owner else ()
    quiet = (NOTHING,) if standing.is_quiet else ()
    web = () if enclosure is None else _web(shared, enclosure)
    known = _known(shared, standing)
    own = (ASK, PAUSE, *owners, _schedule(shared, standing))
    if standing.depth:  # a child orders nothing for later, and starts no gateway again
        own = (ASK, PAUSE)
    is_deepest = standing.depth >= shared.config.limits.children_depth_max
    below = () if is_deepest else (DelegateTool(children=shared.store.children),)
    return [*inside, *own, *below, *known, *web, *quiet]


def _known(shared: Shared, standing: RoleStanding) -> tuple[Tool, ...]:
    """What the agent keeps and looks up. Without a folder of skills there is no tool for them."""
    config = shared.config
    skills = skills_of(config)
    has_skills = may_use_skills(config, standing) and skills.folder.is_dir()
    reads = (skill_tool(skills),) if has_skills else ()
    if not config.memory.enabled:
        return reads
    memories = shared.store.memory
    recall = recall_tool(memories, partial(zone_of, config), TalksElsewhere(home=config.home))
    return (memory_tool(memories), recall, *reads)


def skills_of(config: Config) -> SkillFolder:
    folder = config.memory.skills or config.home / SKILLS_FOLDER
    return SkillFolder(folder=folder, touchable=touchable_of(config))


def may_use_skills(config: Config, standing: RoleStanding) -> bool:
    return standing.role.is_owner or config.memory.skills_for == "everyone"


def _schedule(shared: Shared, standing: RoleStanding) -> ScheduleTool:
    return ScheduleTool(
        schedules=shared.store.schedules,
        clock=shared.clock,
        zone_named=zones_of(shared.config),
        is_scheduled=standing.is_scheduled,
    )


def _web(shared: Shared, enclosure: Enclosure) -> tuple[Tool, ...]:
    """The web, unless the agent's programs are to have no network, or the extra is missing."""
    web = shared.config.tools.web
    is_out = enclosure.sandbox is Sandbox.LOCKED or not shared.parsers.is_installed(ParserKind.PAGE)
    if not web.fetch or is_out:
        return ()
    settings = WebSettings(
        user_agent=f"koboshi/{__version__}",
        hosts=frozenset(web.hosts),
        own_ports=guard_of(shared.config).ports,
        engine=web.search,
        engine_url=web.search_url,
        engine_key=os.environ.get(web.search_key_env, "") if web.search_key_env else "",
    )
    return web_tools(settings, shared.parsers)


def enclosure_for(
    whole: Enclosure | None, workdir: Path, standing: RoleStanding
) -> Enclosure | None:
    """What stands around the programs of a turn. A chat with a folder of its own sees that folder
    alone, and has a home of its own. What the owner shows beyond the folder is not for members, and
    what members have is not for the owner's chats, as far as the boundary can hide a part of what
    it shows. In a group an owner's commands read what a member's have written, a `.gitconfig` too,
    so what the owner shows is for the owner's own chats alone."""
    is_owner = standing.role.is_owner
    if whole is None or (whole.boundary is Boundary.NONE and not is_owner):
        return None
    folder = folder_for(workdir, standing)
    return replace(
        whole,
        workdirs=(str(folder),) if standing.folder else whole.workdirs,
        workspace=folder.name if standing.folder else whole.workspace,
        hidden=whole.hidden if standing.folder else (*whole.hidden, *_of_others(whole, workdir)),
        exceptions=whole.exceptions if is_owner and not standing.folder else Exceptions(),
    )


def folder_for(workdir: Path, standing: RoleStanding) -> Path:
    """The work folder of a chat; one of its own is made, closed to others."""
    folder = workdir
    with suppress(OSError):  # commands say so, one by one
        for name in Path(standing.folder).parts:
            folder /= name
            # The agent may have put a link there. Nothing is made where it leads.
            if folder.is_symlink():
                break
            folder.mkdir(mode=0o700, parents=folder.parent == workdir, exist_ok=True)
    return workdir / standing.folder


def _of_others(whole: Enclosure, workdir: Path) -> tuple[str, ...]:
    """The folder with those of members and groups, if there is one."""
    people = workdir / PEOPLE_FOLDER
    is_folder = people.is_dir() and not people.is_symlink()
    if whole.boundary is not Boundary.BUBBLEWRAP or not is_folder:
        return ()
    is_ours = any(SESSION_FOLDER.fullmatch(each) for each in os.listdir(people))
    return (str(people),) if is_ours else ()


def _inside(
    shared: Shared,
    fixed: Fixed,
    enclosure: Enclosure,
    takes_files: Callable[[ChannelName], bool],
    standing: RoleStanding,
) -> tuple[Tool, ...]:
    config = shared.config
    workdir = config.gateway.workdir / standing.folder
    asking = replace(asking_of(shared.config, enclosure), is_members=not standing.role.is_owner)
    return (
        _terminal(shared, fixed, enclosure, asking, str(workdir)),
        _process(shared, fixed, asking),
        *file_tools(
            workdir=workdir,
            home=config.home,
            secrets=secret_files_of(config, os.environ),
            sent_bytes_max=config.limits.sent_file_bytes_max,
            takes_files=takes_files,
            asking=asking,
            enclosure=enclosure,
        ),
    )


def asking_of(config: Config, enclosure: Enclosure) -> Asking:
    """Before what a person is asked. Where no boundary holds, commands run as our own user."""
    return Asking(
        approval=config.tools.terminal.approval,
        sandbox=enclosure.sandbox,
        boundary=enclosure.boundary,
        allow=config.tools.allow,
    )


def _terminal(
    shared: Shared, fixed: Fixed, enclosure: Enclosure, asking: Asking, workdir: str
) -> TerminalTool:
    terminal, limits = shared.config.tools.terminal, shared.config.limits
    return TerminalTool(
        processes=shared.store.processes,
        runners=shared.runners,
        clock=shared.clock,
        asking=asking,
        workdir=workdir,
        timeout_seconds=terminal.timeout_seconds,
        background_seconds=limits.background_seconds_max,
        environment=fixed.environment,
        enclosure=enclosure,
        store_end=fixed.store_end,
        background_max=limits.background_per_session_max,
    )


def _process(shared: Shared, fixed: Fixed, asking: Asking) -> ProcessTool:
    return ProcessTool(
        processes=shared.store.processes,
        runners=shared.runners,
        clock=shared.clock,
        store_end=fixed.store_end,
        until_written_to=partial(
            until_written_to, shared.store, shared.wakeups, shared.config.limits.poll_seconds
        ),
        booted_ms=shared.worker.started_ms,
        asking=asking,
    )


def _restart(shared: Shared) -> RestartTool:
    """The tool by which the agent starts its own gateway again."""

    async def request(worker_id: WorkerId, by: str) -> None:
        """Nothing is claimed from here on, the agent's own turn least of all."""
        await shared.store.workers.request_restart(worker_id, by)
        shared.drain.ask(Leave.RESTART)

    return RestartTool(
        worker=shared.worker,
        request=request,
        restarted_by=shared.store.workers.restarted_by,
        why_not=shared.why_not_restart,
    )
