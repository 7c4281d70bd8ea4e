"""`send_file`: a file of the agent's, for the person.

A copy is taken, which does not change: what was meant is what is sent, however long that takes. The
result and delivery are one transaction, so a crash sends it once or has it copied again.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from koboshi.domain.files import SENT, OutFile, Parcel, safe_name, size_words
from koboshi.domain.ids import ChannelName
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.model import ToolSpec
from koboshi.ports.tool import ToolAnswer, ToolContext, ToolFailed
from koboshi.tools.declared import complaint_about, decode_arguments, result_text, schema_of
from koboshi.tools.files.arguments import PathText, refuse_nul
from koboshi.tools.files.beside import Beside
from koboshi.tools.files.places import FilePlaces, PathRefused
from koboshi.tools.files.spaces import PlacesOf

CAPTION_CHARS_MAX = 1_000
PIECE_BYTES = 1 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SendArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: PathText
    caption: Annotated[
        str, Meta(max_length=CAPTION_CHARS_MAX, description="A few words about it.")
    ] = ""

    def __post_init__(self) -> None:
        refuse_nul(path=self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendFileTool:
    places_of: PlacesOf
    beside: Beside
    home: Path
    bytes_max: int
    takes_files: Callable[[ChannelName], bool] = lambda _: True
    """Whether people can be sent files on a channel."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name="send_file",
            description=(
                "Send a file to the person you work for, in this conversation. Paths as for "
                "read_file. Your words at the end of the turn are sent by themselves: this is for "
                "files only."
            ),
            parameters=schema_of(SendArguments),
            sends_files=True,
        )

    def effect_of(self, arguments: str) -> Effect:  # noqa: ARG002  (copied again, sent once)
        return Effect.REPEATABLE

    def need_of(self, arguments: str) -> Need:  # noqa: ARG002
        return Need.NOBODY

    def complaint_about(self, arguments: str) -> str | None:
        return complaint_about(SendArguments, arguments)

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        raise RuntimeError(f"no person is asked about {arguments}")

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        try:
            asked = decode_arguments(SendArguments, arguments)
        except ValueError as error:
            raise ToolFailed(str(error)) from None
        if not self.takes_files(context.route.channel):
            raise ToolFailed("files cannot be sent in this conversation; say it in words")
        owner = f"{context.claim.turn_id}-{context.call_id}"
        file = await self.beside.change(
            lambda: self._copy(self.places_of(context), asked.path, owner)
        )
        words = "it is sent as soon as the platform takes it"
        return ToolAnswer(
            text=result_text("queued", name=file.name, bytes=file.size, note=words),
            parcel=Parcel(file=file, caption=asked.caption),
        )

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        return await self.run(arguments, context)

    def _copy(self, places: FilePlaces, path: str, owner: str) -> OutFile:
        real = places.resolve(path)
        name = os.path.basename(real)
        kept = Path(SENT) / f"{owner}-{safe_name(name, 'file')}"
        (self.home / SENT).mkdir(mode=0o700, exist_ok=True)
        descriptor = places.opened(real)
        with os.fdopen(descriptor, "rb") as source:
            size = os.fstat(descriptor).st_size
            if not 0 < size <= self.bytes_max:
                allowed = f"1 byte to {size_words(self.bytes_max)}"
                raise PathRefused(f"{path} has {size_words(size)}; {allowed} can be sent")
            part = self.home / f"{kept}.part"
            part.unlink(missing_ok=True)
            with os.fdopen(os.open(part, _NEW, 0o600), "wb") as copy:
                while piece := source.read(PIECE_BYTES):
                    copy.write(piece)
                copy.flush()
                os.fsync(copy.fileno())
            part.rename(self.home / kept)
        return OutFile(path=str(kept), name=safe_name(name, "file"), size=size)
