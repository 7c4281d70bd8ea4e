"""A look costs little, with a gateway and without one: it loads only what it needs. What is loaded
is counted, because seconds depend on who else uses the machine."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.process import KOBOSHI, ended, environment, gateway

LOOKS = (("status",), ("explain", "s1"), ("sessions", "list"))
HEAVY = frozenset(
    {"anyio", "asyncio", "httpx2", "prompt_toolkit", "rich", "starlette", "structlog", "uvicorn"}
)
"""What a gateway and a terminal need; each takes longer to load than the look itself."""
LOADED_MAX = {"running": 223, "dead": 366}
"""Among them are the roles, rules, sandboxes, chats, minutes, schedules, nodes, agents, children,
memories, budgets and ends of turns that replies tell of, a small module each."""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """A home with a gateway, and one whose gateway was killed."""
    folder = tmp_path_factory.mktemp("quick")
    with gateway(folder / "dead") as killed:
        killed.wait_state(killed.say("a", "count to 100 slowly"), "running")
        killed.kill()
    with gateway(folder / "running") as one:
        one.wait_state(one.say("a", "echo hello"), "done")
        yield {"running": one.home, "dead": folder / "dead"}


@pytest.mark.parametrize("standing", ["running", "dead"])
@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_a_look_loads_only_what_it_needs(
    homes: dict[str, Path], look: tuple[str, ...], standing: str
) -> None:
    told = ended([sys.executable, "-X", "importtime", KOBOSHI, *look], environment(homes[standing]))

    assert told.code == 0, told.err
    loaded = [line.rpartition("|")[2].strip() for line in told.err.splitlines() if "|" in line]
    assert len(loaded) > 50, "nothing was counted"
    assert HEAVY & set(loaded) == set()
    assert len(loaded) <= LOADED_MAX[standing], sorted(loaded)


def test_a_list_of_processes_is_a_look_at_a_home(homes: dict[str, Path]) -> None:
    """Issue 14, point 5: red before, the command owned the home for it, with an event loop."""
    command = [sys.executable, "-X", "importtime", KOBOSHI, "processes", "list"]
    told = ended(command, environment(homes["dead"]))

    assert told.code == 0, told.err
    loaded = {line.rpartition("|")[2].strip() for line in told.err.splitlines() if "|" in line}
    assert "koboshi.app.home" in loaded
    assert HEAVY & loaded == set()


def test_what_is_seen_of_a_home_is_the_same_without_a_gateway(homes: dict[str, Path]) -> None:
    """S161: the killed one is told as killed, and the next command finds the home free again."""
    told = [ended([KOBOSHI, *look], environment(homes["dead"])) for look in LOOKS]

    assert [each.code for each in told] == [0, 0, 0]
    assert told[0].out.startswith("koboshi is not running")
    assert "interrupted: the gateway died over it" in told[1].out
    assert "t1 interrupted" in told[2].out
