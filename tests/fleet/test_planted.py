"""Bugs that several gateways could have, each planted and found by a check that passes without it.
No lock at all, and an unlocked look after a lost commit, are planted in `tests/postgres`."""

import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from anyio import create_task_group, move_on_after, sleep_forever

from koboshi.domain.ids import ChannelName
from koboshi.domain.inbox import Words
from koboshi.domain.process import Process
from koboshi.domain.route import Route
from koboshi.domain.turn import Claim
from koboshi.ports.channel import Inbound
from koboshi.ports.store import Arrival
from koboshi.ports.wakeups import TURNS
from koboshi.runtime.dispatch import Dispatch
from koboshi.runtime.drain import Drain
from koboshi.runtime.slots import Slot, Slots
from koboshi.runtime.trust import Trust
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores.postgres import batches
from koboshi.tools import terminal as terminal_module
from tests.harness.homes import WEB, Home, respond
from tests.harness.polling import until
from tests.harness.postgres_backend import Database, PostgresBackend
from tests.harness.tally import found_by
from tests.harness.terminals import Terminal

CHATS = 12
SECONDS = 3.0


@pytest.fixture
async def nodes(database: Database, tmp_path: Path) -> AsyncIterator[tuple[Home, Home]]:
    here, there = (
        Home(backend=PostgresBackend(tmp_path / name, database=database)) for name in ("a", "b")
    )
    for node in (here, there):
        await node.boot()
    yield here, there
    for node in (here, there):
        await node.store.close()


# ── keys in one order ───────────────────────────────────────────────────────────────────────────


async def write_to_all(home: Home, rounds: int, name: str) -> None:
    for number in range(rounds):
        arrivals = [
            Arrival(
                inbound=Inbound(
                    route=Route(channel=WEB, chat=f"chat-{chat}", thread=""),
                    external_id=f"{name}-{number}-{chat}",
                    sender="ann",
                    words=Words(text="hello", sent_ms=0, anchor=""),
                )
            )
            for chat in range(CHATS)
        ]
        await home.store.inbox.accept(
            ChannelName(WEB), arrivals, cursor=None, respond=respond, account=""
        )


async def waits_for_each_other(nodes: tuple[Home, Home], rounds: int) -> bool:
    """Whether the server had to end a batch of one node for the other."""
    for number in range(rounds):
        async with create_task_group() as tasks:
            for name, node in zip("ab", nodes, strict=True):
                tasks.start_soon(write_to_all, node, 3, f"{name}-{number}")
        if any(node.store.refusals["busy"] for node in nodes):  # type: ignore[attr-defined]
            return True
    return False


async def test_two_nodes_never_wait_for_each_other(nodes: tuple[Home, Home]) -> None:
    assert not await waits_for_each_other(nodes, rounds=5)


async def test_planted_keys_in_any_order_make_nodes_wait_for_each_other(
    nodes: tuple[Home, Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    await write_to_all(nodes[0], 1, "first")

    def shuffled(keys: set[int]) -> list[int]:
        found = list(keys)
        chance.shuffle(found)
        return found

    monkeypatch.setattr(batches, "sorted", shuffled, raising=False)

    assert await waits_for_each_other(nodes, rounds=60)
    found_by("keys are taken in any order", "several gateways", "two nodes, twelve chats", "busy")


# ── polling is the truth ────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Works:
    """A runner of turns that works on each for ever."""

    claims: list[Claim]
    trust: Trust

    async def run(self, claim: Claim, slot: Slot) -> None:
        self.claims.append(claim)
        await sleep_forever()


def dispatch_of(home: Home, works: Works, poll_seconds: float) -> Dispatch:
    wakeups = LocalWakeups()
    return Dispatch(
        store=home.store,
        wakeups=wakeups,
        runner=works,  # type: ignore[arg-type]
        worker_id=home.worker.worker_id,
        slots=Slots(slots_max=4),
        open_turns_max=4,
        poll_seconds=poll_seconds,
        drain=Drain(wakeups=wakeups, seconds=1),
        trust=works.trust,
    )


async def is_taken_up(nodes: tuple[Home, Home], poll_seconds: float) -> bool:
    """Whether a message that another node stored is worked on, though every hint is lost."""
    here, there = nodes
    works = Works([], Trust())
    async with create_task_group() as tasks:
        dispatch = dispatch_of(here, works, poll_seconds)
        tasks.start_soon(dispatch.keep_dispatching)
        assert isinstance(dispatch.wakeups, LocalWakeups)
        events = dispatch.wakeups._events
        await until(lambda: TURNS in events, "it has looked, and waits for a hint")
        await there.say("hello")
        with move_on_after(SECONDS):
            await until(lambda: works.claims, "it is claimed")
        tasks.cancel_scope.cancel()
    return bool(works.claims)


async def test_a_lost_hint_costs_a_moment(nodes: tuple[Home, Home]) -> None:
    assert await is_taken_up(nodes, poll_seconds=0.1)


async def test_planted_hints_without_polling_leave_a_message_behind(
    nodes: tuple[Home, Home],
) -> None:
    assert not await is_taken_up(nodes, poll_seconds=3_600)
    found_by("hints are believed", "several gateways", "every hint is lost", "not claimed")


# ── trust that comes back ───────────────────────────────────────────────────────────────────────


async def is_given_back(home: Home) -> bool:
    """Whether a turn that was set down without trust is free when the trust is back."""
    now = 0.0
    trust = Trust(seconds=1.0, now=lambda: now)
    trust.renew(now)
    works = Works([], trust)
    dispatch = dispatch_of(home, works, poll_seconds=0.1)
    await home.say("hello")
    async with create_task_group() as tasks:
        tasks.start_soon(dispatch.keep_dispatching)
        await until(lambda: works.claims, "it is worked on")
        now = 10.0
        assert not trust.is_held
        dispatch.set_down()
        await until(lambda: not dispatch.running, "the work has ended")
        (turn,) = home.rows().turns
        assert turn["state"] == "running", "without trust nothing is written"
        dispatch.drain.asked.set()  # it claims nothing anew
        trust.renew(now)
        await dispatch.release()
        tasks.cancel_scope.cancel()
    (turn,) = home.rows().turns
    return turn["state"] == "queued"


async def test_trust_that_comes_back_gives_back_what_was_set_down(
    nodes: tuple[Home, Home],
) -> None:
    assert await is_given_back(nodes[0])


async def test_planted_a_node_that_keeps_what_it_set_down_is_found(
    nodes: tuple[Home, Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(_dispatch: Dispatch) -> None:
        return

    monkeypatch.setattr(Dispatch, "release", nothing)

    assert not await is_given_back(nodes[0])
    found_by("trust that comes back releases nothing", "several gateways", "set down", "running")


# ── processes of other homes ────────────────────────────────────────────────────────────────────


async def starts_of_a_foreign_command() -> int:
    """How often a command that was begun on another node is started here."""
    terminal = Terminal()
    begun = await terminal.begun()
    terminal.processes.rows[begun.process_id] = replace(begun, node="b", home="elsewhere")
    with move_on_after(SECONDS):
        await terminal.resume()
    return len(terminal.runners.commands)


async def test_a_command_of_another_node_is_never_started_here() -> None:
    assert await starts_of_a_foreign_command() == 0


async def test_planted_a_look_at_a_foreign_process_starts_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    always: Callable[[object, Process], bool] = lambda _processes, _process: True  # noqa: E731
    monkeypatch.setattr(terminal_module, "is_here", always)

    assert await starts_of_a_foreign_command() == 1
    found_by("a foreign process is looked at", "several gateways", "resume", "started here")
