"""The tree of known keys, built from the dataclasses, and what an unknown key was meant to be."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from koboshi.config.lines import KeyPath
from koboshi.config.problems import shown
from koboshi.config.shape import PLATFORMS, SECTIONS, McpConfig, keys_of
from koboshi.config.specs import Spec

_ACCOUNT = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_ACCOUNT_CHARS_MAX = 32


@dataclass(frozen=True, slots=True)
class Table:
    """A table of known keys."""

    children: Mapping[str, "Node"]


@dataclass(frozen=True, slots=True)
class Accounts:
    """A table of tables, one for each account of a platform (or server), named by the user."""

    each: Table
    noun: str = "account"
    example: str = "main"


Node: TypeAlias = Table | Accounts | Spec


def _grow() -> Table:
    top: dict[str, Node] = {}
    for name, section in SECTIONS.items():
        outer, _, inner = name.partition(".")
        keys: dict[str, Node] = dict(keys_of(section))
        around = top.get(outer)
        if inner:
            keys = {inner: Table(keys)}
        top[outer] = Table({**(around.children if isinstance(around, Table) else {}), **keys})
    platforms = {name: Accounts(Table(keys_of(kind))) for name, kind in PLATFORMS.items()}
    servers = Accounts(Table(keys_of(McpConfig)), noun="server", example="github")
    return Table({**top, "channels": Table(platforms), "mcp": servers})


SCHEMA = _grow()


def is_account(name: str) -> bool:
    """Whether `name` can name an account: it becomes part of names, files and variables."""
    return len(name) <= _ACCOUNT_CHARS_MAX and _ACCOUNT.fullmatch(name) is not None


def find(path: KeyPath) -> Node | None:
    """What stands at `path` in the schema; None if nothing does."""
    node: Node = SCHEMA
    for part in path:
        match node:
            case Table(children):
                below = children.get(part)
                if below is None:
                    return None
                node = below
            case Accounts(each):
                if not is_account(part):
                    return None
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


def nearest(path: KeyPath) -> KeyPath | None:
    """The known key that an unknown `path` was probably meant to be."""
    corrected = _corrected(path)
    if corrected is not None and corrected[-1] == path[-1]:
        return corrected
    # The right name in the wrong table is likelier than two names that look alike.
    exact = _same_name_elsewhere(path, cutoff=1.0)
    return exact or corrected or _same_name_elsewhere(path, cutoff=0.8)


def names_beside(path: KeyPath) -> tuple[str, ...]:
    """The names that would have been understood in the place of the last part of `path`."""
    for length in range(len(path) - 1, -1, -1):
        node = find(path[:length])
        if isinstance(node, Table):
            return tuple(node.children)
        if isinstance(node, Accounts):
            return (node.example,)
    return ()


def _corrected(path: KeyPath) -> KeyPath | None:
    """`path` with each part replaced by the known name closest to it, if there is one."""
    node: Node = SCHEMA
    done: list[str] = []
    for part in path:
        match node:
            case Table(children):
                name = _closest(part, children, cutoff=0.6)
                if name is None:
                    return None
                node = children[name]
            case Accounts(each, _, example):
                name, node = part if is_account(part) else example, each
            case _:
                return None
        done.append(name)
    return tuple(done)


def _same_name_elsewhere(path: KeyPath, *, cutoff: float) -> KeyPath | None:
    """A known key with (nearly) the same last part, in whatever table it belongs."""
    by_name: dict[str, KeyPath] = {}
    for known in _keys_below(SCHEMA, ()):
        by_name.setdefault(known[-1], known)
    name = _closest(path[-1], by_name, cutoff=cutoff)
    return by_name[name] if name is not None else None


def _keys_below(node: Node, path: KeyPath) -> Iterator[KeyPath]:
    match node:
        case Table(children):
            for name, below in children.items():
                yield from _keys_below(below, (*path, name))
        case Accounts(each, _, example):
            yield from _keys_below(each, (*path, example))
        case _:
            yield path


def _closest(name: str, known: Mapping[str, object], *, cutoff: float) -> str | None:
    # A name much longer than any key is not a typing error, and comparing it would take long.
    matches = get_close_matches(name[:64].lower(), list(known), n=1, cutoff=cutoff)
    return matches[0] if matches else None
