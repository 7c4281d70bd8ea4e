"""A node dies at each durable step of a message, and another one, with a home of its own, goes on:
everything is answered once, and a command runs at most once."""

from pathlib import Path

import pytest
from anyio import create_task_group

from tests.harness.client import Client
from tests.harness.fleet import AnyNode, Fleet, a_fleet
from tests.harness.invariants import check_rows
from tests.harness.polling import until
from tests.harness.postgres_backend import Database
from tests.harness.process import KILLED
from tests.harness.tally import WANTS_ALL, add_to_tally

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]

ENV = {"KOBOSHI__TOOLS__SANDBOX": "host", "KOBOSHI__TOOLS__TERMINAL__APPROVAL": "never"}
LEASE_S = 1.0
VERBS = (
    *("inbox.accept", "turns.claim", "turns.append", "turns.start_call", "processes.begin"),
    *("processes.born", "processes.ended", "turns.finish_call", "turns.answer"),
    *("outbox.claim", "outbox.settle"),
)
SECOND = {"turns.claim": 2}
"""The first time there is nothing to claim."""
OF_VERBS = [
    f"{verb}:{moment}:{SECOND.get(verb, 1)}" for verb in VERBS for moment in ("before", "after")
]
OF_BATCHES = [
    f"{point}:{number}" for point in ("batch:open", "commit:sent") for number in range(1, 19)
]
"""In the middle of a batch, and while its commit is under way; there are not many more."""
FEW = ["turns.start_call:after:1", "turns.answer:after:1", "commit:sent:12"]
POINTS = [*OF_VERBS, *OF_BATCHES] if WANTS_ALL else FEW


@pytest.mark.parametrize("point", POINTS)
async def test_a_node_that_dies_there_is_followed_by_another(
    point: str, tmp_path: Path, database: Database
) -> None:
    ledger = tmp_path / "ledger"
    with a_fleet(tmp_path, database, "a", "b", env=ENV, lease_s=LEASE_S) as fleet:
        fleet["a"].start(crash_at=point)
        person = Client(AnyNode([fleet["a"], fleet["b"]]), "ann")
        async with create_task_group() as tasks:
            tasks.start_soon(person.keep_following)
            tasks.start_soon(person.say, f"run echo ran >> {ledger}; echo fine", "one")
            is_reached = await dies(fleet)
            fleet["b"].start()
            await comes_to_an_end(fleet, person)
            tasks.cancel_scope.cancel()

        add_to_tally("faults", counted(is_reached=is_reached))
        check_rows(database.rows())
        assert fleet.written_after_burial() == []
        ran = ledger.read_text().split() if ledger.exists() else []
        assert ran in ([], ["ran"]), "at most once"
        assert len(person.answered()) == 1


def counted(*, is_reached: bool) -> dict[str, object]:
    """A case of the campaign. What is wrong fails the test."""
    campaign = "several gateways: one dies at a durable step"
    return {"campaign": campaign, "cases": 1, "not_reached": int(not is_reached), "violations": 0}


async def dies(fleet: Fleet) -> bool:
    """Wait until A is dead; it may come to rest before it is anywhere near the point."""
    gateway = fleet["a"].gateway

    def look() -> bool:
        return not gateway.is_running or is_done(fleet)

    await until(look, "A dies, or has nothing left to do", otherwise=lambda: fleet.log)
    if gateway.is_running:
        gateway.kill()
        return False
    assert gateway.exit_code == KILLED, gateway.log[-3000:]
    return True


def is_done(fleet: Fleet) -> bool:
    return bool(
        fleet.number(
            "SELECT count(*) FROM turns WHERE closed_ms IS NOT NULL AND NOT EXISTS "
            "(SELECT 1 FROM outbox WHERE settled_ms IS NULL)"
        )
    )


async def comes_to_an_end(fleet: Fleet, person: Client) -> None:
    """The person says yes if they are asked whether to go on, and hears an answer."""

    def is_asked_or_answered() -> bool:
        return bool(questions(person) or person.answered())

    await until(is_asked_or_answered, "a question or an answer", otherwise=fleet.told)
    for number in questions(person):
        await person.say("yes", "two", question=number, choice="yes")
    await until(lambda: person.answered(), "an answer", otherwise=fleet.told)
    await fleet.comes_to_rest()


def questions(person: Client) -> list[int]:
    return [int(each.fields["question"]) for each in person.events if each.kind == "question"]
