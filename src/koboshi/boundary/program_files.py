"""Which files a program is made of, so that it can be started inside a boundary.

A program of the system is visible anyway. Another one, an interpreter of a virtual environment or a
script, is found by where it lies: an owner who names a program has named its files. Never a whole
home: what lies beside a program there is not a part of it. And where the agent may write, neither
links nor files say where else to look: they may be its own.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence

from koboshi.boundary.naming import is_touchable
from koboshi.boundary.view import is_below

SCRIPTS = (".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl", ".php", ".jar")
INSTALLED = ("bin", "lib", "lib64", "libexec")
"""What belongs to an installation: its other folders may hold anything."""
VENV = "pyvenv.cfg"
MODULES = "node_modules"
PACKAGE = "package.json"


def files_of(
    command: str,
    args: Sequence[str],
    *,
    environment: Mapping[str, str],
    workdir: str,
    home: str,
    touchable: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """The files and folders of a program and of the script that it is given. `home` is the home of
    the user, which is never shown as a whole. `touchable` are folders that the agent may write."""
    found = shutil.which(command, path=environment.get("PATH"))
    paths = [] if found is None else [*_of_program(os.path.join(workdir, found), touchable)]
    script = next((each for each in args if _is_script(os.path.join(workdir, each))), None)
    if script is not None:
        paths += _of_script(os.path.abspath(os.path.join(workdir, script)))
    shown = dict.fromkeys(path for path in paths if not is_below(home, path))
    # What lies in another one is shown with it. A link among them could not be covered.
    return tuple(
        path
        for path in shown
        if not any(path != folder and is_below(path, folder) for folder in shown)
    )


def _of_program(path: str, touchable: tuple[str, ...]) -> Iterator[str]:
    """Each name of it, from link to link, with the installation that it is in."""
    for name in _names(path, touchable):
        yield name
        root = os.path.dirname(os.path.dirname(name))
        if os.path.isfile(os.path.join(root, VENV)):
            yield root
            if not is_touchable(os.path.realpath(root), touchable):
                yield from _installed(_made_from(os.path.join(root, VENV)))
        else:
            yield from _installed(os.path.dirname(name))
        yield from _modules(name)


def _installed(programs: str) -> Iterator[str]:
    """The installation whose programs lie in this folder."""
    if os.path.basename(programs) == "bin":
        folders = (os.path.join(os.path.dirname(programs), each) for each in INSTALLED)
        yield from filter(os.path.isdir, folders)


def _made_from(config: str) -> str:
    """Where the interpreter of a virtual environment comes from: it may be a copy, and no link
    leads there. Empty if it is not said."""
    try:
        with open(config, encoding="utf-8", errors="replace") as file:
            said = [line.partition("=") for line in file]
    except OSError:
        return ""
    homes = (value.strip() for key, _, value in said if key.strip() == "home")
    return next(homes, "").rstrip("/")


def _names(path: str, touchable: tuple[str, ...]) -> Iterator[str]:
    for _ in range(40):
        yield os.path.normpath(path)
        if not os.path.islink(path):
            break
        if is_touchable(os.path.realpath(os.path.dirname(path)), touchable):
            return
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    yield os.path.realpath(path)


def _of_script(path: str) -> Iterator[str]:
    yield path
    yield os.path.dirname(path)
    yield from _modules(path)
    for folder in _above(path):
        if os.path.isfile(os.path.join(folder, PACKAGE)):
            yield folder
            break


def _modules(path: str) -> Iterator[str]:
    """The outermost folder of modules that the path lies in."""
    before, mark, _ = path.partition(f"/{MODULES}/")
    if mark:
        yield f"{before}/{MODULES}"


def _above(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _is_script(path: str) -> bool:
    return path.endswith(SCRIPTS) and os.path.isfile(path)
