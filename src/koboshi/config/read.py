"""From a TOML text and the environment to checked settings. Every problem is noted, none raised."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from koboshi.config.line_numbers import KeyPath, line_numbers, line_of
from koboshi.config.problems import InvalidValue, Origin, Problems, shown
from koboshi.config.schema import (
    SCHEMA,
    Accounts,
    Node,
    dotted,
    find,
    is_account,
    names_beside,
    nearest,
    variable_of,
)
from koboshi.config.values import Key, kind_of

_PREFIX = "KOBOSHI__"
# A hundred names in a row, joined by dots. tomllib keeps every prefix of a dotted key, so a long
# one costs it gigabytes, in a file of ordinary size.
_ENDLESS_KEY = re.compile(
    r"""(?<![\w \t-])(?:[ \t]*+(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.){100}"""
)
_PLACE_IN_TOML_ERROR = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class Setting(Struct, frozen=True):
    """One checked value and where it was written."""

    value: object
    origin: Origin


class ConfigValues(Struct, frozen=True):
    """Everything that was set, by key; and every named channel, server and agent, even without
    keys. `problems` holds what is wrong."""

    problems: Problems
    values: dict[KeyPath, Setting] = {}
    channels: dict[KeyPath, Origin] = {}  # ("channels", platform, account)
    servers: dict[KeyPath, Origin] = {}  # ("mcp", name)
    agents: dict[KeyPath, Origin] = {}  # ("agents", name)
    models: dict[KeyPath, Origin] = {}  # ("models", name)

    def set(self, key: Key, raw: object, path: KeyPath, origin: Origin) -> None:
        """Add the value written for a key."""
        try:
            self.values[path] = Setting(key.check(raw), origin)
        except InvalidValue as error:
            self.refuse(path, f"{dotted(path)} {error.message}", error.hint, origin)

    def name(self, path: KeyPath, origin: Origin) -> None:
        """Note that a channel or server has a section, or a key at `path`."""
        if path[0] == "channels":
            self.channels.setdefault(path[:3], origin)
        elif path[0] == "mcp":
            self.servers.setdefault(path[:2], origin)
        elif path[0] == "agents":
            self.agents.setdefault(path[:2], origin)
        elif path[0] == "models":
            self.models.setdefault(path[:2], origin)

    def refuse(self, path: KeyPath, message: str, hint: str, origin: Origin) -> None:
        self.problems.add(dotted(path), message, hint=hint, origin=origin)

    def refuse_unknown(self, path: KeyPath, origin: Origin) -> None:
        if self.problems.is_full:
            return
        meant = nearest(path)
        if meant is None:
            hint = f"known here: {', '.join(names_beside(path))}"
        else:
            variable = f" ({variable_of(meant)})" if origin.variable else ""
            hint = f'did you mean "{dotted(meant)}"{variable}?'
        self.refuse(path, f'unknown key "{dotted(path)}"', hint, origin)


def parse_toml(text: str, file: Path, problems: Problems) -> dict[str, object] | None:
    """The tree of a TOML text; None after a syntax error, noted with line and column."""
    endless = _ENDLESS_KEY.search(text)
    if endless is not None:
        origin = Origin(file=file, line=text.count("\n", 0, endless.start()) + 1)
        message = "not valid toml for koboshi: a key of more than a hundred names"
        problems.add("config", message, origin=origin)
        return None
    try:
        return tomllib.loads(text)
    except RecursionError:
        problems.add("config", "not valid toml: nested too deep", origin=Origin(file=file))
    except ValueError as error:
        # Not only TOMLDecodeError: a number of 5 000 digits raises the plain one.
        said = str(error)
        place = _PLACE_IN_TOML_ERROR.search(said)
        reason = said[: place.start()] if place else "a value cannot be read"
        line, column = _end_of(text) if place else (None, None)
        if place and place[1]:
            line, column = int(place[1]), int(place[2])
        message = f"not valid toml: {shown(reason[:1].lower() + reason[1:])}"
        hint = "texts need quotes" if reason == "Invalid value" else ""
        origin = Origin(file=file, line=line, column=column)
        problems.add("config", message, hint=hint, origin=origin)
    return None


def read_tree(tree: dict[str, object], text: str, file: Path, settings: ConfigValues) -> None:
    """Add what a parsed file sets to `settings`."""
    _FileReader(file, line_numbers(text), settings).read(SCHEMA, tree, ())


def read_environ(environ: Mapping[str, str], settings: ConfigValues) -> None:
    """Add what `KOBOSHI__…` variables set to `settings`; they override the file."""
    seen: dict[KeyPath, str] = {}
    for variable in sorted(name for name in environ if name.startswith(_PREFIX)):
        path = tuple(variable.removeprefix(_PREFIX).lower().split("__"))
        origin = Origin(variable=variable)
        if path in seen:
            message = f"{shown(variable)} and {shown(seen[path])} set the same key"
            settings.refuse(path, message, "", origin)
        seen[path] = variable
        match find(path):
            case None:
                settings.refuse_unknown(path, origin)
            case Key() as key:
                settings.set(key, key.from_variable(environ[variable]), path, origin)
                settings.name(path, origin)
            case _:
                hint = f"known here: {', '.join(names_beside((*path, '')))}"
                settings.refuse(path, f'"{dotted(path)}" is a section, not a key', hint, origin)


class _FileReader(Struct, frozen=True):
    """Walks a parsed file along the schema."""

    file: Path
    lines: Mapping[KeyPath, int]
    settings: ConfigValues

    def read(self, node: Node, raw: object, path: KeyPath) -> None:
        """Read the value at `path`. As deep as the schema, however deep the file is."""
        match node:
            case Key():
                self.settings.set(node, raw, path, self._origin(path))
            case Accounts():
                for name, below in self._items(raw, path):
                    self._read_account(node, name, below, (*path, name))
            case dict():
                for name, below in self._items(raw, path):
                    if name in node:
                        self.read(node[name], below, (*path, name))
                    else:
                        self.settings.refuse_unknown((*path, name), self._origin((*path, name)))

    def _read_account(self, accounts: Accounts, name: str, raw: object, path: KeyPath) -> None:
        origin, noun = self._origin(path), accounts.noun
        if not isinstance(raw, dict) and name in accounts.each:
            hint = f"write it below [{dotted(path[:-1])}.{accounts.example}]"
            self.settings.refuse(path, f"{dotted(path)} belongs to no {noun}", hint, origin)
        elif not is_account(name):
            message = f'"{shown(name)}" cannot name {"an" if noun[0] == "a" else "a"} {noun}'
            hint = "use lower case letters, digits, and single - or _ between them"
            self.settings.refuse(path, message, hint, origin)
        else:
            if isinstance(raw, dict):
                self.settings.name(path, origin)
            self.read(accounts.each, raw, path)

    def _items(self, raw: object, path: KeyPath) -> Iterator[tuple[str, object]]:
        """The entries of a table, up to the one that makes the list of problems full."""
        if not isinstance(raw, dict):
            message = f"{dotted(path)} must be a table, not {kind_of(raw)}"
            self.settings.refuse(path, message, f"write [{dotted(path)}]", self._origin(path))
            return
        for name, below in raw.items():
            if self.settings.problems.is_full:
                return
            yield str(name), below

    def _origin(self, path: KeyPath) -> Origin:
        return Origin(file=self.file, line=line_of(path, self.lines))


def _end_of(text: str) -> tuple[int, int]:
    return text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1
