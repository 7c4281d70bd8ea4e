"""Everything that the gateway serves by HTTP, over a real store, with the guard in front."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import httpx2
from starlette.datastructures import Headers
from starlette.routing import Route

from koboshi.channels.web.api import Api, no_metrics
from koboshi.channels.web.codec import Unacceptable
from koboshi.channels.web.follow import Followers
from koboshi.channels.web.limits import WebLimits
from koboshi.channels.web.login import Logins
from koboshi.channels.web.names import Names
from koboshi.channels.web.pages import Pages
from koboshi.channels.web.uploading import Uploading
from koboshi.channels.web.uploads import Uploads
from koboshi.control.replies import Done
from koboshi.control.requests import ControlRequest
from koboshi.dashboard.app import Ask, Dashboard
from koboshi.dashboard.describe import SHAPES, paths
from koboshi.dashboard.files import FOLDER, PAGE_PATHS
from koboshi.ports.channel import Inbound, Receipt
from tests.channels.fakes import TOKEN, FakeBrowsers, FakeClock, FakeHealth
from tests.harness.homes import WEB, Home

ADDRESS = "http://localhost:8642"
EXAMPLES = {
    "chat": "ann",
    "message": "m1",
    "what": "t1",
    "name": "app.js",
    "delivery": "d1",
    "file": "f1",
}
"""What stands in the place of a parameter."""


@dataclass
class WholeApi:
    """Served in memory. `done` holds what got past the guard and would have changed something."""

    home: Home
    folder: Path = Path("nowhere")
    """The folder of the home: files that were sent are below it."""
    done: list[str] = field(default_factory=list)
    ask: Ask | None = None
    """Answers the page's questions; without it they are only written down."""
    logins: Logins = field(
        default_factory=lambda: Logins(
            token=TOKEN, clock=FakeClock(), browsers=FakeBrowsers(FakeClock())
        )
    )

    def api(self) -> Api:
        return Api(
            channel=WEB,
            names=Names(),
            logins=self.logins,
            pages=self._pages(),
            views=self.home.store.views,
            health=FakeHealth(),
            clock=FakeClock(),
            limits=WebLimits(),
            followers=Followers(1),
            store=self._store,
            metrics=no_metrics,
            home=self.folder,
            uploading=Uploading(
                uploads=Uploads(home=self.folder, bytes_max=1_000), channel=WEB, limits=WebLimits()
            ),
        )

    def client(self) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=self.api().app())
        return httpx2.AsyncClient(transport=transport, base_url=ADDRESS)

    def paths(self) -> list[str]:
        """The addresses, with the names of their parameters."""
        routes = [route for route in self.api().routes() if isinstance(route, Route)]
        return [route.path.replace(":path}", "}") for route in routes]

    async def answered(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> tuple[int, bytes]:
        """The status and body of an answer to a person with the token. No client stands in
        between that would put the request right."""
        words, raw_path = urlencode(query, errors="replace").encode(), path.encode(errors="replace")
        named = {"host": "localhost", "authorization": f"Bearer {TOKEN}", **headers}
        scope: dict[str, Any] = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            # As servers do it: what they read are bytes, so there are no lone surrogates.
            "path": unquote(raw_path.decode()),
            "raw_path": raw_path,
            "root_path": "",
            "query_string": words,
            "headers": [(name.encode(), text.encode("latin-1")) for name, text in named.items()],
        }
        said: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            said.append(message)

        await self.api().app()(scope, receive, send)
        return said[0]["status"], b"".join(each.get("body", b"") for each in said)

    def requests(self) -> Iterator[tuple[str, str]]:
        """A request, as method and path, for each method of each route."""
        for route in self.api().routes():
            assert isinstance(route, Route), f"{route} is of a kind that this test does not know"
            path = route.path.replace(":path}", "}").format(**EXAMPLES)
            yield from ((method, path) for method in sorted(route.methods or ()))

    async def let_in(self) -> dict[str, str]:
        """The headers of a page that was let in."""
        ticket = await self.logins.redeem(self.logins.make_code(), Headers())
        assert ticket is not None
        cookie = f"{self.logins.cookie_name}={ticket.cookie}"
        return {"Cookie": cookie, "X-Koboshi-Proof": ticket.proof}

    def _pages(self) -> Pages:
        dashboard = Dashboard(
            channel=WEB,
            version="0",
            model="scripted",
            ask=self.ask or self._ask,
            kill=partial(self.done.append, "kill"),
        )
        return Pages(
            routes=dashboard.routes(),
            open_paths=PAGE_PATHS,
            open_folder=FOLDER,
            paths=paths,
            shapes=SHAPES,
        )

    async def _ask(self, question: ControlRequest) -> Done:
        self.done.append(str(question.__struct_config__.tag))
        return Done()

    async def _store(self, _inbound: Inbound) -> Receipt:
        self.done.append("message")
        raise Unacceptable(503, "not-known", "nothing is stored here")
