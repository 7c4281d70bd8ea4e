"""What exists for a program: a pure value, from which every boundary is made.

Paths have two names. *Inside* is what the program calls a file, *outside* is where it really is.
They differ for `/tmp` and for the home of the programs under bubblewrap, and nowhere under
Landlock. Where entries overlap, the deeper one rules: a secret file in a visible folder is hidden,
and a working folder below a hidden one is visible.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.sandbox import Boundary


class Access(StrEnum):
    READ = "read"
    WRITE = "write"  # and read
    DEVICE = "device"  # read and write, and it may be a device
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file or folder with everything below it."""

    inside: str
    outside: str
    access: Access

    @classmethod
    def same(cls, path: str, access: Access) -> "Place":
        """One that has the same name on both sides."""
        return cls(inside=path, outside=path, access=access)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All paths are absolute and normal. Outside paths have no links in them."""

    boundary: Boundary
    places: tuple[Place, ...]
    links: tuple[tuple[str, str], ...] = ()
    """Symbolic links of the system that exist inside, as (path, target): `/bin`, `/lib`."""
    hidden_files: frozenset[str] = frozenset()
    """Which of the hidden places are files: they are covered in another way."""
    copied: frozenset[str] = frozenset()
    """Which of the places are small files that are as good as copies."""
    home: str
    """Where `$HOME` is inside."""
    tmp: str
    """Where temporary files go inside."""
    has_network: bool = True
    has_sockets: bool = False
    """Whether an owner named sockets of programs outside."""

    def locate(self, path: str) -> str | None:
        """Where a file that a program calls `path` really is; None if it is not to be seen.
        `path` is absolute and normal."""
        place = deepest(self.places, path, inside=True)
        if place is None or place.access is Access.HIDDEN:
            return None
        return join(place.outside, below(path, place.inside))

    def named(self, real: str) -> str:
        """What programs call the file that really is `real`; `real` if they cannot see it."""
        place = deepest(self.places, real, inside=False)
        if place is None or place.access is Access.HIDDEN:
            return real
        return join(place.inside, below(real, place.outside))

    def may_read(self, real: str) -> bool:
        """Whether a program sees what really is at `real`, a path without links."""
        return self._access(real) in (Access.READ, Access.WRITE, Access.DEVICE)

    def may_write(self, real: str) -> bool:
        return self._access(real) in (Access.WRITE, Access.DEVICE)

    def ordered(self) -> tuple[Place, ...]:
        """The places by the depth of their inside name: later ones cover earlier ones."""
        return tuple(sorted(self.places, key=lambda place: depth(place.inside)))

    def _access(self, real: str) -> Access | None:
        place = deepest(self.places, real, inside=False)
        return None if place is None else place.access


def deepest(places: Iterable[Place], path: str, *, inside: bool) -> Place | None:
    """The place that rules over the path. Of two that are the same, hidden rules, and then the one
    that gives more: a person named it on purpose."""

    def name(place: Place) -> str:
        return place.inside if inside else place.outside

    covering = [place for place in places if is_below(path, name(place))]
    return max(covering, key=lambda place: (depth(name(place)), _RANK[place.access]), default=None)


_RANK = {Access.READ: 0, Access.WRITE: 1, Access.DEVICE: 2, Access.HIDDEN: 3}


def is_below(path: str, folder: str) -> bool:
    """Whether the path is the folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def below(path: str, folder: str) -> str:
    """The rest of a path that lies in the folder; empty for the folder itself."""
    return path[len(folder.rstrip("/")) :].lstrip("/")


def join(folder: str, rest: str) -> str:
    return f"{folder.rstrip('/')}/{rest}" if rest else folder


def depth(path: str) -> int:
    return 0 if path == "/" else path.rstrip("/").count("/")
