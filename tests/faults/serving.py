"""A gateway that serves while something fails, and what must be true of it afterwards."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
from anyio import move_on_after

from tests.crash.stories import CHAT
from tests.faults.tally import Tally
from tests.harness.client import Client
from tests.harness.http import connection
from tests.harness.invariants import answers, check_rows
from tests.harness.polling import until, until_asked
from tests.harness.process import GatewayProcess
from tests.harness.rows import glance, read_rows

STORAGE_FAILED = 74
ACCEPTED = 202
TAKEN_S = 20.0
FILES = ("koboshi.db", "koboshi.db-wal")


@asynccontextmanager
async def serving(
    home: Path, *, first: int = 3, command: Sequence[str] = (), log: Path | None = None
) -> AsyncIterator[tuple[GatewayProcess, Client]]:
    """A gateway that has taken the first few messages and answered them, and the person who sent
    them."""
    gateway = GatewayProcess(home, log=log or home.parent / "log", command=command)
    try:
        gateway.start()
        await gateway.wait_ready()
        person = Client(_Known(gateway, gateway.token), CHAT)
        for number in range(first):
            await person.say(f"echo {number}", str(number))
        await until(lambda: len(glance(home).inbox) >= first, "they are stored")
        await _at_rest(gateway)
        yield gateway, person
    finally:
        gateway.bury()


@dataclass(frozen=True, slots=True)
class _Known:
    """Where the gateway is, for a person who has read the token before its disk went away."""

    gateway: GatewayProcess
    token: str

    @property
    def address(self) -> str | None:
        return self.gateway.address

    @property
    def home(self) -> Path:
        return self.gateway.home


async def is_taken(person: Client, number: int) -> bool:
    """Post once; whether it was acknowledged. One that has died in between is not waited for."""
    with move_on_after(TAKEN_S), suppress(httpx2.TransportError):
        response = await person.post(f"echo {number}", str(number))
        return response.status_code == ACCEPTED
    return False


async def readiness(gateway: GatewayProcess) -> tuple[bool, str]:
    """Whether it says it is ready, and what it says about its store."""
    async with connection(await gateway.wait_listening(), gateway.token) as http:
        said = (await http.get("/readyz")).json()
    return said["ok"], next(
        str(each["reason"]) for each in said["checks"] if each["name"] == "store"
    )


async def works_again(gateway: GatewayProcess, person: Client, count: int) -> None:
    """Every message is taken, each is answered once, and the file is whole."""
    for number in range(count):
        await person.say(f"echo {number}", str(number))
    await _at_rest(gateway)
    gateway.kill()
    rows = read_rows(gateway.home)
    check_rows(rows)
    assert answers(rows, CHAT) == [str(number) for number in range(count)]


async def _at_rest(gateway: GatewayProcess) -> None:
    """Wait until nothing is worked on and nothing is owed."""

    async def is_at_rest() -> bool:
        async with connection(await gateway.wait_listening(), gateway.token) as http:
            status = (await http.get("/api/v1/status")).json()
        left = [*status["turns"].values(), status["inbox_waiting"], status["outbox_unsettled"]]
        return not any(left)

    await until_asked(is_at_rest, "the gateway comes to rest")


def lost(home: Path, acknowledged: Sequence[int]) -> list[int]:
    """The messages that were acknowledged and are not on the disk of a dead gateway."""
    rows = read_rows(home)
    assert rows.damage == []
    stored = {str(json.loads(row["body"])["text"]) for row in rows.inbox}
    return [number for number in acknowledged if f"echo {number}" not in stored]


def write_down(name: str, *, is_control: bool = False, violations: Sequence[str] = ()) -> None:
    """One case of a gateway that held, or of a doctored one that was found out."""
    Tally(
        campaign=f"gateway: {name}", cases=1, is_control=is_control, violations=list(violations)
    ).write_down()
