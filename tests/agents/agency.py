"""A gateway with the fake agent, and what a test wants to know about both."""

import json
import os
import signal
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.acp import agent as fake
from tests.harness.client import Client
from tests.harness.polling import until
from tests.harness.process import GatewayProcess

FAKE = Path(fake.__file__)


@dataclass(slots=True)
class Agency:
    gateway: GatewayProcess
    options: tuple[str, ...] = ()
    more: str = ""
    idle_minutes: float = 30.0
    start_seconds: float = 120.0
    people: dict[str, Client] = field(default_factory=dict)

    @property
    def address(self) -> str | None:
        return self.gateway.address

    @property
    def token(self) -> str:
        return self.gateway.token

    @property
    def home(self) -> Path:
        return self.gateway.home

    @property
    def workdir(self) -> Path:
        return self.gateway.workdir

    def configure(self) -> None:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.workdir.mkdir(exist_ok=True)
        command = json.dumps([sys.executable, str(FAKE), *self.options])
        text = f'[gateway]\nagent = "fake"\n{self.more}\n[agents.fake]\ncommand = {command}\n'
        text += f"idle_minutes = {self.idle_minutes}\nstart_seconds = {self.start_seconds}\n"
        (self.home / "koboshi.toml").write_text(text, encoding="utf-8")

    def start(self, **options: str) -> None:
        self.configure()
        self.gateway.start(**options)  # type: ignore[arg-type]

    def person(self, chat: str = "ann") -> Client:
        return self.people.setdefault(chat, Client(self, chat))

    async def say(self, *lines: str, chat: str = "ann", key: str = "k1") -> None:
        await self.person(chat).say("\n".join(f"> {line}" for line in lines), key)

    @property
    def log(self) -> list[str]:
        """What the agents of all lives did, without their pids."""
        try:
            text = (self.workdir / "acp.log").read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [line.partition(" ")[2] for line in text.splitlines()]

    @property
    def pids(self) -> list[int]:
        text = (self.workdir / "acp.log").read_text(encoding="utf-8")
        return [int(line.partition(" ")[0]) for line in text.splitlines()]

    async def until_done(self, words: str) -> None:
        """Wait until an agent did that."""
        await until(lambda: words in self.log, f"the agent: {words}", otherwise=self.told)

    def told(self) -> str:
        turns = self.rows("SELECT turn_id, state, reason FROM turns")
        return f"{self.log}\n{self.gateway.log[-3000:]}\n{turns}"

    def rows(self, query: str) -> list[tuple[object, ...]]:
        path = self.home / "koboshi.db"
        if not path.exists():
            return []
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()

    def answers(self) -> list[str]:
        """The words that were delivered as answers."""
        found = self.rows(
            "SELECT s.body FROM steps AS s JOIN outbox AS o ON o.cause = 'step:' || s.seq "
            "WHERE o.part = 1 AND o.state = 'delivered' AND s.kind = 'answer' ORDER BY s.seq"
        )
        return [str(json.loads(str(body))["text"]) for (body,) in found]

    def delivered(self) -> list[str]:
        found = self.rows("SELECT text FROM outbox WHERE state = 'delivered' ORDER BY delivery_id")
        return [str(text) for (text,) in found]

    async def until_answered(self, times: int = 1) -> list[str]:
        return await until(
            lambda: answers if len(answers := self.answers()) >= times else None,
            f"{times} answers",
            otherwise=self.told,
        )

    def agent_pids(self) -> list[int]:
        """Living fake agents of this workdir."""
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    line = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                    place = os.readlink(f"/proc/{name}/cwd")
                except OSError:
                    continue
                is_fake = str(FAKE).encode() in line and b"bwrap" not in line[0]
                if is_fake and place == str(self.workdir):
                    found.append(int(name))
        return found

    def kill_agents(self) -> None:
        for pid in self.agent_pids():
            os.kill(pid, signal.SIGKILL)

    def is_right(self) -> bool:
        """No agent saw anything that it must not see."""
        return not [line for line in self.log if line.startswith("WRONG")]
