"""Where the groups of sessions can be made, which bound all programs of a session together.

Two cases are usable without a service manager being worked against. In a hierarchy of its own
(version 1) a group may have both members and groups within, so ours are made within our own, where
we may write. In the unified hierarchy a group with limits for the groups within has no members: so
only a group that was delegated to us is used, in which we stand in a group of our own
(`DelegateSubgroup=` of systemd), or the root itself, where no service manager is at work. Only
commands are moved.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

PROCESSES, MEMORY = "pids", "memory"
DELEGATED = ("user.delegate", "trusted.delegate")
"""The marks of systemd on a group that it leaves to its service."""
MEMBERS = "cgroup.procs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """A mounted hierarchy of groups."""

    point: str
    root: str
    """Which of its groups is mounted there."""
    controllers: frozenset[str]
    """Of one of its own; those of the unified hierarchy are in its groups."""
    is_unified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlGroups:
    """Where groups of sessions can be made: one folder for each hierarchy, at least that of the
    processes; none where there is no such place."""

    bases: tuple[str, ...] = ()
    prefix: str = "koboshi"
    """What the names of our groups begin with: one for each home."""
    is_memory_bound: bool = False

    def of(self, session: str) -> tuple[str, ...]:
        """The groups that programs of the session join."""
        return tuple(os.path.join(base, f"{self.prefix}-{session}") for base in self.bases)

    def sweep(self) -> int:
        """Remove our groups without members. Returns how many. One that is needed again is made
        again."""
        count = 0
        for base in self.bases:
            with suppress(OSError), os.scandir(base) as found:
                ours = [each.path for each in found if each.name.startswith(f"{self.prefix}-")]
                count += sum(map(_is_removed, ours))
        return count


def find(prefix: str, *, process: str = "self", facts: str = "/proc") -> ControlGroups:
    """Where a process can make groups, by what the system says of it. Only looks."""
    paths = dict(_paths_of(_read(f"{facts}/{process}/cgroup")))
    bases: dict[str, str] = {}
    for hierarchy in _hierarchies(_read(f"{facts}/self/mountinfo")):
        for controller in (PROCESSES, MEMORY):
            base = _base(hierarchy, paths, controller)
            if base:
                bases.setdefault(controller, base)
    if PROCESSES not in bases:
        return ControlGroups(prefix=prefix)
    return ControlGroups(
        bases=tuple(dict.fromkeys(bases.values())),
        prefix=prefix,
        is_memory_bound=MEMORY in bases,
    )


def switch_on(groups: ControlGroups) -> ControlGroups:
    """Have the groups within count. Without that they bound nothing, and none is used."""
    for base in groups.bases:
        switch = os.path.join(base, "cgroup.subtree_control")
        if not os.path.exists(switch):
            continue  # a hierarchy of its own counts anyway
        wanted = [PROCESSES, *([MEMORY] if groups.is_memory_bound else [])]
        try:
            with open(switch, "w", encoding="ascii") as file:
                file.write(" ".join(f"+{each}" for each in wanted))
        except OSError:
            return ControlGroups(prefix=groups.prefix)
    return groups


def _base(hierarchy: Hierarchy, paths: Mapping[str, str], controller: str) -> str:
    """The folder in which groups can be made that this controller bounds; empty if there is
    none."""
    if hierarchy.is_unified:
        own = _folder(hierarchy, paths.get("", ""))
        base = _delegated(own) if own else ""
        known = _read(os.path.join(base, "cgroup.controllers")).split() if base else []
        return base if controller in known else ""
    if controller not in hierarchy.controllers:
        return ""
    own = _folder(hierarchy, paths.get(controller, ""))
    return own if own and os.access(own, os.W_OK | os.X_OK) else ""


def _delegated(own: str) -> str:
    """The group in which ours can be made beside our own; empty if there is none."""
    if not os.path.exists(os.path.join(own, "cgroup.type")):
        # The root of the machine: there is no service manager, or we would not be in it.
        return own if os.access(os.path.join(own, "cgroup.subtree_control"), os.W_OK) else ""
    above = os.path.dirname(own)
    files = (above, os.path.join(above, "cgroup.subtree_control"), os.path.join(above, MEMBERS))
    if not _is_delegated(above) or not all(os.access(each, os.W_OK) for each in files):
        return ""
    return above


def _is_delegated(folder: str) -> bool:
    for name in DELEGATED:
        with suppress(OSError):
            return os.getxattr(folder, name) == b"1"
    return False


def _folder(hierarchy: Hierarchy, path: str) -> str:
    """Where a group of the hierarchy is mounted; empty if it is not."""
    root = hierarchy.root.rstrip("/")
    if not path or not (path + "/").startswith(root + "/"):
        return ""
    folder = os.path.normpath(hierarchy.point + path[len(root) :])
    return folder if os.path.isdir(folder) else ""


def _paths_of(groups: str) -> Iterator[tuple[str, str]]:
    """The groups of a process by controller, from /proc/<pid>/cgroup; "" is the unified one."""
    for line in groups.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for each in controllers.split(","):
            yield each, path


def _hierarchies(mounts: str) -> Iterator[Hierarchy]:
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        kind, *more = after.split(" ")
        fields = before.split(" ")
        if kind not in ("cgroup", "cgroup2") or len(fields) < 5:
            continue
        yield Hierarchy(
            point=_plain(fields[4]),
            root=_plain(fields[3]),
            controllers=frozenset(more[-1].split(",")) if more else frozenset(),
            is_unified=kind == "cgroup2",
        )


def _plain(field: str) -> str:
    return field.replace("\\040", " ")


def _is_removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except OSError:
        return False  # it has members
    return True


def _read(name: str) -> str:
    try:
        with open(name, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""
