"""`search_files`. The search itself is a program of its own, see `seek`."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
from anyio import move_on_after, run_process
from msgspec import Meta, Struct

import koboshi
from koboshi.domain.text import visible
from koboshi.domain.transcript import Effect
from koboshi.ports.tool import ToolContext, ToolFailed
from koboshi.tools.declared import DeclaredTool, result_text
from koboshi.tools.files.arguments import PathText, refuse_nul
from koboshi.tools.files.beside import Beside
from koboshi.tools.files.places import FilePlaces
from koboshi.tools.files.seek import Outcome, Search
from koboshi.tools.files.spaces import PlacesOf

SECONDS_MAX = 10.0
MORE_SECONDS = 10.0
"""For the program to begin, and to end by itself."""
MATCHES_DEFAULT = 100
MATCHES_MAX = 500

ROOT = str(Path(koboshi.__file__).resolve().parent.parent)
NEEDED_VARIABLES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""What the loader may need to find the libraries of the interpreter. Nothing else is passed on."""
PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from koboshi.tools.files import seek; seek.main()"
)


class SearchArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pattern: Annotated[
        str,
        Meta(min_length=1, max_length=1_000, description="A Python regular expression, for lines."),
    ]
    path: PathText = "."
    glob: Annotated[
        str, Meta(max_length=500, description="Only in files like `*.py` or `src/**/test_*`.")
    ] = ""
    literal: Annotated[bool, Meta(description="Take the pattern as it is.")] = False
    ignore_case: bool = False
    limit: Annotated[int, Meta(ge=1, le=MATCHES_MAX, description="How many matches at most.")] = (
        MATCHES_DEFAULT
    )

    def __post_init__(self) -> None:
        refuse_nul(path=self.path, glob=self.glob)


def search_tool(
    places_of: PlacesOf, beside: Beside, *, seconds: float = SECONDS_MAX
) -> DeclaredTool[SearchArguments]:
    async def search(asked: SearchArguments, context: ToolContext) -> str:
        places, start = await beside.look(lambda: _resolved(places_of(context), asked.path))
        outcome = await _outcome_of(
            Search(
                workdir=places.workdir,
                home=places.home,
                secrets=places.secrets,
                view=places.view,
                start=start,
                pattern=asked.pattern,
                glob=asked.glob,
                is_literal=asked.literal,
                ignores_case=asked.ignore_case,
                matches_max=asked.limit,
                seconds=seconds,
            )
        )
        if outcome.error:
            raise ToolFailed(outcome.error)
        return _told(outcome, visible(places.named(start)))

    return DeclaredTool(
        name="search_files",
        description=(
            "Search the lines of text files for a regular expression, in a folder and all below, "
            "except in .git, node_modules and the like. Paths as for read_file."
        ),
        takes=SearchArguments,
        does=search,
        effect=Effect.NONE,
    )


def _resolved(places: FilePlaces, path: str) -> tuple[FilePlaces, str]:
    return places, places.resolve(path)


async def _outcome_of(search: Search) -> Outcome:
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", PROGRAM, ROOT]
    environment = {name: os.environ[name] for name in NEEDED_VARIABLES if name in os.environ}
    with move_on_after(search.seconds + MORE_SECONDS):
        done = await run_process(
            command,
            input=msgspec.json.encode(search),
            check=False,
            env=environment,
            cwd="/",
        )
        if done.returncode == 0:
            return msgspec.convert(json.loads(done.stdout), Outcome)
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
        raise ToolFailed(f"the search ended with code {done.returncode}: {said[-1][:500]}")
    raise ToolFailed("the search did not end in time and was stopped")


def _told(outcome: Outcome, start: str) -> str:
    fields: dict[str, object] = {
        "path": start,
        "files_searched": outcome.files,
        "matches": [
            {"path": visible(path), "line": number, "text": visible(text)}
            for path, number, text in outcome.matches
        ],
    }
    if outcome.unreadable:
        fields["not_readable"] = outcome.unreadable
    if outcome.cut_short:
        fields["cut_short"] = outcome.cut_short
    return result_text("ok" if outcome.matches else "no_match", **fields)
