"""`write_file` and `edit_file`. A file is changed as a whole or not at all, and what is reported as
written is on the disk."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Annotated

from msgspec import Meta, Struct

from koboshi.domain.approval import Approval
from koboshi.domain.text import visible
from koboshi.domain.transcript import Effect, Need
from koboshi.ports.tool import ToolContext
from koboshi.tools.asking import Asking, approval_of_file
from koboshi.tools.danger import is_run_by_itself
from koboshi.tools.declared import DeclaredTool, result_text
from koboshi.tools.files.arguments import PathText, refuse_nul
from koboshi.tools.files.beside import Beside
from koboshi.tools.files.edits import Already, Edited, Impossible, plan_edit
from koboshi.tools.files.places import (
    FilePlaces,
    Folder,
    PathRefused,
    PathStanding,
    sync_folder,
    temporary_name,
)
from koboshi.tools.files.spaces import PlacesOf

CONTENT_CHARS_MAX = 200_000
EDITED_BYTES_MAX = 2_000_000


class WriteArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: PathText
    content: Annotated[
        str, Meta(max_length=CONTENT_CHARS_MAX, description="The whole new content.")
    ]

    def __post_init__(self) -> None:
        refuse_nul(path=self.path)


class EditArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: PathText
    old: Annotated[
        str,
        Meta(min_length=1, max_length=CONTENT_CHARS_MAX, description="The exact text to replace."),
    ]
    new: Annotated[str, Meta(max_length=CONTENT_CHARS_MAX, description="What comes in its place.")]
    replace_all: Annotated[bool, Meta(description="Wherever it is, not exactly once.")] = False

    def __post_init__(self) -> None:
        refuse_nul(path=self.path)
        if self.old == self.new:
            raise ValueError("`old` and `new` are the same")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes files below the working folder."""

    places_of: PlacesOf
    on_host: FilePlaces
    """For the question: inside a boundary, none is asked."""
    asking: Asking = field(default_factory=Asking)
    """Before which changes a person is asked."""
    _one_at_a_time: Lock = field(default_factory=Lock)
    """Calls run side by side: of two edits of one file, neither may get lost."""

    def write(self, asked: WriteArguments, context: ToolContext) -> str:
        """Make it the content of the file. Raises PathRefused."""
        content = asked.content.encode("utf-8")
        places = self.places_of(context)
        named = visible(places.named(places.resolve(asked.path)))

        def replace(found: bytes | None) -> tuple[bytes, str]:
            status = "unchanged" if found == content else "written"
            fields = {"bytes": len(content), "is_new": found is None}
            return content, result_text(status, path=named, **fields)

        return self._change(
            places, asked.path, replace, temporary_of(context), bytes_max=len(content), makes=True
        )

    def edit(self, asked: EditArguments, context: ToolContext) -> str:
        """Replace a text in the file. Raises PathRefused."""
        places = self.places_of(context)
        named = visible(places.named(places.resolve(asked.path)))

        def replace(found: bytes | None) -> tuple[bytes, str]:
            if found is None:
                raise PathRefused(f"{named} does not exist; use `write_file` to make it")
            if len(found) > EDITED_BYTES_MAX:
                raise PathRefused(
                    f"{named} is too large to edit: more than {EDITED_BYTES_MAX} bytes"
                )
            try:
                text = found.decode("utf-8")
            except UnicodeDecodeError:
                raise PathRefused(f"{named} is not a text in UTF-8") from None
            plan = plan_edit(text, asked.old, asked.new, is_everywhere=asked.replace_all)
            match plan:
                case Edited():
                    words = result_text("edited", path=named, replaced=plan.count, line=plan.line)
                    return plan.text.encode("utf-8"), words
                case Already():
                    note = "nothing was changed: `new` is there, and `old` is not, or only in it"
                    words = result_text("already_applied", path=named, line=plan.line, note=note)
                    return found, words
                case Impossible():
                    raise PathRefused(f"{named} was not changed: {plan.because}")

        return self._change(
            places, asked.path, replace, temporary_of(context), bytes_max=EDITED_BYTES_MAX
        )

    def approval_of_write(self, asked: WriteArguments) -> Approval | None:
        return self._approval(asked.path, asked.content)

    def approval_of_edit(self, asked: EditArguments) -> Approval | None:
        everywhere = "wherever it stands" if asked.replace_all else "once"
        change = f"{asked.old}\n\n→ becomes, {everywhere}:\n\n{asked.new}"
        return self._approval(asked.path, change)

    def _approval(self, path: str, change: str) -> Approval | None:
        """What a person is asked before a file is changed; None for most files."""
        if self.asking.need_of_executed_file() is Need.NOBODY:
            return None
        try:
            real = self.on_host.resolve(path)
        except PathRefused:
            return None  # it will not be changed
        named = self.on_host.named(real)
        is_executed = is_run_by_itself(named) or is_run_by_itself(path)
        return approval_of_file(self.asking, real, change) if is_executed else None

    def _change(
        self,
        places: FilePlaces,
        path: str,
        replace: Callable[[bytes | None], tuple[bytes, str]],
        temporary: str,
        *,
        bytes_max: int,
        makes: bool = False,
    ) -> str:
        real = places.resolve(path)
        places.refuse_by_name(real)
        parent, name = os.path.split(real)
        with self._one_at_a_time, places.entered(parent, makes=makes) as folder:
            is_ours = folder.standing is PathStanding.WORKDIR and places.may_change(real)
            if not is_ours or not name:
                raise PathRefused(
                    f"{places.named(real)} is outside the working folder: it can be read, and "
                    "not be changed"
                )
            found = places.stat_in(folder, name)
            if found is not None and not found.st_mode & 0o222:
                raise PathRefused(f"{places.named(real)} is write-protected")
            before = None if found is None else self._content(places, folder, name, bytes_max + 1)
            after, words = replace(before)
            with places.in_words(real):
                if after != before:
                    _replace_file(folder, name, after, found, temporary)
                # Even if nothing was to do: a life that died may have got this far.
                sync_folder(folder.descriptor)
        return words

    def _content(self, places: FilePlaces, folder: Folder, name: str, at_most: int) -> bytes:
        descriptor = places.opened_in(folder, name)
        with os.fdopen(descriptor, "rb") as file, places.in_words(f"{folder.path}/{name}"):
            return file.read(at_most)


def write_tool(changes: Changes, beside: Beside) -> DeclaredTool[WriteArguments]:
    async def write(asked: WriteArguments, context: ToolContext) -> str:
        return await beside.change(partial(changes.write, asked, context))

    return DeclaredTool(
        name="write_file",
        description=(
            "Write a whole text file below the working folder; folders are made as needed. A file "
            "that has this content already is `unchanged`."
        ),
        takes=WriteArguments,
        does=write,
        effect=Effect.REPEATABLE,
        approves=changes.approval_of_write,
    )


def edit_tool(changes: Changes, beside: Beside) -> DeclaredTool[EditArguments]:
    async def edit(asked: EditArguments, context: ToolContext) -> str:
        return await beside.change(partial(changes.edit, asked, context))

    return DeclaredTool(
        name="edit_file",
        description=(
            "Replace a text in a file below the working folder. `old` must be there exactly once, "
            "with its spaces and line ends. Where `new` stands already it is `already_applied`."
        ),
        takes=EditArguments,
        does=edit,
        effect=Effect.REPEATABLE,
        approves=changes.approval_of_edit,
    )


def temporary_of(context: ToolContext) -> str:
    """The name of the file that becomes the new one. The same call has the same one again after a
    crash, and so clears up after itself."""
    return temporary_name(f"{context.claim.turn_id}-{context.call_id}")


def _replace_file(
    folder: Folder, name: str, content: bytes, before: os.stat_result | None, temporary: str
) -> None:
    """Write beside the file, and let it take its place when it is whole and on the disk."""
    at = folder.descriptor
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=at)
    try:
        with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=at), "wb") as file:
            if before is not None:
                # Its owner stays the same: only root can do that.
                with suppress(PermissionError):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode) & 0o777)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, name, src_dir_fd=at, dst_dir_fd=at)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=at)
        raise
