"""Which koboshi is on the disk, while this one runs.

An upgrade replaces our files under a gateway that goes on with the code it has loaded. What is
imported late would then come from another version. It is refused; all else goes on as it was, and
people are told to restart. A look costs one `stat`.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import structlog

import koboshi
from koboshi.clock import SystemClock
from koboshi.domain.errors import CodeChanged

log = structlog.get_logger()

PACKAGE = "koboshi"
UNKNOWN = "unknown"
_VERSION = re.compile(r"^__version__ = \"([^\"\n]{1,40})\"$", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class Installed:
    """The code that runs, and whether it is still what is installed."""

    running: str
    """The version of the code that runs."""
    file: Path
    """The file that holds the version; every installation replaces it."""
    begun_s: float
    """When the code that runs was loaded."""
    _knows_time: bool = field(default=True, init=False)
    _seen: tuple[int, int, int] | None = field(default=None, init=False)
    _found: str | None = field(default=None, init=False)
    """The version that is installed, once another one is."""
    _words: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._seen = _identity(self.file)
        # A machine may begin with a clock that is years behind: then times of files tell nothing.
        self._knows_time = _written_s(self.file) <= self.begun_s

    def look(self) -> str | None:
        """Why a restart is wanted, in words; None if what runs is what is installed."""
        seen = _identity(self.file)
        if seen != self._seen:
            self._seen = seen
            found = _version_in(self.file)
            self._found = None if found == self.running else found
            self._notice(found)
        return self._words

    def refuse_mixture(self, module: str, folders: Sequence[str]) -> None:
        """Raises CodeChanged if the module on the disk belongs to other code than that which runs:
        its version is another, or its file was written after our start."""
        self.look()
        if self._found is None:
            if not (self._knows_time and self._is_rewritten(module, folders)):
                return
            self._notice(self.running)
        raise CodeChanged(f"{module} is not loaded: {self._words}")

    def _is_rewritten(self, module: str, folders: Sequence[str]) -> bool:
        """Whether the file of the module was written after our start."""
        name = module.rpartition(".")[2]
        files = [
            Path(each, end) for each in folders for end in (f"{name}.py", f"{name}/__init__.py")
        ]
        return any(_written_s(file) > self.begun_s for file in files)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """While the block lasts, nothing of ours is imported from other code than what runs."""
        guard = _Guard(self)
        sys.meta_path.insert(0, guard)
        try:
            yield
        finally:
            sys.meta_path.remove(guard)

    def _notice(self, found: str) -> None:
        words = f"koboshi {self.running} runs, and {found} is installed"
        if found == self.running:
            words = f"koboshi {self.running} runs, and its files have changed since it was started"
        if words != self._words:
            self._words = words
            log.warning("code_changed", running=self.running, installed=found)


class _Guard(MetaPathFinder):
    """Asked before all other finders; finds nothing itself."""

    def __init__(self, installed: Installed) -> None:
        self._installed = installed

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002  (the contract's)
    ) -> ModuleSpec | None:
        if fullname.startswith(f"{PACKAGE}."):
            self._installed.refuse_mixture(fullname, path or ())
        return None


def _identity(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _written_s(file: Path) -> float:
    try:
        return os.stat(file).st_mtime
    except OSError:
        return 0.0


def _version_in(file: Path) -> str:
    try:
        found = _VERSION.search(file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return UNKNOWN
    return found[1] if found else UNKNOWN


INSTALLED = Installed(
    running=koboshi.__version__, file=Path(koboshi.__file__), begun_s=SystemClock().now_ms() / 1000
)
"""Of this process: there is one of it, as there is one code that it has loaded."""
