"""The program behind `search_files`: one search, within bounds of its own. Standard library only.

A regular expression can take for ever on a short line, and nothing in the same process could go on
meanwhile. So it is searched for in a process that ends itself: an alarm
interrupts the matching, and the kernel ends what does not hear it.
"""

import json
import os
import re
import resource
import signal
import sys
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any, NoReturn

from koboshi.boundary.view import Access, Place, View
from koboshi.domain.sandbox import Boundary
from koboshi.tools.files.globs import fits
from koboshi.tools.files.lines import FileLine, Lines, is_binary
from koboshi.tools.files.places import FilePlaces, Folder, PathRefused
from koboshi.tools.files.walk import FileKind, FolderEntry, Walk

ENTRIES_MAX = 100_000
DEPTH_MAX = 50
FILE_BYTES_MAX = 20_000_000
TOTAL_BYTES_MAX = 500_000_000
LINE_BYTES_MAX = 10_000
SHOWN_CHARS_MAX = 300
CPU_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    workdir: str
    home: str
    secrets: tuple[str, ...]
    view: View | None
    start: str
    """A true path: a folder or a file."""
    pattern: str
    glob: str
    is_literal: bool
    ignores_case: bool
    matches_max: int
    seconds: float


@dataclass(slots=True, kw_only=True)
class Outcome:
    matches: list[tuple[str, int, str]] = field(default_factory=list)
    """Path, line number and line."""
    files: int = 0
    unreadable: int = 0
    cut_short: str = ""
    """Why it did not look at everything."""
    error: str = ""


class _Enough(Exception):
    """The search ends here, for the reason."""


def main() -> None:
    """Read a search from the input, and print its outcome."""
    # If the alarm should not be heard, for whatever reason.
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS_MAX, CPU_SECONDS_MAX))
    outcome = seek(search_in(json.load(sys.stdin)))
    json.dump(asdict(outcome), sys.stdout)


def search_in(said: dict[str, Any]) -> Search:
    """The search as the gateway wrote it."""
    view = said.pop("view")
    return Search(**said, view=None if view is None else view_in(view))


def view_in(said: dict[str, Any]) -> View:
    places = tuple(
        Place(inside=each["inside"], outside=each["outside"], access=Access(each["access"]))
        for each in said.pop("places")
    )
    return View(
        boundary=Boundary(said["boundary"]),
        places=places,
        links=tuple((path, target) for path, target in said["links"]),
        home=said["home"],
        tmp=said["tmp"],
    )


def seek(search: Search) -> Outcome:
    """What is found, as far as it is found in time. Takes the process's alarm."""
    outcome = Outcome()
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, search.seconds)
    try:
        try:
            _Seeking(search, outcome).go()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _Enough as enough:
        outcome.cut_short = str(enough)
    except (re.error, OverflowError, RecursionError) as error:
        outcome.error = f"`pattern` is not a regular expression: {error}"
    except PathRefused as refused:
        outcome.error = str(refused)
    return outcome


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _Enough("the time was up: look in fewer files, or for something simpler")


class _Seeking:
    def __init__(self, search: Search, outcome: Outcome) -> None:
        text = re.escape(search.pattern) if search.is_literal else search.pattern
        self._expression = re.compile(text, re.IGNORECASE if search.ignores_case else 0)
        self._search = search
        self._outcome = outcome
        self._places = FilePlaces(
            workdir=search.workdir,
            home=search.home,
            secrets=tuple(search.secrets),
            view=search.view,
        )
        self._bytes_left = TOTAL_BYTES_MAX

    def go(self) -> None:
        start = self._search.start
        if not self._places.is_folder(start):
            self._look_into(self._places.opened(start), os.path.basename(start))
            return
        walk = Walk(places=self._places, start=start, depth_max=DEPTH_MAX, entries_max=ENTRIES_MAX)
        for folder, entries in walk.folders():
            for entry in entries:
                if entry.kind is FileKind.FILE and fits(self._search.glob or "*", entry.path):
                    self._try(folder, entry)
            self._outcome.unreadable += walk.unreadable
            walk.unreadable = 0
        if walk.is_cut_short:
            raise _Enough("there are too many files: look in fewer folders")

    def _try(self, folder: Folder, entry: FolderEntry) -> None:
        try:
            self._look_into(self._places.opened_in(folder, entry.name), entry.path)
        except (PathRefused, OSError):
            self._outcome.unreadable += 1

    def _look_into(self, descriptor: int, path: str) -> None:
        with os.fdopen(descriptor, "rb") as file:
            if is_binary(file):
                return
            self._outcome.files += 1
            at_most = min(FILE_BYTES_MAX, self._bytes_left)
            lines = Lines(file, line_bytes_max=LINE_BYTES_MAX, bytes_max=at_most)
            for line in lines:
                self._look_at(line, path)
            self._bytes_left -= at_most - lines.bytes_left
        if self._bytes_left <= 0:
            raise _Enough("there is too much to read: look in fewer files")

    def _look_at(self, line: FileLine, path: str) -> None:
        text = line.content.decode("utf-8", "replace")
        found = self._expression.search(text)
        if found is None:
            return
        if len(self._outcome.matches) >= self._search.matches_max:
            raise _Enough("there are more matches")
        # What was found is shown, wherever in a long line it is.
        begin = max(0, min(found.start() - 50, len(text) - SHOWN_CHARS_MAX))
        self._outcome.matches.append((path, line.number, text[begin : begin + SHOWN_CHARS_MAX]))
