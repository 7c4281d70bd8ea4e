"""Commands belong to the node that started them: no other node starts them again."""

from pathlib import Path

import pytest
from anyio import create_task_group

from tests.harness.client import Client
from tests.harness.fleet import AnyNode, Fleet, a_fleet
from tests.harness.polling import until
from tests.harness.postgres_backend import Database

pytestmark = pytest.mark.crash

ENV = {"KOBOSHI__TOOLS__SANDBOX": "host", "KOBOSHI__TOOLS__TERMINAL__APPROVAL": "never"}


def lines_in(ledger: Path) -> list[str]:
    return ledger.read_text().split() if ledger.exists() else []


async def a_command_at_a(fleet: Fleet, ledger: Path, words: str) -> Client:
    """A chat whose command runs at A. B is there, too."""
    fleet["a"].start()
    person = Client(AnyNode([fleet["a"]]), "ann")
    await person.say(words, "one")
    await until(lambda: lines_in(ledger), "the command runs", otherwise=lambda: fleet.log)
    await until(
        lambda: fleet.number("SELECT count(*) FROM processes WHERE state = 'running'"),
        "its birth is stored",
    )
    fleet["b"].start()
    await fleet.ready("b")
    return Client(AnyNode([fleet["b"]]), "ann")


async def test_a_command_of_a_dead_node_has_an_unknown_outcome_and_never_runs_again(
    tmp_path: Path, database: Database
) -> None:
    ledger = tmp_path / "ledger"
    with a_fleet(tmp_path, database, "a", "b", env=ENV, lease_s=2) as fleet:
        there = await a_command_at_a(fleet, ledger, f"run echo ran >> {ledger}; sleep 60")
        async with create_task_group() as tasks:
            tasks.start_soon(there.keep_following)
            fleet["a"].gateway.kill()
            # The node may come back for a while; then the person decides.
            await there.sees(lambda event: event.kind == "question", "the person is asked")
            question = next(each for each in there.events if each.kind == "question")
            await there.say("yes", "two", question=question.fields["question"], choice="yes")
            await there.sees(lambda event: event.kind == "answer", "an answer")
            await fleet.comes_to_rest()
            tasks.cancel_scope.cancel()

        rules = fleet.rows("SELECT DISTINCT rule FROM journal WHERE rule IS NOT NULL")
        assert ("outcome-unknown",) in rules
        assert lines_in(ledger) == ["ran"]
        outcomes = fleet.rows("SELECT outcome FROM calls WHERE tool = 'terminal'")
        assert outcomes == [("unknown",)]
        notes = fleet.number("SELECT count(*) FROM steps WHERE cause ~ '^moved:'")
        assert notes == 1, "the model is told once that the chat moved"


async def test_a_node_that_comes_back_at_once_takes_its_command_up(
    tmp_path: Path, database: Database
) -> None:
    ledger = tmp_path / "ledger"
    with a_fleet(tmp_path, database, "a", "b", env=ENV, lease_s=2) as fleet:
        words = f"run echo ran >> {ledger}; sleep 6; echo the end"
        there = await a_command_at_a(fleet, ledger, words)
        async with create_task_group() as tasks:
            tasks.start_soon(there.keep_following)
            fleet["a"].gateway.kill()
            await until(
                lambda: fleet.number("SELECT count(*) FROM workers WHERE ended_ms IS NOT NULL"),
                "B has buried A",
            )
            fleet["a"].start()
            await there.hears("the end")
            await fleet.comes_to_rest()
            tasks.cancel_scope.cancel()

        assert lines_in(ledger) == ["ran"]
        assert len(there.answered()) == 1


async def test_a_background_process_of_a_node_that_is_away_is_told_of_once_and_ended_at_return(
    tmp_path: Path, database: Database
) -> None:
    ledger = tmp_path / "ledger"
    with a_fleet(tmp_path, database, "a", "b", env=ENV, lease_s=1) as fleet:
        words = f"in background echo ran >> {ledger}; sleep 300"
        there = await a_command_at_a(fleet, ledger, words)
        async with create_task_group() as tasks:
            tasks.start_soon(there.keep_following)
            fleet["a"].gateway.kill()
            await there.hears("cannot be reached")
            await there.say("/jobs kill p1", "two")
            await until(
                lambda: fleet.number(
                    "SELECT count(*) FROM processes WHERE end_asked_ms IS NOT NULL "
                    "AND ended_ms IS NULL"
                ),
                "the wish is stored",
                otherwise=lambda: there.told(),
            )
            fleet["a"].start()
            await until(
                lambda: fleet.number("SELECT count(*) FROM processes WHERE state = 'killed'"),
                "A has ended it",
                otherwise=lambda: fleet.log,
            )
            tasks.cancel_scope.cancel()

        told = [each for each in there.heard() if "cannot be reached" in each]
        assert len(told) == 1
        assert lines_in(ledger) == ["ran"]
