"""The tree of known keys, grown from the sections, and what an unknown key was meant to be."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TypeAlias

from msgspec import Struct

from koboshi.config.line_numbers import KeyPath
from koboshi.config.models import LinkConfig
from koboshi.config.platforms import PLATFORMS, PluginChannelConfig, foreign_platforms
from koboshi.config.problems import shown
from koboshi.config.sections import AgentConfig, Config, McpConfig
from koboshi.config.values import Key, keys_of, sections_of

_ACCOUNT = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_ACCOUNT_CHARS_MAX = 32

Node: TypeAlias = "Table | Accounts | Key"
Table: TypeAlias = dict[str, Node]


class Accounts(Struct, frozen=True):
    """A table of tables, one for each account of a platform (or server), named by the user."""

    each: Table
    noun: str = "account"
    example: str = "main"


def _table(section: type[Struct]) -> Table:
    inner = {name: _table(each) for name, each in sections_of(section).items()}
    return {**keys_of(section), **inner}


_CHANNELS: Table = {name: Accounts(_table(section)) for name, section in PLATFORMS.items()}
SCHEMA: Table = {
    **_table(Config),
    "channels": _CHANNELS,
    "mcp": Accounts(_table(McpConfig), noun="server", example="github"),
    "models": Accounts(_table(LinkConfig), noun="model", example="local"),
    "agents": Accounts(_table(AgentConfig), noun="agent", example="claude"),
}


def know_platforms(named: Iterable[str]) -> None:
    """Know the keys of those platforms among `named` that another distribution brings. What is
    installed is looked at only for a name that is not known."""
    for name in named:
        if name not in _CHANNELS and name in foreign_platforms():
            _CHANNELS[name] = Accounts(_table(PluginChannelConfig))


def is_account(name: str) -> bool:
    """Whether `name` can name an account: it becomes part of names, files and variables."""
    return len(name) <= _ACCOUNT_CHARS_MAX and _ACCOUNT.fullmatch(name) is not None


def find(path: KeyPath) -> "Node | None":
    """The node at `path` in the schema; None if there is none."""
    node: Node | None = SCHEMA
    for part in path:
        match node:
            case dict():
                node = node.get(part)
            case Accounts(each) if is_account(part):
                node = each
            case _:
                return None
    return node


def dotted(path: KeyPath) -> str:
    """A key as the user writes and reads it."""
    return ".".join(shown(part) for part in path)


def variable_of(path: KeyPath) -> str:
    """The environment variable that sets the key at `path`."""
    return "__".join(("KOBOSHI", *(part.upper() for part in path)))


def keys_below(node: Node, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key, with an example name for each account."""
    match node:
        case dict():
            for name, below in node.items():
                yield from keys_below(below, (*path, name))
        case Accounts(each, _, example):
            yield from keys_below(each, (*path, example))
        case _:
            yield path


def nearest(path: KeyPath) -> KeyPath | None:
    """The known key that an unknown `path` was probably meant to be."""
    corrected = _corrected(path)
    if corrected is not None and corrected[-1] == path[-1]:
        return corrected
    # The right name in the wrong table is likelier than two names that look alike.
    exact = _same_name_elsewhere(path, cutoff=1.0)
    return exact or corrected or _same_name_elsewhere(path, cutoff=0.8)


def names_beside(path: KeyPath) -> tuple[str, ...]:
    """The known names in the place of the last part of `path`."""
    around = (find(path[:length]) for length in range(len(path) - 1, -1, -1))
    node = next(node for node in around if isinstance(node, dict | Accounts))
    return (node.example,) if isinstance(node, Accounts) else tuple(node)


def _corrected(path: KeyPath) -> KeyPath | None:
    """`path` with each part replaced by the known name closest to it, if there is one."""
    node: Node = SCHEMA
    done: KeyPath = ()
    for part in path:
        match node:
            case dict():
                name = _closest(part, node, cutoff=0.6)
                if name is None:
                    return None
                node = node[name]
            case Accounts(each, _, example):
                name, node = part if is_account(part) else example, each
            case _:
                return None
        done = (*done, name)
    return done


def _same_name_elsewhere(path: KeyPath, *, cutoff: float) -> KeyPath | None:
    """A known key with (nearly) the same last part, in any table."""
    by_name = {known[-1]: known for known in reversed([*keys_below(SCHEMA)])}
    name = _closest(path[-1], by_name, cutoff=cutoff)
    return by_name[name] if name is not None else None


def _closest(name: str, known: Iterable[str], *, cutoff: float) -> str | None:
    # A name much longer than any key is not a typing error, and comparing it would take long.
    matches = get_close_matches(name[:64].lower(), list(known), n=1, cutoff=cutoff)
    return matches[0] if matches else None
