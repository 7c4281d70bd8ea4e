"""Which boundary stands around the programs of a gateway, by its configuration and this machine."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace

from koboshi.boundary import control_groups, rules
from koboshi.boundary.control_groups import ControlGroups
from koboshi.boundary.enclosure import ON_HOST, Enclosure, Exceptions
from koboshi.boundary.port_guard import PortGuard
from koboshi.boundary.probe import REMEDY, Probe, probe
from koboshi.boundary.program_files import files_of
from koboshi.config import Config, McpConfig
from koboshi.config.problems import NOWHERE
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.stores.home_id import home_id

KEY = "tools.sandbox"
DEFAULT = str(NOWHERE)
KEPT_NAME = "inside"
"""The folder in the home that holds the homes and temporary folders of the agent's programs."""


def is_written_down(config: Config) -> bool:
    """Whether the owner chose the mode, in the file or by a variable."""
    return config.sources.get(KEY, DEFAULT) != DEFAULT


def enclosure_of(
    config: Config, environ: Mapping[str, str], found: Probe | None = None
) -> Enclosure | None:
    """What stands around commands, file tools and MCP programs; None if nothing that was asked for
    holds on this machine: then there are no such tools."""
    if why_none(config, found):
        return None
    enclosure = _enclosure(config, environ, _chosen(config, found))
    return replace(enclosure, groups=groups_of(config))


def why_none(config: Config, found: Probe | None = None) -> str:
    """Why the asked for mode does not hold here, with the remedy; empty if it does."""
    sandbox = Sandbox(config.tools.sandbox)
    chosen = _chosen(config, found)
    if sandbox is Sandbox.HOST:
        return ""
    if chosen is Boundary.NONE:
        reasons = (found or probe()).reasons_for(sandbox)
        return f"no sandbox holds on this machine ({reasons}). Remedy: {REMEDY}"
    if chosen is not Boundary.LANDLOCK:
        return ""  # only the rules of Landlock can contradict each other
    view = _enclosure(config, {}, chosen).view_of("probe")
    wrong = rules.conflict(view) if view else ""
    return f"the sandbox cannot hold: {wrong}" if wrong else ""


def _chosen(config: Config, found: Probe | None) -> Boundary:
    sandbox = Sandbox(config.tools.sandbox)
    return Boundary.NONE if sandbox is Sandbox.HOST else (found or probe()).chosen_for(sandbox)


def _enclosure(config: Config, environ: Mapping[str, str], chosen: Boundary) -> Enclosure:
    tools = config.tools
    return Enclosure(
        sandbox=Sandbox(tools.sandbox),
        boundary=chosen,
        workdirs=(str(config.gateway.workdir),),
        kept=str(config.home / KEPT_NAME),
        hidden=hidden_paths(config),
        touchable=touchable_of(config),
        exceptions=Exceptions(
            readable=_full(tools.readable),
            writable=_full(tools.writable),
            sockets=_full(tools.sockets),
            devices=_full(tools.devices),
            variables={name: environ[name] for name in tools.environment if name in environ},
        ),
        memory_bytes_max=memory_max(config),
        processes_max=tools.processes,
    )


def groups_of(config: Config) -> ControlGroups:
    """The control groups of this home's sessions; without a place for them where this machine
    leaves us none."""
    return control_groups.switch_on(control_groups.find(f"koboshi-{home_id(config.home)[:12]}"))


def memory_max(config: Config) -> int:
    """How many bytes one process of a command may take inside."""
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return config.tools.memory_mb << 20 or half


def limit_words(config: Config, process: str = "self") -> str:
    """What bounds a command inside, for the owner. `process` is the gateway, or a program that is
    started where it would be."""
    processes = f"{config.tools.processes} processes" if config.tools.processes else ""
    found = control_groups.find("", process=process)
    if found.bases:
        each = "" if found.is_memory_bound else " for each process"
        memory = f"{memory_max(config) >> 20} MB of memory{each}"
        return f"limits per chat by cgroup: {memory}, {processes or 'no limit of processes'}"
    if os.geteuid() == 0:
        processes = "no limit of processes, because the kernel does not count root's"
    memory = f"{memory_max(config) >> 20} MB of memory for each process"
    return f"limits per command by rlimits: {memory}, {processes or 'no limit of processes'}"


def server_enclosure(
    config: Config, server: McpConfig, environment: Mapping[str, str], found: Probe | None = None
) -> tuple[Enclosure, str]:
    """What stands around an MCP program, and why that cannot hold here; empty if it can. Servers
    are shared by sessions: they see no session's folder that is not named for them."""
    sandbox = Sandbox(server.sandbox or config.tools.sandbox)
    if sandbox is Sandbox.HOST:
        return ON_HOST, "" if server.network else "`network = false` needs a sandbox"
    if not server.network:
        sandbox = Sandbox.LOCKED
    seen = found or probe()
    enclosure = Enclosure(
        sandbox=sandbox,
        boundary=seen.chosen_for(sandbox),
        workdirs=(),
        kept=str(config.home / KEPT_NAME),
        hidden=hidden_paths(config),
        touchable=touchable_of(config),
        exceptions=Exceptions(
            readable=(*_own_files(config, server, environment), *_full(server.readable)),
            writable=_full(server.writable),
        ),
        memory_bytes_max=memory_max(config),
        processes_max=config.tools.processes,
        groups=groups_of(config),
    )
    view = enclosure.view_of("probe")
    if view is None:
        reasons = seen.reasons_for(sandbox)
        return ON_HOST, f"no sandbox holds for it on this machine ({reasons}). Remedy: {REMEDY}"
    wrong = rules.conflict(view) if view.boundary is Boundary.LANDLOCK else ""
    return enclosure, f"its sandbox cannot hold: {wrong}" if wrong else ""


def _own_files(
    config: Config, server: McpConfig, environment: Mapping[str, str]
) -> tuple[str, ...]:
    return files_of(
        server.command,
        server.args,
        environment=environment,
        workdir=str(config.gateway.workdir),
        home=os.path.expanduser("~"),
        touchable=touchable_of(config),
    )


def touchable_of(config: Config) -> tuple[str, ...]:
    """Folders that programs of some chat, server or agent may write, without links."""
    servers = (path for server in config.mcp for path in server.writable)
    agents = (path for agent in config.agents for path in agent.writable)
    cwds = (str(agent.cwd) for agent in config.agents if agent.cwd is not None)
    named = (str(config.gateway.workdir), *config.tools.writable, *servers, *agents, *cwds)
    return tuple(map(os.path.realpath, _full(named)))


def is_held(config: Config) -> bool:
    """Whether anything stands around the agent's programs."""
    return Sandbox(config.tools.sandbox) is not Sandbox.HOST and not why_none(config)


def boundary_words(config: Config, found: Probe | None = None) -> str:
    """What holds, in one sentence for the owner."""
    sandbox = Sandbox(config.tools.sandbox)
    if sandbox is Sandbox.HOST:
        return (
            'sandbox = "host": the agent can do everything that the gateway\'s own user may, '
            "and read its keys"
        )
    if reason := why_none(config, found):
        return f"the agent has no command, file and MCP tools: {reason}"
    seen = found or probe()
    words = f'sandbox = "{sandbox}", held by {NAMES[seen.chosen_for(sandbox)]}'
    missing = f" ({seen.reasons})" if seen.bubblewrap else ""
    return words + missing


NAMES = {Boundary.BUBBLEWRAP: "bubblewrap", Boundary.LANDLOCK: "Landlock", Boundary.NONE: "nothing"}


def guard_of(config: Config) -> PortGuard:
    """What keeps programs off our own ports. A port that the system chooses cannot be guarded."""
    places = [channel.listens_at for channel in config.enabled_channels]
    return PortGuard(frozenset(place[1] for place in places if place and place[1]))


def hidden_paths(config: Config) -> tuple[str, ...]:
    """What no program may see, wherever it lies."""
    return tuple(_hidden(config))


def _hidden(config: Config) -> Iterator[str]:
    yield str(config.home)
    if config.file is not None:
        yield str(config.file)
    for channel in config.channels:
        yield from map(str, channel.secret_files)
    for server in config.mcp:
        if server.token_file is not None:
            yield str(server.token_file)
    if credentials := os.environ.get("CREDENTIALS_DIRECTORY"):
        yield credentials


def _full(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(os.path.expanduser(path) for path in paths)
