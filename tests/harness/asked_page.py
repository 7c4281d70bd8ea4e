"""What the page is answered, without a server."""

from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from starlette.applications import Starlette

from koboshi.control.context import ControlContext
from koboshi.control.handle import reply_to
from koboshi.dashboard.app import Dashboard
from koboshi.dashboard.operation import BASE
from koboshi.domain.ids import ProcessId
from koboshi.ports.runners import Seen
from koboshi.processes.runners import LocalRunners
from tests.harness.homes import WEB, Home


def dashboard(home: Home, troubles: dict[str, str] | None = None, **more: Any) -> Dashboard:
    async def store_end(_process_id: ProcessId, _seen: Seen) -> None:
        raise AssertionError("nothing runs here")

    async def output_of(process_id: ProcessId, _chars_max: int) -> str:
        return f"the output of {process_id}"

    jobs = ControlContext(
        store=home.store,
        runners=LocalRunners(Path("processes")),
        store_end=store_end,
        output_of=output_of,
        is_running=True,
        channels=lambda: {**(troubles or {})},
    )
    settings: dict[str, Any] = {
        "channel": WEB,
        "version": "0",
        "model": "scripted",
        "ask": partial(reply_to, jobs),
    }
    return Dashboard(**settings | more)


async def asked(
    board: Dashboard, path: str, method: str = "GET", **query: Any
) -> tuple[int, dict[str, Any]]:
    transport = httpx2.ASGITransport(app=Starlette(routes=board.routes()))
    async with httpx2.AsyncClient(transport=transport, base_url="http://page") as client:
        response = await client.request(method, f"{BASE}/{path}", params=query)
    return response.status_code, response.json()
