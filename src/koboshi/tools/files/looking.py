"""`read_file` and `list_files`."""

import os
from typing import Annotated

from msgspec import Meta, Struct

from koboshi.domain.text import visible
from koboshi.domain.transcript import Effect
from koboshi.ports.tool import ToolContext
from koboshi.tools.declared import DeclaredTool, result_text
from koboshi.tools.files.arguments import PathText, refuse_nul
from koboshi.tools.files.beside import Beside
from koboshi.tools.files.globs import fits
from koboshi.tools.files.lines import FileLine, Lines, is_binary
from koboshi.tools.files.places import FilePlaces
from koboshi.tools.files.spaces import PlacesOf
from koboshi.tools.files.walk import FileKind, FolderEntry, Walk

LINES_DEFAULT = 500
LINES_MAX = 2_000
LINE_BYTES_MAX = 2_000
READ_CHARS_MAX = 60_000
SCANNED_BYTES_MAX = 100_000_000

LISTED_MAX = 1_000
SCANNED_ENTRIES_MAX = 20_000
DEPTH_MAX = 20


class ReadArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: PathText
    offset: Annotated[int, Meta(ge=1, description="The first line; 1 if left out.")] = 1
    limit: Annotated[int, Meta(ge=1, le=LINES_MAX, description="How many lines.")] = LINES_DEFAULT

    def __post_init__(self) -> None:
        refuse_nul(path=self.path)


class ListArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: PathText = "."
    pattern: Annotated[
        str, Meta(max_length=500, description="Only what fits, as `*.py` or `src/**/test_*`.")
    ] = ""
    depth: Annotated[
        int, Meta(ge=1, le=DEPTH_MAX, description="1: the folder alone; 2: and those in it; …")
    ] = 1

    def __post_init__(self) -> None:
        refuse_nul(path=self.path, pattern=self.pattern)


def read_tool(places_of: PlacesOf, beside: Beside) -> DeclaredTool[ReadArguments]:
    async def read(asked: ReadArguments, context: ToolContext) -> str:
        return await beside.look(lambda: read_lines(places_of(context), asked))

    return DeclaredTool(
        name="read_file",
        description=(
            "Read a text file, with line numbers. Paths are relative to the working folder; other "
            "files that commands see can be read, too. What cannot be seen is shown as <U+202E>."
        ),
        takes=ReadArguments,
        does=read,
        effect=Effect.NONE,
    )


def list_tool(places_of: PlacesOf, beside: Beside) -> DeclaredTool[ListArguments]:
    async def list_them(asked: ListArguments, context: ToolContext) -> str:
        return await beside.look(lambda: list_entries(places_of(context), asked))

    return DeclaredTool(
        name="list_files",
        description=(
            "List a folder: the names of folders end with a slash. With `depth`, also what is in "
            "them, except in .git, node_modules and the like. Paths as for read_file."
        ),
        takes=ListArguments,
        does=list_them,
        effect=Effect.NONE,
    )


def read_lines(places: FilePlaces, asked: ReadArguments) -> str:
    """The lines that were asked for. Raises PathRefused."""
    real = places.resolve(asked.path)
    named = visible(places.named(real))
    descriptor = places.opened(real)
    with os.fdopen(descriptor, "rb") as file, places.in_words(real):
        size = os.fstat(descriptor).st_size
        if is_binary(file):
            return result_text("binary", path=named, bytes=size, note="it is no text")
        lines = Lines(file, line_bytes_max=LINE_BYTES_MAX, bytes_max=SCANNED_BYTES_MAX)
        shown, total = _chosen(lines, asked)
        is_whole = lines.bytes_left > 0
    fields: dict[str, object] = {"path": named, "bytes": size}
    if is_whole:
        fields["total_lines"] = total
    if total > asked.offset + len(shown) - 1:
        fields["next_offset"] = asked.offset + len(shown)
    notes = [*_notes(shown), *([] if is_whole else [f"only {SCANNED_BYTES_MAX} bytes were read"])]
    if notes:
        fields["note"] = "; ".join(notes)
    return result_text(
        "ok", **fields, content="".join(f"{line}\n" for line in map(_numbered, shown))
    )


def list_entries(places: FilePlaces, asked: ListArguments) -> str:
    """What is in a folder. Raises PathRefused."""
    real = places.resolve(asked.path)
    walk = Walk(places=places, start=real, depth_max=asked.depth, entries_max=SCANNED_ENTRIES_MAX)
    listed: list[dict[str, object]] = []
    left_out = 0
    for _, entries in walk.folders():
        for entry in entries:
            if asked.pattern and not fits(asked.pattern, entry.path):
                continue
            if len(listed) < LISTED_MAX:
                listed.append(_listed(entry))
            else:
                left_out += 1
    fields: dict[str, object] = {"path": visible(places.named(real)), "entries": listed}
    if left_out or walk.is_cut_short:
        fields["left_out"] = f"{left_out} or more" if walk.is_cut_short else left_out
    if walk.unreadable:
        fields["folders_not_entered"] = walk.unreadable
    return result_text("ok", **fields)


def _chosen(lines: Lines, asked: ReadArguments) -> tuple[list[FileLine], int]:
    """The lines that were asked for, as far as they fit, and how many there are."""
    shown: list[FileLine] = []
    total = size = 0
    is_full = False
    for line in lines:
        total = line.number
        if line.number < asked.offset or is_full:
            continue
        size += len(line.content)
        is_full = len(shown) == asked.limit or (size > READ_CHARS_MAX and bool(shown))
        if not is_full:
            shown.append(line)
    return shown, total


def _numbered(line: FileLine) -> str:
    more = f" … {line.left_out} more bytes" if line.left_out else ""
    return f"{line.number}\t{visible(line.content.decode('utf-8', 'replace'))}{more}"


def _notes(shown: list[FileLine]) -> list[str]:
    notes = []
    if any(line.has_return for line in shown):
        notes.append("the lines end with a carriage return as well; edit_file takes care of that")
    if any(not _is_utf8(line) for line in shown):
        notes.append("it is not UTF-8: what cannot be read is shown as \ufffd")
    return notes


def _is_utf8(line: FileLine) -> bool:
    try:
        line.content.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character that was cut in two at the end of what is shown is none of its mistakes.
        return line.left_out > 0 and error.start >= len(line.content) - 3
    return True


def _listed(entry: FolderEntry) -> dict[str, object]:
    match entry.kind:
        case FileKind.FOLDER:
            return {"path": f"{visible(entry.path)}/"}
        case FileKind.FILE:
            return {"path": visible(entry.path), "bytes": entry.size}
        case FileKind.LINK | FileKind.OTHER:
            return {"path": visible(entry.path), "kind": entry.kind}
