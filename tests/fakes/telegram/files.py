"""Files on the platform: what people and the bot attached, by file id and by path."""

import itertools
from dataclasses import dataclass

from tests.fakes.telegram.errors import bad_request
from tests.fakes.telegram.state import JSON

DOWNLOAD_BYTES_MAX = 20 * 1024 * 1024
FOLDERS = {"photo": "photos", "document": "documents", "voice": "voice", "sticker": "stickers"}
ENDINGS = {"photo": ".jpg", "voice": ".oga", "sticker": ".webp"}
KINDS = {"photo": "image/jpeg", "voice": "audio/ogg", "sticker": "image/webp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    file_id: str
    unique_id: str
    path: str
    name: str
    kind: str
    content: bytes

    def as_json(self) -> JSON:
        return {
            "file_id": self.file_id,
            "file_unique_id": self.unique_id,
            "file_size": len(self.content),
        }


class Files:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._by_id: dict[str, StoredFile] = {}
        self._by_path: dict[str, StoredFile] = {}

    def add(self, role: str, content: bytes, name: str = "", kind: str = "") -> StoredFile:
        number = next(self._numbers)
        ending = ENDINGS.get(role) or ("." + name.rpartition(".")[2] if "." in name else "")
        stored = StoredFile(
            file_id=f"BQACAgIAAxkBAAI{number:06d}{role}",
            unique_id=f"AgAD{number:06d}",
            path=f"{FOLDERS[role]}/file_{number}{ending}",
            name=name,
            kind=kind or KINDS.get(role, "application/octet-stream"),
            content=content,
        )
        self._by_id[stored.file_id] = stored
        self._by_path[stored.path] = stored
        return stored

    def with_id(self, file_id: str) -> StoredFile:
        stored = self._by_id.get(file_id)
        if stored is None:
            bad_request("wrong file_id or the file is temporarily unavailable")
        return stored

    def at(self, path: str) -> StoredFile | None:
        return self._by_path.get(path)

    def get(self, file_id: str) -> JSON:
        """What getFile answers."""
        stored = self.with_id(file_id)
        if len(stored.content) > DOWNLOAD_BYTES_MAX:
            bad_request("file is too big")
        return {**stored.as_json(), "file_path": stored.path}


def shown(role: str, stored: StoredFile) -> JSON:
    """The field of a message that tells of the file."""
    file = stored.as_json()
    match role:
        case "photo":
            small = {**file, "width": 90, "height": 60}
            return {"photo": [small, {**file, "width": 1280, "height": 853}]}
        case "voice":
            return {"voice": {**file, "duration": 3, "mime_type": stored.kind}}
        case "sticker":
            look = {"width": 512, "height": 512, "is_animated": False, "is_video": False}
            return {"sticker": {**file, **look, "type": "regular", "emoji": "👍"}}
        case _:
            named = {"file_name": stored.name, "mime_type": stored.kind}
            return {"document": {**file, **named}}
