"""What a received file is, and what becomes of it before the model is asked."""

from enum import StrEnum

from koboshi.domain.files import Attachment
from koboshi.domain.pictures import picture_type

HEAD_BYTES = 64
_OFFICE = (".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp")
_AUDIO = (".ogg", ".oga", ".opus", ".mp3", ".m4a", ".wav", ".webm", ".flac", ".aac", ".amr")
_ZIP = b"PK\x03\x04"


class MediaKind(StrEnum):
    """The value begins the cause of the one note about the file."""

    PICTURE = "picture"
    VOICE = "voice"
    DOCUMENT = "document"


def media_kind(attachment: Attachment, head: bytes) -> MediaKind | None:
    """What a file is by how it begins; its name only tells apart what begins alike. None if the
    model is told no more than where it is."""
    name = attachment.path.lower()
    if picture_type(head) is not None:
        return MediaKind.PICTURE
    if head.startswith(b"%PDF-") or (head.startswith(_ZIP) and name.endswith(_OFFICE)):
        return MediaKind.DOCUMENT
    is_said = attachment.kind == "voice" or attachment.kind.startswith("audio")
    return MediaKind.VOICE if is_said or name.endswith(_AUDIO) else None


def cause_of(kind: MediaKind, entry_id: int, place: int) -> str:
    """The cause of the note about the file at this place of a message."""
    return f"{kind}:{entry_id}:{place}"


def shelved(cause: str) -> tuple[str, str] | None:
    """The name and the hash of the scaled picture that a note with this cause shows; None if it
    shows none."""
    kind, *rest = cause.split(":")
    if kind != MediaKind.PICTURE or len(rest) != 3 or not all(rest):
        return None
    entry_id, place, digest = rest
    return f"{entry_id}-{place}", digest
