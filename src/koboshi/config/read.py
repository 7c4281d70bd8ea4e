"""From a TOML text and the environment to checked settings. Every problem is noted, none raised."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from koboshi.config.lines import KeyPath, line_numbers, line_of
from koboshi.config.problems import Origin, Problems, Unfit, shown
from koboshi.config.schema import (
    SCHEMA,
    Accounts,
    Node,
    Table,
    dotted,
    find,
    is_account,
    names_beside,
    nearest,
    variable_of,
)
from koboshi.config.specs import Spec, kind_of

_PREFIX = "KOBOSHI__"
# A hundred names in a row, joined by dots. tomllib keeps every beginning of a dotted key, so a long
# one costs it gigabytes, in a file of ordinary size.
_ENDLESS_KEY = re.compile(
    r"""(?<![\w \t-])(?:[ \t]*+(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.){100}"""
)
_PLACE_IN_TOML_ERROR = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One checked value and where it was written."""

    value: object
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that was set, by key; and every channel and server that was named, even with no
    keys."""

    values: dict[KeyPath, Setting] = field(default_factory=dict)
    channels: dict[KeyPath, Origin] = field(default_factory=dict)  # ("channels", platform, account)
    servers: dict[KeyPath, Origin] = field(default_factory=dict)  # ("mcp", name)

    def name(self, path: KeyPath, origin: Origin) -> None:
        """Note that somebody wrote about the channel or server to which `path` belongs."""
        if path[0] == "channels":
            self.channels.setdefault(path[:3], origin)
        elif path[0] == "mcp":
            self.servers.setdefault(path[:2], origin)


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
        hint = "texts need quotes" if reason == "Invalid value" else ""
        problems.add(
            "config",
            f"not valid toml: {shown(reason[:1].lower() + reason[1:])}",
            hint=hint,
            origin=Origin(file=file, line=line, column=column),
        )
    return None


def read_tree(
    tree: dict[str, object], text: str, file: Path, settings: Settings, problems: Problems
) -> None:
    """Add what a parsed file sets to `settings`."""
    _FileReader(file, line_numbers(text), settings, problems).read(SCHEMA, tree, ())


def read_environ(environ: Mapping[str, str], settings: Settings, problems: Problems) -> None:
    """Add what `KOBOSHI__…` variables set to `settings`; they rule over the file."""
    seen: dict[KeyPath, str] = {}
    for variable in sorted(name for name in environ if name.startswith(_PREFIX)):
        path = tuple(variable.removeprefix(_PREFIX).lower().split("__"))
        if path in seen:
            message = f"{shown(variable)} and {shown(seen[path])} set the same key"
            problems.add(dotted(path), message, origin=Origin(variable=variable))
        seen[path] = variable
        _read_variable(variable, path, environ[variable], settings, problems)


@dataclass(frozen=True, slots=True)
class _FileReader:
    """Goes through a parsed file along the schema."""

    file: Path
    lines: Mapping[KeyPath, int]
    settings: Settings
    problems: Problems

    def read(self, node: Node, raw: object, path: KeyPath) -> None:
        """Take in what stands at `path`. As deep as the schema, however deep the file is."""
        match node:
            case Table(children):
                for name, below in self._items(raw, path):
                    child = children.get(name)
                    if child is None:
                        origin = self._origin((*path, name))
                        _add_unknown((*path, name), origin, self.problems)
                    else:
                        self.read(child, below, (*path, name))
            case Accounts():
                for name, below in self._items(raw, path):
                    self._read_account(node, name, below, (*path, name))
            case spec:
                _add_checked(spec, raw, path, self._origin(path), self.settings, self.problems)

    def _read_account(self, accounts: Accounts, name: str, raw: object, path: KeyPath) -> None:
        origin, noun = self._origin(path), accounts.noun
        if not isinstance(raw, dict) and name in accounts.each.children:
            self.problems.add(
                dotted(path),
                f"{dotted(path)} belongs to no {noun}",
                hint=f"write it below [{dotted(path[:-1])}.{accounts.example}]",
                origin=origin,
            )
        elif not is_account(name):
            self.problems.add(
                dotted(path),
                f'"{shown(name)}" cannot name {"an" if noun == "account" else "a"} {noun}',
                hint="use lower case letters, digits, and single - or _ between them",
                origin=origin,
            )
        else:
            if isinstance(raw, dict):
                self.settings.name(path, origin)
            self.read(accounts.each, raw, path)

    def _items(self, raw: object, path: KeyPath) -> Iterable[tuple[str, object]]:
        """The entries of a table, up to the one that makes the list of problems full."""
        if not isinstance(raw, dict):
            self.problems.add(
                dotted(path),
                f"{dotted(path)} must be a table, not {kind_of(raw)}",
                hint=f"write [{dotted(path)}]",
                origin=self._origin(path),
            )
            return
        for name, below in raw.items():
            if self.problems.is_full:
                return
            yield str(name), below

    def _origin(self, path: KeyPath) -> Origin:
        return Origin(file=self.file, line=line_of(path, self.lines))


def _read_variable(
    variable: str, path: KeyPath, text: str, settings: Settings, problems: Problems
) -> None:
    origin = Origin(variable=variable)
    match find(path):
        case None:
            _add_unknown(path, origin, problems)
        case Table() | Accounts():
            names = ", ".join(names_beside((*path, "")))
            message = f'"{dotted(path)}" is a section, not a key'
            problems.add(dotted(path), message, hint=f"known here: {names}", origin=origin)
        case spec:
            _add_checked(spec, spec.parse(text), path, origin, settings, problems)
            settings.name(path, origin)


def _add_checked(
    spec: Spec,
    raw: object,
    path: KeyPath,
    origin: Origin,
    settings: Settings,
    problems: Problems,
) -> None:
    try:
        settings.values[path] = Setting(value=spec.check(raw), origin=origin)
    except Unfit as unfit:
        message = f"{dotted(path)} {unfit.message}"
        problems.add(dotted(path), message, hint=unfit.hint, origin=origin)


def _add_unknown(path: KeyPath, origin: Origin, problems: Problems) -> None:
    if problems.is_full:
        return
    meant = nearest(path)
    if meant is None:
        hint = f"known here: {', '.join(names_beside(path))}"
    elif origin.variable:
        hint = f'did you mean "{dotted(meant)}" ({variable_of(meant)})?'
    else:
        hint = f'did you mean "{dotted(meant)}"?'
    problems.add(dotted(path), f'unknown key "{dotted(path)}"', hint=hint, origin=origin)


def _end_of(text: str) -> tuple[int, int]:
    return text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1
