"""Whether the keys of an MCP server go together, and the variables that are passed on to it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from koboshi.config.problems import Origin, Problems
from koboshi.config.secret import Secret
from koboshi.config.server_specs import NamedSecrets

KEYS_OF_PROGRAMS = ("args", "env", "env_vars")
KEYS_OF_ADDRESSES = ("headers", "token", "token_env", "token_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKeys:
    """What the section of a server says, and where."""

    section: str  # "mcp.github"
    origin: Origin  # of the section
    given: Mapping[str, Origin]  # the keys that were written and say something
    env: NamedSecrets
    env_vars: tuple[str, ...]
    headers: NamedSecrets

    @property
    def is_address(self) -> bool:
        return "url" in self.given


def goes_together(keys: ServerKeys, problems: Problems) -> bool:
    """Whether the keys describe one server; what does not fit is noted as a problem."""
    found = [*_complaints(keys)]
    for key, message in found:
        name = f"{keys.section}.{key}" if key else keys.section
        problems.add(name, message, origin=keys.given.get(key, keys.origin))
    return not found


def passed_variables(
    keys: ServerKeys, environ: Mapping[str, str], problems: Problems
) -> NamedSecrets:
    """The variables of `env_vars`, as they are set. One that is not set is noted as a problem."""
    found: list[tuple[str, Secret]] = []
    for name in keys.env_vars:
        if name in environ:
            found.append((name, Secret(environ[name])))
            continue
        key = f"{keys.section}.env_vars"
        message = f"{key}: the environment variable {name} is not set"
        hint = f"set {name}, or take it out of the list"
        problems.add(key, message, hint=hint, origin=keys.given.get("env_vars", keys.origin))
    return tuple(found)


def check_names(sections: Mapping[str, Origin], problems: Problems) -> None:
    """Note servers whose tools would have the same names: a tool begins with its server's."""
    holders: dict[str, str] = {}
    for section, origin in sections.items():
        other = holders.setdefault(section.replace("-", "_"), section)
        if other != section:
            message = f"{section} and {other} would give their tools the same names"
            problems.add(section, message, origin=origin)


def _complaints(keys: ServerKeys) -> Iterator[tuple[str, str]]:
    section, given = keys.section, keys.given
    if "command" not in given and "url" not in given:
        yield "", f"{section} needs a command to start, or a url to call"
        return
    if "command" in given and "url" in given:
        yield "url", f"{section} has command and url; only one of them can rule"
        return
    yield from _strangers(keys)
    if any(name in keys.env_vars for name, _ in keys.env):
        yield "env_vars", f"{section} has a variable in env and in env_vars; only one can rule"
    has_token = any(key.startswith("token") for key in given)
    if has_token and any(name.lower() == "authorization" for name, _ in keys.headers):
        message = f"{section} has a token and a header Authorization; only one of them can rule"
        yield "headers", message


def _strangers(keys: ServerKeys) -> Iterator[tuple[str, str]]:
    wrong: Sequence[str] = KEYS_OF_PROGRAMS if keys.is_address else KEYS_OF_ADDRESSES
    wanted = "command" if keys.is_address else "url"
    for key in wrong:
        if key in keys.given:
            yield key, f"{keys.section}.{key} is for servers with a {wanted}"
