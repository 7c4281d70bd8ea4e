"""The requests by which people send files along, and look at those that they have sent."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec
from anyio import fail_after, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as Path

from koboshi.channels.web.codec import (
    PostedFile,
    Unacceptable,
    Uploaded,
    attachments_of,
    check_name,
    too_large,
)
from koboshi.channels.web.limits import WebLimits
from koboshi.channels.web.sent import FileAnswer
from koboshi.channels.web.uploads import NoUpload, TooLarge, Uploads
from koboshi.domain.files import Attachment, safe_name
from koboshi.domain.ids import ChannelName

UPLOADS_PATH = "/api/v1/sessions/{chat}/uploads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploading:
    uploads: Uploads
    channel: ChannelName
    limits: WebLimits

    def routes(self) -> list[Path]:
        return [
            Path(UPLOADS_PATH, self._take, methods=["POST"]),
            Path(f"{UPLOADS_PATH}/{{file}}", self._show),
        ]

    async def attached(self, posted: tuple[PostedFile, ...]) -> tuple[Attachment, ...]:
        """The files that a message names, durable. Raises Unacceptable."""
        if not posted:
            return ()
        try:
            sizes = await self.uploads.keep(tuple(each.file for each in posted))
        except NoUpload as error:
            message = f'there is no file "{error}"; upload it again'
            raise Unacceptable(400, "no-file", message) from None
        return attachments_of(posted, sizes, self.channel)

    async def _take(self, request: Request) -> Response:
        """Store a file. Nothing is said about it before it is on disk."""
        check_name("chat", request.path_params["chat"], self.limits.route_chars_max)
        announced = request.headers.get("content-length", "0")
        if announced.isdigit() and int(announced[:18]) > self.uploads.bytes_max:
            raise too_large(self.uploads.bytes_max)
        size = 0

        async def pieces() -> AsyncIterator[bytes]:
            nonlocal size
            async for piece in request.stream():
                size += len(piece)
                yield piece

        try:
            with fail_after(self.limits.file_s):
                name = await self.uploads.take(pieces())
        except TooLarge:
            raise too_large(self.uploads.bytes_max) from None
        except TimeoutError:
            message = f"the file did not arrive within {self.limits.file_s:g} s"
            raise Unacceptable(408, "too-slow", message) from None
        except ClientDisconnect:
            raise Unacceptable(400, "gone", "the connection ended within the file") from None
        called = safe_name(request.query_params.get("name", ""), "file")
        stored = msgspec.json.encode(Uploaded(file=name, name=called, size=size))
        return Response(stored, 201, media_type="application/json")

    async def _show(self, request: Request) -> Response:
        try:
            file = request.path_params["file"]
            await self.uploads.fetch(file)
            descriptor = await to_thread.run_sync(self.uploads.opened, file)
        except NoUpload:
            raise Unacceptable(404, "no-file", "there is no such file in this chat") from None
        name = request.query_params.get("name", "")
        return FileAnswer(descriptor, name, has_body=request.method != "HEAD")
