"""A view as the arguments of bubblewrap. Pure.

Nothing of the environment is among them: arguments can be read by every user of the machine.

A mount costs more than all else, so small files of the system are copied. Bubblewrap reads them
from open files, which are opened where it is started: `open:/etc/hosts` stands for the number of
one (`runner/sandbox.py`).
"""

from koboshi.boundary.view import Access, Place, View, is_below

PROGRAM = "bwrap"
OPENED = "open:"

# `--unshare-user-try`: root has namespaces without one. The network is shared unless it is taken
# away. `--die-with-parent`: the parent is the runner, which outlives the gateway. `--cap-drop`:
# root would keep the right to mount, and so make writable or uncover what it is shown.
BASE = (
    "--unshare-user-try",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
)
_BINDS = {Access.READ: "--ro-bind", Access.WRITE: "--bind", Access.DEVICE: "--dev-bind"}


def arguments(view: View, *, program: str, workdir: str) -> tuple[str, ...]:
    """What stands before the program that is to run inside. `program` is bubblewrap itself."""
    said = [program, *BASE]
    if not view.has_network:
        said.append("--unshare-net")
    said += ["--proc", "/proc", "--dev", "/dev"]
    for path, target in view.links:
        said += ["--symlink", target, path]
    for place in view.ordered():
        if place.access is not Access.HIDDEN or _is_shown(view, place):
            said += _shown(view, place)
    # What is mounted keeps its own rights. The folders around it, and copies, cannot be changed.
    return (*said, "--remount-ro", "/", "--chdir", workdir, "--")


def _is_shown(view: View, hidden: Place) -> bool:
    """Whether a hidden place lies in one that is shown. Another one is not there anyway, and to
    cover it would make it."""
    shown = [place.inside for place in view.places if place.access is not Access.HIDDEN]
    return any(is_below(hidden.inside, each) for each in shown)


def _shown(view: View, place: Place) -> tuple[str, ...]:
    if place.inside in view.copied:
        return ("--file", OPENED + place.outside, place.inside)
    if place.access is Access.HIDDEN:
        is_file = place.inside in view.hidden_files
        # A device cannot be opened there, so that the file is not even empty.
        return ("--ro-bind", "/dev/null", place.inside) if is_file else ("--tmpfs", place.inside)
    return (_BINDS[place.access], place.outside, place.inside)
