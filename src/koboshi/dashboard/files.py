"""The files of the page, as they are in the package: nothing is built, nothing comes from afar."""

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
}
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def page_routes() -> list[BaseRoute]:
    return [
        Path("/", _front),
        Path("/login", _front),
        Path(f"{FOLDER}{{name:path}}", _file),
    ]


async def _front(_request: Request) -> Response:
    return _served("index.html")


async def _file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in contents():
        return PlainTextResponse("there is no such file", 404)
    return _served(name)


def _served(name: str) -> Response:
    kind = KINDS[name.rpartition(".")[2]]
    return Response(contents()[name], headers=PAGE_HEADERS | {"Content-Type": kind})


@cache
def contents() -> dict[str, bytes]:
    """Every file of the page by its name. They are few and small, and read once."""
    found: dict[str, bytes] = {}
    for entry in (files("koboshi.dashboard") / "static").iterdir():
        if entry.name.rpartition(".")[2] in KINDS:
            found[entry.name] = entry.read_bytes()
    return found
