"""Random families: each parent hears each child once, and a bug in that is found."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from koboshi.domain.child import ChildLimits
from koboshi.kernel import children, next_turn, operator_action
from koboshi.kernel.queries import QUERIES
from koboshi.kernel.transaction import Transaction
from koboshi.stores.sqlite.transaction import QUERIES as PERFORMED
from tests.harness.backends import Limits, SqliteBackend
from tests.harness.heard_children import check_children
from tests.harness.homes import Home
from tests.harness.tally import ROUND, WANTS_ALL, add_to_tally
from tests.sim.families import Family

SEEDS = 1_000 if WANTS_ALL else 25
SEEDS_OF_A_BUG = 25
"""Without a bug, these find nothing."""
PLACES = count()


async def a_history(folder: Path, seed: int) -> Home:
    """What one seed leaves behind, after the oracle has looked at it."""
    limits = Limits(children=ChildLimits(at_once=2))
    home = Home(backend=SqliteBackend(folder), limits=limits)
    await home.boot()
    family = Family(home, Random(seed))
    try:
        await family.live()
        check_children(home.rows())
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}; {family.history}") from error
    finally:
        await home.store.close()
    return home


async def test_each_parent_hears_each_child_once(tmp_path: Path) -> None:
    """Issue 21: whatever order calls, ends, deaths, cuts and answers of people come in."""
    counts = {"seeds": SEEDS, "children": 0, "heard": 0, "dropped": 0}
    for seed in range(ROUND * SEEDS, (ROUND + 1) * SEEDS):
        rows = (await a_history(tmp_path / str(seed), seed)).rows()
        counts["children"] += len(rows.children)
        counts["heard"] += len(rows.of("inbox", kind="child", state="attached"))
        counts["dropped"] += len(rows.of("inbox", kind="child", state="dropped"))
    print(counts)
    add_to_tally("families", counts)
    assert counts["heard"] > SEEDS
    assert counts["dropped"]


# ── planted bugs ─────────────────────────────────────────────────────────────────────────────────


@contextmanager
def told_by_answers_only() -> Iterator[None]:
    """Only a child that answers is heard of."""
    settle = children.settle_child

    def only_answers(tx: Transaction, context: Any, session_id: Any, opening: Any) -> None:
        row = tx.row("turn_newest", session_id=session_id, limit=1)
        if row is not None and row[3] in ("answered", "done"):
            settle(tx, context, session_id, opening)

    with patch.object(next_turn, "settle_child", only_answers):
        yield


@contextmanager
def told_again_at_each_end() -> Iterator[None]:
    """Whatever ends in the session of a child tells its end, and its key is the moment."""
    entry_of = children._entry

    def at_a_moment(tx: Transaction, child: Any, how: Any, said: str) -> Any:
        entry = entry_of(tx, child, how, said)
        return replace(entry, external_id=f"{entry.external_id}:{tx.now_ms}:{next(PLACES)}")

    blind = QUERIES["child_in"].replace("{child}", "*")
    with patch.object(children, "_entry", at_a_moment), patch.dict(PERFORMED, {"child_in": blind}):
        yield


@contextmanager
def made_again_by_a_repeat() -> Iterator[None]:
    """A call that is carried out again after a death makes another child."""
    look = "WHERE turn_id = :turn_id AND call_id = :call_id"
    newest = f"{look} || '!' || :turn_id ORDER BY child_id DESC"
    with patch.dict(PERFORMED, {"child_by_call": QUERIES["child_by_call"].replace(look, newest)}):
        yield


@contextmanager
def those_that_wait_are_forgotten() -> Iterator[None]:
    """No end of a child begins another one."""
    with patch.object(children, "begin_children", lambda *_: None):
        yield


@contextmanager
def children_outlive_a_cut() -> Iterator[None]:
    """`/stop` ends the parent only, and what a child says then is heard in the new generation."""
    with patch.object(operator_action, "stop_children", lambda *_: None):
        yield


BUGS: dict[str, Any] = {
    "an end without an answer is not told": told_by_answers_only,
    "an end is told under a key of its moment": told_again_at_each_end,
    "a repeated call makes another child": made_again_by_a_repeat,
    "those that wait are forgotten": those_that_wait_are_forgotten,
    "children outlive a cut": children_outlive_a_cut,
}


async def _found(folder: Path, bug: AbstractContextManager[None]) -> str:
    """What the first seed that finds a bug says; empty if none does."""
    with bug:
        for seed in range(SEEDS_OF_A_BUG):
            try:
                await a_history(folder / str(seed), seed)
            except Exception as error:
                return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("name", BUGS)
async def test_a_planted_bug_is_found(tmp_path: Path, name: str) -> None:
    assert await _found(tmp_path / "bug", BUGS[name]()), "no seed has noticed it"
