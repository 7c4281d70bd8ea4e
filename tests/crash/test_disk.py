"""A disk that is full, fails to flush, or holds a file that is not ours to change."""

import hashlib
import shutil
import subprocess
from asyncio import Event
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import httpx2
import pytest

from tests.crash.stories import CHAT, script
from tests.crash.telling import checked, tell
from tests.harness.client import Client
from tests.harness.disk import failing_flush, filled, small_disk
from tests.harness.http import connection
from tests.harness.invariants import answers, check_rows
from tests.harness.lives import AT_FLUSH
from tests.harness.modelled import modelled_logging_to
from tests.harness.polling import until, until_asked
from tests.harness.process import GatewayProcess, koboshi
from tests.harness.rows import read_rows
from tests.harness.tally import WANTS_ALL
from tests.models.forms import OPENAI

STORAGE_FAILED = 74
WRONG_SETUP = 78

SAID_ON_A_FULL_DISK_MAX = 20

STORE_THREADS = 4
"""The loop, the writer and two readers."""


@pytest.mark.slow
async def test_a_full_disk_stops_acknowledgements_and_nothing_else(tmp_path: Path) -> None:
    """S162, S166: what is not on disk is not acknowledged; the gateway stays and says why; with
    room again it goes on by itself, nothing lost and nothing twice."""
    with small_disk(tmp_path / "disk") as disk:
        async with _gateway(disk / "home", tmp_path / "log") as gateway:
            gateway.start()
            await gateway.wait_ready()
            person = Client(gateway, CHAT)
            await person.say("echo before", "1")

            with filled(disk):
                refused = await _first_refused(person)
                assert not await _is_ready(gateway)
                assert await _trouble(gateway) == "the disk is full"
                assert gateway.is_running

            await until_asked(lambda: _is_ready(gateway), "it is ready again")
            await person.say(f"echo full {refused}", f"full {refused}")
            await person.say("echo after", "3")
            await _at_rest(gateway)
            gateway.kill()
        rows = read_rows(disk / "home")

    check_rows(rows)
    full = [f"full {number}" for number in range(refused + 1)]
    assert answers(rows, CHAT) == ["before", *full, "after"]
    assert len(rows.inbox) == len(full) + 2


@pytest.mark.slow
async def test_who_waits_is_told_of_a_full_disk_and_what_is_in_flight_finishes(
    tmp_path: Path,
) -> None:
    """Issue 13, A2: red before, no notice was sent and the answer waited. The reserve is given up,
    new messages are not acknowledged, everything says why, and it is made again with room."""
    with small_disk(tmp_path / "disk", 16) as disk:
        home = disk / "home"
        async with modelled_logging_to(tmp_path / "log", home, OPENAI) as it:
            await it.gateway.wait_ready()
            reserve = (home / "reserve").stat()
            assert reserve.st_blocks * 512 >= reserve.st_size >= disk_size(disk) // 25
            it.server.gate = Event()
            it.server.answers.append(it.says("finished all the same"))
            await it.person.say("one", "1")
            await until(lambda: it.server.requests, "the model is asked")
            with filled(disk):
                await it.person.hears("My disk is full")
                assert not (home / "reserve").exists()
                assert (await it.person.post("two", "2")).status_code == 503
                assert not await _is_ready(it.gateway)
                assert await _trouble(it.gateway) == "the disk is full"
                assert "the disk is full" in await _page_says(it.gateway)
                assert "koboshi_disk_reserve_bytes 0\n" in await _metrics(it.gateway)
                assert "the disk is full" in koboshi_says(home, "status")
                it.server.gate.set()
                await it.person.hears("finished all the same")
                assert (await it.person.post("two", "2")).status_code == 503
                assert it.gateway.is_running
            await until_asked(lambda: _is_ready(it.gateway), "it is ready again")
            await until((home / "reserve").exists, "the reserve is made again")
            it.server.answers.append(it.says("second answer"))
            await it.person.say("two", "2")
            await it.person.hears("second answer")
            rows = await checked(it.life)

    notices = [row for row in rows.outbox if str(row["cause"]).startswith("full:")]
    assert [row["state"] for row in notices] == ["delivered"]
    assert answers(rows, CHAT) == ["finished all the same", "second answer"]


async def test_a_small_volume_does_not_wedge_on_its_own_log(tmp_path: Path) -> None:
    """Issue 13, A2: red before, the log grew until there was no room for the commit behind which it
    would have been emptied."""
    with small_disk(tmp_path / "disk", 4) as disk:
        async with _gateway(disk / "home", tmp_path / "log") as gateway:
            gateway.start()
            await gateway.wait_ready()
            person = Client(gateway, CHAT)
            for number in range(40):
                await person.say(f"echo {number}", str(number))
            await _at_rest(gateway)
            gateway.kill()
        rows = read_rows(disk / "home")

    check_rows(rows)
    assert answers(rows, CHAT) == [str(number) for number in range(40)]


async def test_a_gateway_started_on_a_full_disk_serves_when_there_is_room(tmp_path: Path) -> None:
    """S15, S166, issue 13, A2: it comes up with the reserve of the last boot, says what is wrong
    and takes nothing new. It loses nothing of what it has, and needs no person to go on."""
    with small_disk(tmp_path / "disk") as disk:
        async with _gateway(disk / "home", tmp_path / "log") as gateway:
            gateway.start()
            await gateway.wait_ready()
            person = Client(gateway, CHAT)
            await person.say(script({"text": "later", "sleep_ms": 500}), "1")
            gateway.kill()
            with filled(disk):
                gateway.start()
                await gateway.wait_listening()
                assert not await _is_ready(gateway)
                assert await _trouble(gateway) == "the disk is full"
                assert (await person.post("echo new", "2")).status_code == 503
            await gateway.wait_ready()
            await _at_rest(gateway)
            gateway.kill()
        rows = read_rows(disk / "home")

    check_rows(rows)
    assert answers(rows, CHAT)[0] == "later"


async def test_a_gateway_started_on_a_full_disk_says_what_it_waits_for(tmp_path: Path) -> None:
    """S15: it cannot be asked by HTTP yet, so the log is the only place to look."""
    with small_disk(tmp_path / "disk") as disk:
        async with _gateway(disk / "home", tmp_path / "log") as gateway:
            gateway.start()
            await gateway.wait_ready()
            gateway.kill()
            with filled(disk):
                gateway.start()
                await until(lambda: "disk is full" in gateway.log, "it says so")


async def test_a_new_home_on_a_full_disk_is_a_storage_failure(tmp_path: Path) -> None:
    """There is nothing to serve from; its starter shall try again."""
    with small_disk(tmp_path / "disk") as disk:
        gateway_home = disk / "home"
        gateway_home.mkdir(mode=0o700)
        async with _gateway(gateway_home, tmp_path / "log") as gateway:
            with filled(disk):
                gateway.start()
                code = await gateway.wait_exit()
            assert code == STORAGE_FAILED, gateway.log
            assert "Traceback" not in gateway.log
            gateway.start()
            await gateway.wait_ready()


async def test_a_token_of_which_only_the_name_was_written_is_made_anew(
    home: Path, tmp_path: Path
) -> None:
    """Killed in its very first moments, a gateway must still be able to start."""
    home.mkdir(mode=0o700)
    (home / "web-token").touch(mode=0o600)

    async with _gateway(home, tmp_path / "log") as gateway:
        gateway.start()
        await gateway.wait_ready()
        assert (await Client(gateway, CHAT).post("echo hello", "1")).status_code == 202


async def test_a_flush_that_fails_ends_the_gateway_and_the_next_one_knows_everything(
    home: Path, tmp_path: Path
) -> None:
    """S10, S162: after EIO it is unknown what is on disk, so nothing more is acknowledged: exit 74.
    Whatever was acknowledged is there, and what was not can be said again."""
    async with _gateway(home, tmp_path / "log") as gateway:
        gateway.start()
        await gateway.wait_ready()
        person = Client(gateway, CHAT)
        for number in range(5):
            await person.say(f"echo {number}", str(number))

        with failing_flush(gateway.pid, tmp_path / "strace") as strace:
            await strace.attached()
            await _is_not_acknowledged(person, "echo 5", "5")
            code = await gateway.wait_exit()
            assert strace.faults >= 1
        assert code == STORAGE_FAILED, gateway.log
        assert len(read_rows(home).inbox) >= 5

        gateway.start()
        for number in range(7):
            await person.say(f"echo {number}", str(number))
        await _at_rest(gateway)
        gateway.kill()

    rows = read_rows(home)
    check_rows(rows)
    # What was acknowledged and not answered when it ended is a backlog, and has one answer.
    said = "\n\n".join(answers(rows, CHAT)).split("\n\n")
    assert said == [str(number) for number in range(7)]


@pytest.mark.parametrize("number", [1, 3, 6, 8, 11] if WANTS_ALL else [1, 8])
async def test_killed_within_a_commit_it_is_there_or_it_is_not(home: Path, number: int) -> None:
    """S10, S158: the words are written and not yet flushed; from the making of the file on, every
    start finds it whole, and the story comes to its end."""
    await tell(home, "two-tools", [f"{AT_FLUSH}{number}"])


async def test_a_file_of_another_program_is_left_as_it_is(home: Path, tmp_path: Path) -> None:
    """S8, S166: exit 78, with words, and not a byte is different."""
    home.mkdir(mode=0o700)
    other = apsw.Connection(str(home / "koboshi.db"))
    other.execute("CREATE TABLE strange (words); INSERT INTO strange VALUES ('hi')")
    other.close()
    before = _digests(home)

    async with _gateway(home, tmp_path / "log") as gateway:
        for arguments in ((), ("--accept-data-loss",)):
            gateway.start(arguments=arguments)
            assert await gateway.wait_exit() == WRONG_SETUP
            assert "another program" in gateway.log
            assert "Traceback" not in gateway.log
            assert _digests(home) == before


@pytest.mark.parametrize("damage", ["no-database", "header", "page", "cut-short"])
async def test_a_damaged_file_is_left_as_it_is_until_a_person_accepts_the_loss(
    home: Path, tmp_path: Path, damage: str
) -> None:
    """S8, S15, S166: exit 78 without a change; with the person's word it is kept aside, and the
    gateway starts empty and says so."""
    async with _gateway(home, tmp_path / "log") as gateway:
        gateway.start()
        await gateway.wait_ready()
        person = Client(gateway, CHAT)
        for number in range(20):
            await person.say(f"echo {number} " + "words " * 1_000, str(number))
        await _at_rest(gateway)
        gateway.terminate()
        assert await gateway.wait_exit() == 0
        _harm(home / "koboshi.db", damage)
        before = _digests(home)

        gateway.start()
        code = await gateway.wait_exit()
        assert code == WRONG_SETUP, gateway.log
        assert "damaged" in gateway.log
        assert _digests(home)["koboshi.db"] == before["koboshi.db"]

        gateway.start(arguments=("--accept-data-loss",))
        await gateway.wait_ready()
        assert "quarantine" in gateway.log
        await Client(gateway, CHAT).say("echo anew", "anew")
        await _at_rest(gateway)
        gateway.kill()

    (kept,) = (home / "quarantine").iterdir()
    assert _digests(kept)["koboshi.db"] == before["koboshi.db"]
    assert answers(read_rows(home), CHAT) == ["anew"]


@asynccontextmanager
async def _gateway(home: Path, log: Path) -> AsyncIterator[GatewayProcess]:
    gateway = GatewayProcess(home, log=log)
    try:
        yield gateway
    finally:
        gateway.bury()


async def _first_refused(person: Client) -> int:
    """Say one thing after the other on a full disk. Returns the number of the first that is
    refused: the log is written over from its beginning, and may hold a few until then."""
    for number in range(SAID_ON_A_FULL_DISK_MAX):
        said = await person.post(f"echo full {number}", f"full {number}")
        if said.status_code != 202:
            assert said.status_code == 503, said.text
            return number
    raise AssertionError("a full disk refuses nothing")


async def _is_ready(gateway: GatewayProcess) -> bool:
    address = await gateway.wait_listening()
    async with connection(address) as http:
        return (await http.get("/readyz")).status_code == 200


async def _trouble(gateway: GatewayProcess) -> str:
    """What the gateway says about its store, to a person who may know."""
    async with connection(await gateway.wait_listening(), gateway.token) as http:
        checks = (await http.get("/readyz")).json()["checks"]
    return next(str(check["reason"]) for check in checks if check["name"] == "store")


async def _page_says(gateway: GatewayProcess) -> str:
    """What the banner of the page is made of."""
    async with connection(await gateway.wait_listening(), gateway.token) as http:
        return (await http.get("/api/v1/troubles")).text


async def _metrics(gateway: GatewayProcess) -> str:
    async with connection(await gateway.wait_listening(), gateway.token) as http:
        return (await http.get("/metrics")).text


def koboshi_says(home: Path, command: str) -> str:
    done = subprocess.run(
        [koboshi(), command, "--home", str(home)], capture_output=True, text=True, timeout=60
    )
    return done.stdout + done.stderr


def disk_size(folder: Path) -> int:
    return shutil.disk_usage(folder).total


async def _at_rest(gateway: GatewayProcess) -> None:
    async def is_at_rest() -> bool:
        async with connection(await gateway.wait_listening(), gateway.token) as http:
            status = (await http.get("/api/v1/status")).json()
        left = [*status["turns"].values(), status["inbox_waiting"], status["outbox_unsettled"]]
        return not any(left)

    await until_asked(is_at_rest, "the gateway comes to rest")


async def _is_not_acknowledged(person: Client, text: str, key: str) -> None:
    try:
        response = await person.post(text, key)
    except httpx2.TransportError:
        return
    assert response.status_code != 202, response.text


def _threads(pid: int) -> int:
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    except FileNotFoundError:
        return 0


def _digests(folder: Path) -> dict[str, str]:
    """Every file of the database with what is in it."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob("koboshi.db*"))
    }


def _harm(path: Path, damage: str) -> None:
    content = bytearray(path.read_bytes())
    page = 8_192
    match damage:
        case "no-database":
            content[:] = b"these are not the bytes of a database" * 500
        case "header":
            content[:16] = b"SQLite format 4\0"
        case "page":
            # The root of the schema: without it nothing else can be found.
            content[100:page] = b"\xff" * (page - 100)
        case _:
            del content[page * 2 :]
    path.write_bytes(content)
