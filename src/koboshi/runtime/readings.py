"""The content of received files: taken before the agent is asked, once for each file.

What a file says, or why that cannot be had, becomes one note in the transcript. The note is the
fact: a turn that goes on after a crash reads what has no note yet and nothing else, and a file that
breaks its parser is not tried at every boot. The file itself stays where it is.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path, PurePosixPath

import structlog
from anyio import to_thread

from koboshi.domain import notes
from koboshi.domain.files import Attachment
from koboshi.domain.ids import EntryId
from koboshi.domain.media import HEAD_BYTES, MediaKind, cause_of, media_kind
from koboshi.domain.text import plain
from koboshi.domain.transcript import Message, Note
from koboshi.domain.turn import Claim
from koboshi.ports.parsers import NotParsed, ParserKind, Parsers
from koboshi.ports.store import Loaded, Store
from koboshi.ports.transcriber import NotTranscribed
from koboshi.runtime.dictation import Dictation
from koboshi.runtime.intake import storable
from koboshi.runtime.picture_shelf import PictureShelf

log = structlog.get_logger()

BYTES_MAX = {
    MediaKind.PICTURE: 30_000_000,
    MediaKind.VOICE: 25_000_000,
    MediaKind.DOCUMENT: 50_000_000,
}
CHARS_MAX = 40_000
SIDE_MAX = 1_568
"""Providers scale down what is larger, and count it in full."""
NO_TRANSCRIBER = "no service that writes down speech is configured ([voice] in the configuration)"
_ABOUT_FILES = frozenset({"file", *MediaKind})
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Unreadable(Exception):
    """Why a file gives nothing, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    store: Store
    parsers: Parsers
    dictation: Dictation | None
    """What writes down speech; None: nothing is configured."""
    shelf: PictureShelf
    workdir: Path
    sees_pictures: bool

    async def take(self, claim: Claim, loaded: Loaded) -> Loaded:
        """Read what the turn's files say. Returns the turn with these notes. Raises OverBudget if a
        recording may not be written down today."""
        told = {step.body.cause for step in loaded.steps if isinstance(step.body, Note)}
        known = {_place_in(cause) for cause in told}
        for message in [step.body for step in loaded.steps if isinstance(step.body, Message)]:
            for place, attachment in enumerate(message.files):
                if f"{message.entry_id}:{place}" in known:
                    continue
                root = self.workdir / loaded.standing.folder
                note = await self._note(claim, root, message.entry_id, place, attachment)
                if note is not None:
                    steps = await self.store.turns.note(claim, note)
                    loaded = replace(loaded, steps=(*loaded.steps, *steps))
        return loaded

    async def _note(
        self, claim: Claim, root: Path, entry_id: EntryId, place: int, attachment: Attachment
    ) -> Note | None:
        """What is to be told of a file; None if it is not one that is read."""
        head = await to_thread.run_sync(read_inside, root, attachment.path, HEAD_BYTES)
        kind = None if head is None else media_kind(attachment, head)
        if kind is None:
            return None
        cause = cause_of(kind, entry_id, place)
        try:
            return await self._told(claim, kind, cause, root, attachment)
        except (_Unreadable, NotParsed, NotTranscribed) as error:
            log.info("file_not_read", path=attachment.path, why=str(error))
            return Note(
                cause=cause, text=storable(notes.file_not_read(attachment.path, str(error)))
            )

    async def _told(
        self, claim: Claim, kind: MediaKind, cause: str, root: Path, attachment: Attachment
    ) -> Note:
        path = attachment.path
        if kind is MediaKind.PICTURE and not self.sees_pictures:
            return Note(cause=cause, text=notes.picture_unseen(path))
        content = await _content(root, path, BYTES_MAX[kind])
        match kind:
            case MediaKind.PICTURE:
                return await self._picture(cause, path, content)
            case MediaKind.VOICE:
                return await self._transcribed(claim, cause, path, content)
            case MediaKind.DOCUMENT:
                options = {"chars_max": CHARS_MAX}
                said = _object(await self.parsers.parse(ParserKind.DOCUMENT, content, options))
                text, is_cut = plain(str(said.get("text", ""))).strip(), bool(said.get("is_cut"))
                if not text:
                    raise _Unreadable("no text was found in it; it may hold pictures of text")
                told = notes.document_text(path, text, is_cut=is_cut)
                return Note(cause=cause, text=storable(told))

    async def _picture(self, cause: str, path: str, content: bytes) -> Note:
        said = await self.parsers.parse(ParserKind.PICTURE, content, {"side_max": SIDE_MAX})
        head, _, picture = said.partition(b"\n")
        size = _object(head)
        _, entry_id, place = cause.split(":")
        digest = await self.shelf.put(f"{entry_id}-{place}", picture)
        words = notes.picture_shown(path, f"{size.get('width')}×{size.get('height')}")
        return Note(cause=f"{cause}:{digest}", text=words)

    async def _transcribed(self, claim: Claim, cause: str, path: str, content: bytes) -> Note:
        if self.dictation is None:
            raise _Unreadable(NO_TRANSCRIBER)
        heard = await self.dictation.written(claim, PurePosixPath(path).name, content)
        words = plain(heard.words[:CHARS_MAX])
        if words.strip():
            text = notes.voice_words(path, words)
        else:
            text = notes.file_not_read(path, "no words were heard in it")
        return Note(
            cause=cause,
            text=storable(text),
            model=self.dictation.model,
            tokens_in=heard.tokens,
            seconds=ceil(heard.seconds or 0),
        )


def _place_in(cause: str) -> str:
    """Which file a note speaks of, as `12:0`: what it says, or why it was not fetched."""
    kind, *rest = cause.split(":")
    return ":".join(rest[:2]) if kind in _ABOUT_FILES else ""


async def _content(root: Path, path: str, bytes_max: int) -> bytes:
    content = await to_thread.run_sync(read_inside, root, path, bytes_max + 1)
    if content is None:
        raise _Unreadable("it is gone")
    if len(content) > bytes_max:
        raise _Unreadable(f"it has more than {bytes_max // 1_000_000} MB")
    return content


def _object(said: bytes) -> dict[str, object]:
    try:
        found = json.loads(said)
    except ValueError:
        raise _Unreadable("its parser gave nonsense") from None
    if not isinstance(found, dict):
        raise _Unreadable("its parser gave nonsense")
    return found


def read_inside(root: Path, path: str, bytes_max: int) -> bytes | None:
    """The beginning of a file below a folder; None if it is no plain file there. No link is
    followed: programs of the agent may write in the folder."""
    *folders, name = PurePosixPath(path).parts
    try:
        with _entered(root, folders) as folder:
            descriptor = os.open(name, _FILE, dir_fd=folder)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                return None
            with os.fdopen(descriptor, "rb") as file:
                return file.read(bytes_max)
    except OSError:
        return None


@contextmanager
def _entered(root: Path, folders: list[str]) -> Iterator[int]:
    descriptor = os.open(root, _FOLDER)
    try:
        for name in folders:
            deeper = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)
