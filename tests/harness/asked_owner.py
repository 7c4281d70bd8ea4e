"""What the owner of a home answers, as it comes out of the socket."""

import json
from pathlib import Path
from typing import Any

from koboshi.control.context import ControlContext
from koboshi.control.handle import answer
from koboshi.domain.ids import ProcessId
from koboshi.ports.runners import Seen
from koboshi.processes.runners import LocalRunners
from tests.harness.homes import Home


def jobs(home: Home, *, is_running: bool = True) -> ControlContext:
    runners = LocalRunners(Path("processes"))

    async def store_end(_process_id: ProcessId, _seen: Seen) -> None:
        raise AssertionError("nothing runs here")

    async def output_of(process_id: ProcessId, _chars_max: int) -> str:
        return f"the output of {process_id}"

    return ControlContext(
        store=home.store,
        runners=runners,
        store_end=store_end,
        output_of=output_of,
        is_running=is_running,
    )


async def asked(home: Home, what: str, *, is_running: bool = True) -> Any:
    """The answer, as it comes out of the socket."""
    request = {"ask": "explain", "what": what}
    return json.loads(json.dumps(await answer(jobs(home, is_running=is_running), request)))
