"""What can happen to several gateways and their database, and what must be true afterwards."""

import os
import random
import signal
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from anyio import sleep

from koboshi.cli.options import RESTART, STORAGE_FAILED
from koboshi.domain.phrases import DUPLICATE_LABEL
from tests.fakes.telegram.server import FakeTelegram, serving
from tests.fakes.telegram.state import Chat, User
from tests.harness.fleet import Fleet, Node, a_fleet
from tests.harness.polling import until
from tests.harness.postgres import Cluster
from tests.harness.postgres_backend import Database
from tests.harness.process import KILLED
from tests.harness.telegram import SECTION

STILL_PARTS = (8 / 15, 30 / 15, 120 / 15)
"""How long a node stands still, in leases: 8, 30 and 120 seconds of the usual one."""
MOMENT_S = 1.5
"""A message is answered within it, as a rule."""
PEOPLE = 16
"""As many commands can be asked for: each by another person."""
JUMPS_S = (-7_200, -90, -5, 5, 90, 7_200)
"""By how much a clock is set."""
AWAY = ("cannot be reached", "cannot be used now")
"""What a start says whose server is away, or goes away under it."""
_CLOCK = (
    "CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE "
    "AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + {ahead_ms} $$"
)
"""The clock of the server as all nodes know it, ahead of the true one."""


@dataclass(slots=True, kw_only=True)
class Trouble:
    """One run: people who write, nodes that fail, and a platform that remembers all."""

    fleet: Fleet
    cluster: Cluster
    fake: FakeTelegram
    ann: User
    others: list[User]
    chats: list[Chat]
    ledger: Path
    lease_s: float
    chance: random.Random
    said: dict[int, list[str]] = field(default_factory=dict)
    """The words that each chat must be answered with, in order."""
    commands: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    server_ahead_ms: int = 0

    def write(self) -> None:
        """Ann says something in each chat, and another person has a command run."""
        for chat in self.chats:
            words = self.said.setdefault(chat.chat_id, [])
            words.append(f"w{chat.chat_id}x{len(words)}y")
            self.fake.world.say(chat, self.ann, f"echo {words[-1]}")
        person = self.others[self.commands]
        self.commands += 1
        command = f"echo c{self.commands} >> {self.ledger}"
        self.fake.world.say(self.fake.world.private_chat(person), person, f"run {command}")

    async def fail(self, kind: str = "") -> None:
        """One fault, chosen by chance unless it is named."""
        kinds: Mapping[str, Callable[[Node], Awaitable[None]]] = {
            "a gateway is killed": self._kill,
            "a gateway stands still": self._stand_still,
            "a connection of the server is killed": self._kill_backend,
            "the server is restarted at once": self._restart_server,
            "the connections of a gateway are cut": self._cut,
            "the connections of a gateway stall": self._stall,
            "a gateway gets no answers": self._deafen,
            "a gateway is refused": self._refuse,
            "the clock of a gateway jumps": self._set_clock,
            "the clock of the server jumps": self._set_server_clock,
        }
        kind = kind or self.chance.choice(sorted(kinds))
        node = self.chance.choice(sorted(self.fleet.nodes.values(), key=lambda each: each.name))
        self.counts[kind] += 1
        await kinds[kind](node)
        self._start_what_ended()

    def _start_what_ended(self) -> None:
        """As a service manager does."""
        for node in self.fleet.nodes.values():
            if not node.gateway.is_running:
                code, log = node.gateway.exit_code, node.gateway.log
                # One that was started while its server was away ends, and is started again.
                is_away = code == STORAGE_FAILED and any(each in log for each in AWAY)
                assert is_away or code in (KILLED, RESTART, 0), f"{node.name}: {code} {log[-3000:]}"
                node.start()

    async def _kill(self, node: Node) -> None:
        node.gateway.kill()
        await sleep(self.chance.choice((0.0, self.lease_s / 2, self.lease_s * 1.4)))

    async def kill_in_a_moment(self) -> None:
        """A node is killed at any instruction of what it was just asked for, and started again."""
        self.counts["kills at random instants"] += 1
        await sleep(self.chance.uniform(0.0, MOMENT_S))
        self.chance.choice(list(self.fleet.nodes.values())).gateway.kill()
        if self.chance.random() < 0.5:
            await sleep(self.chance.uniform(0.0, self.lease_s * 1.2))
        self._start_what_ended()

    async def _stand_still(self, node: Node) -> None:
        part = self.chance.choice(STILL_PARTS[:2] * 3 + STILL_PARTS[2:])
        node.stop_still()
        await sleep(part * self.lease_s)
        node.go_on()
        await sleep(self.lease_s / 5)

    async def _kill_backend(self, node: Node) -> None:
        rows = self.fleet.rows(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend' ORDER BY pid"
        )
        if not rows:
            return
        pid = self.chance.choice(rows)[0]
        if self.chance.random() < 0.3:
            assert isinstance(pid, int)
            os.kill(pid, signal.SIGKILL)  # the server ends all connections, and recovers
        else:
            self.fleet.rows("SELECT pg_terminate_backend(%s)", pid)
        await sleep(0.2)

    async def _restart_server(self, node: Node) -> None:
        self.cluster.stop()
        await sleep(self.chance.choice((0.0, self.lease_s / 2)))
        self.cluster.start()

    async def _cut(self, node: Node) -> None:
        node.proxy.cut()
        await sleep(0.1)

    async def _stall(self, node: Node) -> None:
        node.proxy.stall()
        await sleep(self.chance.choice((0.2, 0.6, 1.5)) * self.lease_s)
        node.proxy.flow()

    async def _deafen(self, node: Node) -> None:
        node.proxy.deafen()
        await sleep(self.chance.choice((0.2, 0.6, 1.5)) * self.lease_s)
        node.proxy.flow()

    async def _refuse(self, node: Node) -> None:
        node.proxy.refuse()
        await sleep(self.chance.choice((0.2, 0.6, 1.5)) * self.lease_s)
        node.proxy.accept()

    async def _set_clock(self, node: Node) -> None:
        assert node.wall is not None
        node.wall.move(seconds=self.chance.choice(JUMPS_S))
        await sleep(self.lease_s / 5)

    async def _set_server_clock(self, node: Node) -> None:
        self.server_ahead_ms += self.chance.choice(JUMPS_S) * 1_000
        self.fleet.change(_CLOCK.format(ahead_ms=self.server_ahead_ms))
        await sleep(self.lease_s / 5)

    async def come_to_rest(self) -> None:
        def look() -> bool:
            self._start_what_ended()
            return self._is_at_rest()

        await until(look, "all is answered", within_s=120, otherwise=self._told)

    def _is_at_rest(self) -> bool:
        # A command of unknown outcome is a question, and no person answers it here.
        return not self.fake.world.updates and not self.fleet.number(
            "SELECT (SELECT count(*) FROM turns WHERE closed_ms IS NULL AND state <> 'waiting') "
            "+ (SELECT count(*) FROM outbox WHERE settled_ms IS NULL)"
        )

    def _told(self) -> str:
        turns = self.fleet.rows(
            "SELECT turn_id, state, event, rule, worker_id, session_id FROM turns "
            "WHERE closed_ms IS NULL"
        )
        owed = self.fleet.rows(
            "SELECT delivery_id, state, reason, worker_id FROM outbox WHERE settled_ms IS NULL"
        )
        workers = self.fleet.rows("SELECT worker_id, node, ended_how FROM workers ORDER BY 1")
        waits = len(self.fake.world.updates)
        return f"{turns}\n{owed}\n{workers}\n{waits} updates\n{self.fleet.log}"

    def violations(self) -> list[str]:
        found = []
        for chat in self.chats:
            found += self._wrong_in(chat)
        ran = Counter(self.ledger.read_text().split() if self.ledger.exists() else [])
        found += [f"{command} ran {times} times" for command, times in ran.items() if times > 1]
        found += [f"written after its burial: {row}" for row in self.fleet.written_after_burial()]
        return found

    def _wrong_in(self, chat: Chat) -> list[str]:
        seen = [each.text for each in self.fake.world.messages_seen(chat) if each.is_by_bot]
        plain = [each for each in seen if not each.startswith(DUPLICATE_LABEL.strip()[:20])]
        found, places = [], []
        for words in self.said.get(chat.chat_id, []):
            copies = sum(words in each for each in plain)
            places += [number for number, each in enumerate(seen) if words in each][:1]
            if not any(words in each for each in seen):
                found.append(f"{words} was never answered")
            if copies > 1:
                found.append(f"{words} was answered {copies} times")
        if places != sorted(places):
            found.append(f"out of order in chat {chat.chat_id}: {seen}")
        return found


@asynccontextmanager
async def in_trouble(
    cluster: Cluster, folder: Path, seed: int, nodes: int, lease_s: float, people: int = PEOPLE
) -> AsyncIterator[Trouble]:
    database = Database(f"trouble_{seed}_{nodes}", cluster.url())
    ledger = Path(tempfile.mkdtemp(prefix="kl-", dir="/tmp")) / "ledger"
    async with serving() as fake:
        ann = fake.world.user("Ann", "ann")
        others = [fake.world.user(f"Ben {number}", f"ben{number}") for number in range(people)]
        allowed = [each.user_id for each in (ann, *others)]
        env = {
            f"{SECTION}ALLOW": f"{allowed}",
            f"{SECTION}RATE_PER_SECOND": "0",
            f"{SECTION}API_BASE": fake.url,
            "TELEGRAM_BOT_TOKEN": fake.token,
            # They die more often than a turn is tried in earnest.
            "KOBOSHI__RECOVERY__ATTEMPTS": "100",
            "KOBOSHI__TOOLS__SANDBOX": "host",
            "KOBOSHI__TOOLS__TERMINAL__APPROVAL": "never",
        }
        names = ("a", "b", "c")[:nodes]
        with a_fleet(
            folder,
            database,
            *names,
            server=cluster.socket,
            lease_s=lease_s,
            env=env,
            has_walls=True,
        ) as fleet:
            for node in fleet.nodes.values():
                node.start()
            await fleet.ready()
            yield Trouble(
                fleet=fleet,
                cluster=cluster,
                fake=fake,
                ann=ann,
                others=others,
                chats=[fake.world.private_chat(ann)],
                ledger=ledger,
                lease_s=lease_s,
                chance=random.Random(seed),
            )
    database.close()
