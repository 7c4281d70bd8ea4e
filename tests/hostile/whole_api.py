"""Everything that the gateway serves by HTTP, over a real store, with the guard in front."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx2
from starlette.routing import Route

from koboshi.channels.web.api import Api, no_metrics
from koboshi.channels.web.follow import Followers
from koboshi.channels.web.limits import WebLimits
from koboshi.channels.web.login import Logins
from koboshi.channels.web.pages import Pages
from koboshi.dashboard.app import Dashboard
from koboshi.dashboard.describe import SHAPES, paths
from koboshi.dashboard.files import FOLDER, PAGE_PATHS
from koboshi.ports.channel import Inbound, Receipt
from tests.channels.fakes import TOKEN, FakeClock, FakeHealth
from tests.store.homes import WEB, Home

ADDRESS = "http://localhost:8642"
EXAMPLES = {"chat": "ann", "message": "m1", "what": "t1", "name": "app.js"}
"""What stands in the place of a parameter."""


@dataclass
class WholeApi:
    """Served in memory. `done` holds what got past the guard and would have changed something."""

    home: Home
    done: list[str] = field(default_factory=list)
    logins: Logins = field(default_factory=lambda: Logins(token=TOKEN, clock=FakeClock()))

    def api(self) -> Api:
        return Api(
            channel=WEB,
            host="127.0.0.1",
            logins=self.logins,
            pages=self._pages(),
            views=self.home.store.views,
            health=FakeHealth(),
            clock=FakeClock(),
            limits=WebLimits(),
            followers=Followers(1),
            store=self._store,
            metrics=no_metrics,
        )

    def client(self) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=self.api().app())
        return httpx2.AsyncClient(transport=transport, base_url=ADDRESS)

    def requests(self) -> Iterator[tuple[str, str]]:
        """A request, as method and path, for each method of each route."""
        for route in self.api().routes():
            assert isinstance(route, Route), f"{route} is of a kind that this test does not know"
            path = route.path.replace("{name:path}", "{name}").format(**EXAMPLES)
            yield from ((method, path) for method in sorted(route.methods or ()))

    def let_in(self) -> dict[str, str]:
        """The headers of a page that was let in."""
        ticket = self.logins.redeem(self.logins.make_code())
        assert ticket is not None
        cookie = f"{self.logins.cookie_name}={ticket.cookie}"
        return {"Cookie": cookie, "X-Koboshi-Proof": ticket.proof}

    def _pages(self) -> Pages:
        dashboard = Dashboard(
            channel=WEB,
            version="0",
            model="scripted",
            views=self.home.store.views,
            ask=self._ask,
            kill=partial(self.done.append, "kill"),
        )
        return Pages(
            routes=dashboard.routes(),
            open_paths=PAGE_PATHS,
            open_folder=FOLDER,
            paths=paths(),
            shapes=SHAPES,
        )

    async def _ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        self.done.append(str(question["ask"]))
        return {"ok": True}

    async def _store(self, _inbound: Inbound) -> Receipt:
        self.done.append("message")
        raise AssertionError("the tests of the guard send no whole messages")
