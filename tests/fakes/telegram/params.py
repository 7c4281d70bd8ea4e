"""The parameters of a request, however they came: JSON, a form, parts, or the query."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from tests.fakes.telegram.errors import bad_request

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that came as a part of the body."""

    name: str
    kind: str
    content: bytes


@dataclass(slots=True)
class Params:
    """Values as they came, read as what the method wants them to be."""

    values: JSON
    uploads: dict[str, Upload] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        value = self.values.get(name)
        return default if value is None else str(value)

    def integer(self, name: str, default: int = 0) -> int:
        value = self.values.get(name)
        if value is None or value == "":
            return default
        try:
            return int(value)
        except (TypeError, ValueError):
            bad_request(f"invalid {name.replace('_', ' ')} specified")

    def boolean(self, name: str) -> bool:
        value = self.values.get(name)
        return value is True or (isinstance(value, str) and value.lower() in {"true", "yes", "1"})

    def nested(self, name: str, what: str) -> Any:
        """A list or an object; in a form it is JSON in a string. None if it was not given."""
        value = self.values.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            return value
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            bad_request(f"can't parse {what} JSON object")

    def objects(self, name: str, what: str) -> list[JSON]:
        """A list of objects; an empty one if it was not given."""
        found = self.nested(name, what)
        if found is None:
            return []
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            bad_request(f"can't parse {what}: expected an Array of Objects")
        return found

    def upload(self, name: str) -> Upload | None:
        value = self.values.get(name)
        if isinstance(value, str) and value.startswith("attach://"):
            return self.uploads.get(value.removeprefix("attach://"))
        return self.uploads.get(name)


def params_of(query: str, kind: str, body: bytes) -> Params:
    """Read a request. Raises Refusal if the body is not what its content type says."""
    found: JSON = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
    if not body:
        return Params(found)
    if kind.startswith("application/json"):
        found.update(_object(body))
        return Params(found)
    if kind.startswith("multipart/form-data"):
        return _parts(kind, body, found)
    found.update(parse_qsl(_decoded(body), keep_blank_values=True))
    return Params(found)


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        bad_request("strings must be encoded in UTF-8")


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(body, type=JSON)
    except msgspec.DecodeError:
        bad_request("can't parse request JSON object")


def _parts(kind: str, body: bytes, found: JSON) -> Params:
    message = BytesParser(policy=HTTP).parsebytes(
        b"Content-Type: " + kind.encode("latin-1") + b"\r\n\r\n" + body
    )
    uploads: dict[str, Upload] = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        assert isinstance(name, str)
        assert isinstance(content, bytes)
        file_name = part.get_filename()
        if file_name is None:
            found[name] = _decoded(content)
        else:
            uploads[name] = Upload(name=file_name, kind=part.get_content_type(), content=content)
    return Params(found, uploads)
