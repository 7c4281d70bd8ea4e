"""Files that people send along, and files that they are sent."""

import re
import unicodedata
from dataclasses import dataclass

RECEIVED = "received"
"""Where files of people are put, below the working folder."""

SENT = "files"
"""Where copies of files for people are kept, below the home."""

UPLOADED = "uploads"
"""Where files are kept that people send over the web, below the home."""

PICTURES = "pictures"
"""Where received pictures are kept as the model is shown them, below the home."""

NAME_BYTES_MAX = 120
"""File systems take 255, and something is put before it and behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that came with a message. The platform keeps it under `reference`; `path`, below the
    working folder, is where it is put before the agent works on the message."""

    reference: str
    path: str
    kind: str
    """What it is, in a word or as a media type."""
    size: int = 0
    """In bytes, as the platform said; 0 if it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutFile:
    """A file that a person is to get: a copy of ours, unchanged until it is sent."""

    path: str
    """Below the home."""
    name: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A file on its way to a person, with a few words."""

    file: OutFile
    caption: str


def attachment_words(attachment: Attachment) -> str:
    """A file as the model is told of it."""
    size = f", {size_words(attachment.size)}" if attachment.size else ""
    return f"[file: {attachment.path} ({attachment.kind}{size})]"


def size_words(size: int) -> str:
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1_000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def safe_name(name: str, fallback: str) -> str:
    """A name that is one plain file name everywhere, and still says what the file was called."""
    name = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    name = re.sub(r"[^\w.\- ]", "_", name).strip(". _-")
    name = re.sub(r"\s+", "_", name) or fallback
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending.encode()) > 12:
        return _cut(name, NAME_BYTES_MAX)
    return f"{_cut(stem, NAME_BYTES_MAX - len(ending.encode()) - 1)}.{ending}"


def _cut(name: str, bytes_max: int) -> str:
    return name.encode()[:bytes_max].decode(errors="ignore").rstrip(". _-")
