"""How keys relate to each other: those of one section, and those of two channels or servers.

Each function notes what is wrong as a problem; none raises.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from msgspec import Struct

from koboshi.config.models import VoiceConfig
from koboshi.config.platforms import ChannelConfig, WebConfig
from koboshi.config.problems import Origin, Problems
from koboshi.config.rules import NamedSecrets
from koboshi.config.secret import Secret
from koboshi.config.sections import AgentConfig, McpConfig
from koboshi.config.values import quoted

_KEYS_OF_PROGRAMS = ("args", "env", "env_vars")
_KEYS_OF_ADDRESSES = ("headers", "token", "token_env", "token_file")
_EVERYWHERE = ("0.0.0.0", "::")
_SAME = {"localhost": "127.0.0.1"}

Origins: TypeAlias = Mapping[str, Origin]


class Written(Struct, frozen=True, kw_only=True):
    """The place of a section in the file, and its non-empty keys that were written."""

    section: str  # "channels.telegram.main"
    origin: Origin
    keys: Origins

    def ways(self, secret: str = "token") -> Origins:
        """The keys that name a secret."""
        keys = keys_of_secret(secret)
        return {name: origin for name, origin in self.keys.items() if name in keys}


def keys_of_secret(secret: str) -> tuple[str, str, str]:
    """The three keys that can name a secret, of which one rules."""
    return secret, f"{secret}_env", f"{secret}_file"


def has_one_way(written: Written, problems: Problems, secret: str = "token") -> bool:
    """Whether at most one key names a secret of a channel or server."""
    ways = written.ways(secret)
    if len(ways) <= 1:
        return True
    *_, last = ways.values()
    message = f"{written.section} has {' and '.join(ways)}; use only one of them"
    problems.add(written.section, message, origin=last)
    return False


def is_one_server(server: McpConfig, written: Written, problems: Problems) -> bool:
    """Whether the keys of an MCP server go together."""
    found = [*_complaints(server, written)]
    for key, message in found:
        name = f"{written.section}.{key}" if key else written.section
        problems.add(name, message, origin=written.keys.get(key, written.origin))
    return not found


def passed_variables(
    server: McpConfig | AgentConfig,
    written: Written,
    environ: Mapping[str, str],
    problems: Problems,
) -> NamedSecrets:
    """The variables of `env_vars`, as they are set. One that is not set is a problem."""
    for name in server.env_vars:
        if name not in environ:
            key = f"{written.section}.env_vars"
            message = f"{key}: the environment variable {name} is not set"
            hint = f"set {name}, or take it out of the list"
            problems.add(key, message, hint=hint, origin=written.keys["env_vars"])
    return tuple((name, Secret(environ[name])) for name in server.env_vars if name in environ)


def check_server_names(servers: Origins, problems: Problems) -> None:
    """No two servers give their tools the same names: a tool begins with its server's."""
    holders: dict[str, str] = {}
    for section, origin in servers.items():
        other = holders.setdefault(section.replace("-", "_"), section)
        if other != section:
            message = f"{section} and {other} would give their tools the same names"
            problems.add(section, message, origin=origin)


def check_agents(
    agents: Sequence[AgentConfig], origins: Origins, chosen: str, problems: Problems
) -> None:
    """Each agent has a command, and the one that answers is there."""
    for agent in agents:
        section = f"agents.{agent.name}"
        if agent.enabled and not agent.command and not problems.concern_section(section):
            problems.add(section, f"{section} needs a command", origin=origins[section])
    known = sorted(agent.name for agent in agents if agent.enabled)
    if chosen and chosen not in known:
        listed = ", ".join(known) or "none"
        message = f"gateway.agent: there is no agent {quoted(chosen)}; known: {listed}"
        problems.add("gateway.agent", message)


def check_voice(voice: VoiceConfig, problems: Problems) -> None:
    """A service writes down speech, or a model on this machine."""
    if voice.url and voice.folder is not None:
        message = "voice has url and folder; use only one of them"
        problems.add("voice.folder", message, hint="a folder is for a model on this machine")


def check_channels(
    channels: Mapping[str, ChannelConfig], origins: Origins, problems: Problems
) -> None:
    """A web channel is open to other machines only through a stated proxy; and no two channels
    share a bot's token or a port, which only one can hold. Both are keyed by section."""
    for section, channel in channels.items():
        if isinstance(channel, WebConfig) and not channel.is_reached_safely:
            key = f"{section}.host"
            hint = (
                'with a proxy in front, say where people reach it: public_url = "https://…"; '
                "else use 127.0.0.1"
            )
            message = f"{key} must be a loopback address, not {quoted(channel.host)}"
            problems.add(key, message, hint=hint, origin=origins[section])
    enabled = {section: channel for section, channel in channels.items() if channel.enabled}
    for section, channel in enabled.items():
        for key, complaint in channel.complaints():
            name = f"{section}.{key}"
            problems.add(name, f"{name} {complaint}", origin=origins[section])
    for (first, one), (second, other) in combinations(enabled.items(), 2):
        for what in _shared(one, other):
            problems.add(second, f"{second} and {first} use {what}", origin=origins[second])


def _complaints(server: McpConfig, written: Written) -> Iterator[tuple[str, str]]:
    section, given = written.section, written.keys
    if "command" not in given and "url" not in given:
        yield "", f"{section} needs a command to start, or a url to call"
        return
    if "command" in given and "url" in given:
        yield "url", f"{section} has command and url; use only one of them"
        return
    foreign = _KEYS_OF_PROGRAMS if "url" in given else _KEYS_OF_ADDRESSES
    wanted = "command" if "url" in given else "url"
    for key in foreign:
        if key in given:
            yield key, f"{section}.{key} is for servers with a {wanted}"
    if any(name in server.env_vars for name, _ in server.env):
        yield "env_vars", f"{section} has a variable in env and in env_vars; use only one of them"
    if written.ways() and any(name.lower() == "authorization" for name, _ in server.headers):
        message = f"{section} has a token and a header Authorization; use only one of them"
        yield "headers", message


def _shared(one: ChannelConfig, other: ChannelConfig) -> Iterator[str]:
    if one.shares is not None and one.platform == other.platform and one.shares == other.shares:
        yield f"the same {one.shares[0]}"
    mine, theirs = one.listens_at, other.listens_at
    if mine is not None and theirs is not None and mine[1] == theirs[1] != 0:
        hosts = {_SAME.get(host, host) for host, _ in (mine, theirs)}
        if len(hosts) == 1 or not hosts.isdisjoint(_EVERYWHERE):
            yield f"the same port {mine[1]}"
