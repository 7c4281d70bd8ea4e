"""The rig, killed as planned, as a test holds it."""

import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from koboshi.control.key import shown_key
from tests.harness.invariants import check_growth, check_rows
from tests.harness.polling import until
from tests.harness.process import KILLED, GatewayProcess
from tests.harness.rig import KIND, FilePlatform, Line, platform_folder
from tests.harness.rows import Rows, read_rows

ROOT = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class RigLife:
    """A rig whose lives end at the given crash points, and the platform that outlives it."""

    process: GatewayProcess
    platform: FilePlatform
    remains: list[Rows]

    def write(self, text: str, *, chat: str = "room", **fields: object) -> None:
        """A person writes; the platform keeps it until it is acknowledged."""
        number = len(self.platform.lines("feed")) + 1
        self.platform.write("feed", {"id": f"m{number}", "chat": chat, "text": text, **fields})

    def sent(self) -> list[Line]:
        return self.platform.lines("sent")

    def ran(self) -> list[str]:
        return [str(line["what"]) for line in self.platform.lines("ran")]

    async def die_at(self, *crash_points: str) -> None:
        """Live and die at each of these, one after the other."""
        for crash_at in crash_points:
            self.process.start(crash_at=crash_at)
            code = await self.process.wait_exit()
            assert code == KILLED, f"{code} at {crash_at}:\n{self.process.log[-3000:]}"
            self.remains.append(read_rows(self.process.home))

    async def live_until(self, look: Callable[[], object], what: str) -> None:
        """Live on until it is so."""
        if not self.process.is_running:
            self.process.start()

        def look_while_it_lives() -> object:
            assert self.process.is_running, self.process.log[-3000:]
            return look() or None

        await until(look_while_it_lives, what, otherwise=lambda: f"{self.sent()}")

    async def finish(self) -> Rows:
        """Live on until nothing is left to do; then check what is left on the disk."""
        await self.live_until(self._is_at_rest, "the rig comes to rest")
        self.process.kill()
        rows = read_rows(self.process.home)
        check_rows(rows)
        check_growth(self.remains, rows)
        self._check_acknowledgements(rows)
        return rows

    def _check_acknowledgements(self, rows: Rows) -> None:
        """Nothing was acknowledged that is not stored, and nothing is stored twice."""
        acknowledged = max(
            (line["place"] for line in self.platform.lines("acknowledged")), default=0
        )
        stored = [row["external_id"] for row in rows.inbox]
        assert stored == [line["id"] for line in self.platform.lines("feed")]
        assert len(stored) >= acknowledged

    def _is_at_rest(self) -> bool:
        is_read = len(self.platform.lines("feed")) == self._read_so_far()
        status = self._status() if is_read else None
        if status is None:
            return False
        left = [*status["turns"].values(), status["inbox_waiting"], status["outbox_unsettled"]]
        return not any(left)

    def _read_so_far(self) -> int:
        return max((line["place"] for line in self.platform.lines("acknowledged")), default=0)

    def _status(self) -> Line | None:
        """What the rig answers on its control socket; None while it does not."""
        folder = os.open(self.process.home, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(10)
                link.connect(f"/proc/self/fd/{folder}/control.sock")
                asked = {"ask": "status", "key": shown_key(self.process.home)}
                link.sendall(json.dumps(asked).encode() + b"\n")
                with link.makefile("rb") as reply:
                    answer: Line = json.loads(reply.readline())
                    return answer
        except (OSError, ValueError):
            return None
        finally:
            os.close(folder)


@asynccontextmanager
async def rig(home: Path, kind: str = "plain") -> AsyncIterator[RigLife]:
    """A rig on a platform of this kind; it is gone after the block."""
    command: Sequence[str] = (sys.executable, "-m", "tests.harness.rig", str(home))
    env = {KIND: kind, "PYTHONPATH": str(ROOT)}
    process = GatewayProcess(home, env=env, command=command)
    try:
        yield RigLife(process, FilePlatform(platform_folder(home)), [])
    finally:
        process.bury()
