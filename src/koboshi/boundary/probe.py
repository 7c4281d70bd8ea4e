"""Which boundary holds on this machine, by trying it.

Each is tried by really starting a program under it, with the same rules as a command. A boundary
that is installed and cannot be used (a container that forbids namespaces, an old kernel) is found
so.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from threading import Thread

from koboshi.boundary import bubblewrap, rules, system
from koboshi.boundary.view import View
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.runner import landlock

PROBE_SECONDS = 10.0
REASON_CHARS_MAX = 300
TRIED = ("/bin/sh", "-c", ":")

REMEDY = (
    "install bubblewrap (Debian, Ubuntu: apt install bubblewrap), or write "
    '[tools] sandbox = "host" '
    "to let the agent do everything that the gateway's own user may"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What was found. A reason is empty for a boundary that holds."""

    bubblewrap: str
    landlock: str

    @property
    def best(self) -> Boundary:
        if not self.bubblewrap:
            return Boundary.BUBBLEWRAP
        return Boundary.NONE if self.landlock else Boundary.LANDLOCK

    def chosen_for(self, sandbox: Sandbox) -> Boundary:
        """What holds in the mode; NONE for `host`, and where nothing does."""
        found = Boundary.NONE if sandbox is Sandbox.HOST else self.best
        is_cut_off = sandbox is not Sandbox.LOCKED or landlock.can_cut_off()
        return Boundary.NONE if found is Boundary.LANDLOCK and not is_cut_off else found

    def reasons_for(self, sandbox: Sandbox) -> str:
        """Why nothing holds in the mode."""
        if sandbox is Sandbox.LOCKED and not self.landlock:
            return (
                f"bubblewrap: {self.bubblewrap}; Landlock: the network cannot be taken away on "
                f"{os.uname().machine}"
            )
        return self.reasons

    @property
    def reasons(self) -> str:
        """Why those that do not hold do not."""
        found = {"bubblewrap": self.bubblewrap, "Landlock": self.landlock}
        return "; ".join(f"{name}: {reason}" for name, reason in found.items() if reason)


@cache
def probe() -> Probe:
    """Tried once in the life of this process."""
    if sys.platform != "linux":
        reason = f"needs Linux, and this is {sys.platform}"
        return Probe(bubblewrap=reason, landlock=reason)
    wrong = _in_thread(try_bubblewrap)
    return Probe(
        bubblewrap=wrong, landlock=_in_thread(try_landlock) if wrong else why_no_landlock()
    )


def try_bubblewrap() -> str:
    """Why it does not hold; empty if it does. Changes this thread for good."""
    program = shutil.which(bubblewrap.PROGRAM)
    if program is None:
        return "bwrap is not installed"
    landlock.leave_host()
    view = _view(Boundary.BUBBLEWRAP)
    return _trouble_of([*bubblewrap.arguments(view, program=program, workdir="/"), *TRIED])


def try_landlock() -> str:
    """Why it does not hold; empty if it does. Changes this thread for good."""
    if wrong := why_no_landlock():
        return wrong
    granted = [(path.encode(), rights) for path, rights in rules.grants(_view(Boundary.LANDLOCK))]
    landlock.restrict(granted, has_network=True)
    try:
        os.listdir("/")
    except PermissionError:
        return _trouble_of(TRIED)
    return "a folder that is not granted can be read"


def why_no_landlock() -> str:
    """What the kernel lacks; empty if it has everything."""
    found = landlock.version()
    if not found:
        return "the kernel has none, or it is switched off"
    if found < landlock.ABI_MIN:
        return f"the kernel has version {found}, and {landlock.ABI_MIN} is needed (Linux 6.2)"
    return ""


def _view(boundary: Boundary) -> View:
    is_mapped = boundary is Boundary.BUBBLEWRAP
    return View(
        boundary=boundary,
        places=system.places(boundary),
        links=system.links() if is_mapped else (),
        home="/",
        tmp="/tmp",
    )


def _trouble_of(command: "list[str] | tuple[str, ...]") -> str:
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:REASON_CHARS_MAX]
    if ended.returncode == 0:
        return ""
    said = ended.stderr.decode("utf-8", "replace").strip().removeprefix("bwrap: ")
    return said[:REASON_CHARS_MAX] or f"a program under it ended with {ended.returncode}"


def _in_thread(attempt: Callable[[], str]) -> str:
    """What an attempt returns, made in a thread of its own: it gives up rights for good."""
    found: list[str] = []

    def run() -> None:
        try:
            found.append(attempt())
        except OSError as error:
            said = str(error) if error.filename else error.strerror or str(error)
            found.append(said[:REASON_CHARS_MAX])

    thread = Thread(target=run, name="koboshi-probe")
    thread.start()
    thread.join()
    return found[0] if found else "the attempt failed"
