"""The views of one gateway: what its owner allows, for each session, and how it is enforced."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from koboshi.boundary import bubblewrap, rules, system
from koboshi.boundary.control_groups import ControlGroups
from koboshi.boundary.naming import true_path
from koboshi.boundary.view import Access, Place, View, below, deepest, is_below, join
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.ports.runners import UNCONFINED, Confinement

HOME_INSIDE = "/agent"
TMP_INSIDE = "/tmp"
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exceptions:
    """What an owner shows beyond the working folder. Paths are absolute."""

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What a program is started with."""

    confinement: Confinement
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosure:
    """What stands around the programs of one gateway."""

    sandbox: Sandbox
    boundary: Boundary
    """What holds on this machine. NONE only for `host`."""
    workdirs: tuple[str, ...]
    kept: str
    """The folder that holds the homes and the temporary folders of the programs."""
    hidden: tuple[str, ...] = ()
    """The home of the gateway, its configuration, and files that hold secrets."""
    exceptions: Exceptions = field(default_factory=Exceptions)
    touchable: tuple[str, ...] = ()
    """Folders that programs of other chats or servers may write: what leads out of them by a link
    is not shown."""
    workspace: str = "main"
    """Names the home of programs that are no server's: one for each workspace."""
    memory_bytes_max: int = 0
    processes_max: int = 0
    groups: ControlGroups = field(default_factory=ControlGroups)
    """What bounds all programs of a session together, where this machine lets us."""

    def __post_init__(self) -> None:
        # Where they are now, too: a program may change where a name leads.
        everywhere = (*self.hidden, *map(os.path.realpath, self.hidden))
        object.__setattr__(self, "hidden", tuple(dict.fromkeys(everywhere)))

    def view_of(
        self, session: str, *, owner: str = "", workdirs: tuple[str, ...] | None = None
    ) -> View | None:
        """What programs of a session see; None if that is everything. `session` names the temporary
        folder, and `owner` the home: the workspace, or an MCP server."""
        if self.boundary is Boundary.NONE:
            return None
        owner = owner or self.workspace
        is_mapped = self.boundary is Boundary.BUBBLEWRAP
        home = os.path.join(os.path.realpath(self.kept), "home", owner)
        tmp = os.path.join(os.path.realpath(self.kept), "tmp", session)
        homes = Place(inside=self.home_of(owner), outside=home, access=Access.WRITE)
        temporary = Place(inside=TMP_INSIDE if is_mapped else tmp, outside=tmp, access=Access.WRITE)
        hidden = tuple(_hidden(self.hidden))
        named = self._named(self.workdirs if workdirs is None else workdirs, hidden)
        known = system.places(self.boundary)
        covers = _covers((*named, *hidden)) if is_mapped else ()
        return View(
            boundary=self.boundary,
            places=(
                *known,
                *named,
                *hidden,
                *covers,
                homes,
                temporary,
            ),
            links=system.links() if is_mapped else (),
            copied=system.copied(known) if is_mapped else frozenset(),
            hidden_files=frozenset(
                place.inside
                for place in (*hidden, *covers)
                if place.access is Access.HIDDEN and not os.path.isdir(place.outside)
            ),
            home=homes.inside,
            tmp=temporary.inside,
            has_network=self.sandbox is not Sandbox.LOCKED,
            has_sockets=bool(self.exceptions.sockets),
        )

    def _named(self, workdirs: tuple[str, ...], hidden: tuple[Place, ...]) -> tuple[Place, ...]:
        """The work folders, and what the owner shows beyond them."""
        beyond = self.exceptions
        # What lies in one of these is shown with it. By itself it could be exchanged for a link
        # between this look at it and the start of a command.
        written = (*workdirs, *beyond.writable)
        reach = {os.path.realpath(path) for path in (*self.touchable, *written, self.kept) if path}
        whole = tuple(_places(written, Access.WRITE, reach))
        others = (
            *_places(beyond.readable, Access.READ, reach),
            *_places(beyond.sockets, Access.WRITE, reach),
            *_places(beyond.devices, Access.DEVICE, reach),
        )
        return tuple(
            place for place in (*whole, *others) if not _is_within(place, (*whole, *hidden))
        )

    def home_of(self, owner: str = "") -> str:
        """Where `$HOME` of its programs is, as they call it."""
        owner = owner or self.workspace
        if self.boundary is Boundary.NONE:
            return os.path.expanduser("~")
        if self.boundary is Boundary.BUBBLEWRAP:
            return HOME_INSIDE
        return os.path.join(os.path.realpath(self.kept), "home", owner)

    def start(
        self,
        view: View | None,
        workdir: str,
        environment: Mapping[str, str],
        *,
        session: str = "",
    ) -> Started:
        """What a program that begins in `workdir` is started with; without a view, on the host. The
        folders of the view are made. Those of a session have their limits together. Raises
        OSError."""
        if view is None:
            return Started(confinement=UNCONFINED, environment=environment)
        make_folders(view)
        return Started(
            confinement=replace(
                confine(view, workdir),
                memory_bytes_max=self.memory_bytes_max,
                processes_max=self.processes_max,
                groups=self.groups.of(session) if session else (),
            ),
            environment=environment_inside(view, environment, self.exceptions.variables),
        )


ON_HOST = Enclosure(sandbox=Sandbox.HOST, boundary=Boundary.NONE, workdirs=(), kept="")


def make_folders(view: View) -> None:
    """Make the home and the temporary folder of a view, and note that they are used now. Raises
    OSError."""
    for inside in (view.home, view.tmp):
        outside = view.locate(inside)
        if outside is not None:
            _make_private(outside)
            os.utime(outside)


def _make_private(folder: str) -> None:
    """Make a folder for its owner alone, and so each above it that is not there yet."""
    if os.path.isdir(folder):
        return
    _make_private(os.path.dirname(folder))
    os.makedirs(folder, mode=0o700, exist_ok=True)


def confine(view: View, workdir: str) -> Confinement:
    """How a program that begins in `workdir` is kept inside its view."""
    if view.boundary is Boundary.BUBBLEWRAP:
        program = shutil.which(bubblewrap.PROGRAM) or bubblewrap.PROGRAM
        launcher = bubblewrap.arguments(view, program=program, workdir=workdir)
        return Confinement(boundary=view.boundary, launcher=launcher)
    return Confinement(
        boundary=view.boundary, grants=rules.grants(view), has_network=view.has_network
    )


def environment_inside(
    view: View, environment: Mapping[str, str], passed: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a program inside: what commands get anywhere, and what the owner passes
    on by name, with the places that exist inside."""
    found = {**environment, **passed, "HOME": view.home, "TMPDIR": view.tmp}
    return found | {"PATH": path_inside(view, environment.get("PATH", ""))}


def path_inside(view: View, path: str) -> str:
    """Those folders of a search path that are to be seen, and the usual ones."""
    known = [*path.split(":"), *USUAL_PATH.split(":")]
    seen = (each for each in known if each.startswith("/") and _sees(view, each))
    return ":".join(dict.fromkeys(seen))


def _sees(view: View, path: str) -> bool:
    """Whether a folder is to be seen under this name. `/bin` is where its link leads."""
    return view.may_read(os.path.realpath(path))


def _places(paths: Iterable[str], access: Access, touchable: Iterable[str]) -> Iterator[Place]:
    """A named path under its own name, and under the one that it really has."""
    for path in paths:
        real = true_path(os.path.abspath(path), touchable)
        if real is None:
            continue
        for inside in dict.fromkeys((os.path.normpath(path), real)):
            yield Place(inside=inside, outside=real, access=access)


def _is_within(place: Place, around: tuple[Place, ...]) -> bool:
    """Whether it is shown with another one anyway, and may be written there."""
    others = [each for each in around if each.outside != place.outside]
    found = deepest(others, place.outside, inside=False)
    return found is not None and found.access is Access.WRITE


def _covers(places: tuple[Place, ...]) -> tuple[Place, ...]:
    """What else it takes to hide the hidden ones. Each is hidden under every name that leads to it.
    And the folders between it and the place that shows it are mounted by themselves: what is
    mounted cannot be renamed, and so not be put where nothing is hidden."""
    found: list[Place] = []
    shown = [place for place in places if place.access is not Access.HIDDEN]
    for hidden in places:
        if hidden.access is not Access.HIDDEN:
            continue
        for place in shown:
            if hidden.outside == place.outside or not is_below(hidden.outside, place.outside):
                continue
            rest = below(hidden.outside, place.outside)
            found += _folders_between(place, rest)
            name = join(place.inside, rest)
            found.append(Place(inside=name, outside=hidden.outside, access=Access.HIDDEN))
    return tuple(dict.fromkeys(each for each in found if each not in places))


def _folders_between(place: Place, rest: str) -> Iterator[Place]:
    folder = os.path.dirname(rest)
    while folder:
        yield replace(place, inside=join(place.inside, folder), outside=join(place.outside, folder))
        folder = os.path.dirname(folder)


def _hidden(paths: Iterable[str]) -> Iterator[Place]:
    for path in paths:
        # What does not exist cannot be covered: the attempt would make it.
        if os.path.exists(real := os.path.realpath(path)):
            yield Place.same(real, Access.HIDDEN)
