"""The files of the page, as they are in the package: nothing is built, nothing comes from afar."""

import gzip
import hashlib
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as Path

FOLDER = "/static/"
PAGE_PATHS = frozenset({"/", "/login"})
KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "woff2": "font/woff2",
}
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; font-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def page_routes() -> list[BaseRoute]:
    return [
        Path("/", _front),
        Path("/login", _front),
        Path(f"{FOLDER}{{name:path}}", _file),
    ]


async def _front(request: Request) -> Response:
    return _served(request, "index.html")


async def _file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in contents():
        return PlainTextResponse("there is no such file", 404)
    return _served(request, name)


def _served(request: Request, name: str) -> Response:
    """The file, compressed where the browser takes that; or that it has not changed since."""
    whole, packed, tag = _packed(name)
    takes = "gzip" in request.headers.get("accept-encoding", "")
    headers = PAGE_HEADERS | {
        "Content-Type": KINDS[name.rpartition(".")[2]],
        "Cache-Control": "no-cache",
        "ETag": tag,
        "Vary": "Accept-Encoding",
    }
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if takes and len(packed) < len(whole):
        return Response(packed, headers=headers | {"Content-Encoding": "gzip"})
    return Response(whole, headers=headers)


@cache
def _packed(name: str) -> tuple[bytes, bytes, str]:
    """A file, the same compressed, and a name for exactly these bytes. There are few of them, and
    each is compressed once, when it is first wanted."""
    whole = contents()[name]
    digest = hashlib.sha256(whole).hexdigest()[:32]
    return whole, gzip.compress(whole, mtime=0), f'"{digest}"'


@cache
def contents() -> dict[str, bytes]:
    """Every file of the page by its name. They are few and small, and read once."""
    found: dict[str, bytes] = {}
    for entry in (files("koboshi.dashboard") / "static").iterdir():
        if entry.name.rpartition(".")[2] in KINDS:
            found[entry.name] = entry.read_bytes()
    return found
